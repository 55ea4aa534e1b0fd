package scenario

import (
	"encoding/json"
	"math"
	"reflect"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/workload"
)

// Toggle is on, off, or left to the version of the engine.
type Toggle uint8

// The toggles.
const (
	Auto Toggle = iota
	Off
	On
)

// MarshalJSON writes "auto", false or true.
func (t Toggle) MarshalJSON() ([]byte, error) {
	return []byte([...]string{`"auto"`, "false", "true"}[t]), nil
}

// or is the toggle, or if it is auto, one that is on or off.
func (t Toggle) or(on bool) Toggle {
	switch {
	case t != Auto:
		return t
	case on:
		return On
	}
	return Off
}

func (t *Toggle) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	switch {
	case n.Kind == yamldoc.Bool && n.Truth:
		*t = On
	case n.Kind == yamldoc.Bool:
		*t = Off
	case n.Kind == yamldoc.Text && n.Text == "auto":
		*t = Auto
	default:
		d.Wrong(n, key, "auto, true or false")
	}
}

// Warmup says which part at the start of a run is not measured.
type Warmup struct {
	// Auto finds the end of the warm-up in the run itself; otherwise it is Length.
	Auto   bool
	Length yamldoc.Duration
}

// MarshalJSON writes "auto", "none" or the duration.
func (w Warmup) MarshalJSON() ([]byte, error) {
	switch {
	case w.Auto:
		return []byte(`"auto"`), nil
	case w.Length == 0:
		return []byte(`"none"`), nil
	}
	return json.Marshal(w.Length.String())
}

func (w *Warmup) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	const want = "auto, none or a duration such as 30s"
	length, ok := yamldoc.ParseDuration(n.Text)
	switch {
	case n.Kind == yamldoc.Text && n.Text == "auto":
		*w = Warmup{Auto: true}
	case n.Kind == yamldoc.Text && n.Text == "none":
		*w = Warmup{}
	case ok:
		*w = Warmup{Length: length}
	case n.Kind == yamldoc.Text, n.Kind == yamldoc.Number:
		d.Refuse(n, key, want)
	default:
		d.Wrong(n, key, want)
	}
}

// ThinkTime is how long a user of a closed loop waits between an output and the next request:
// a duration, or a law with a mean.
type ThinkTime struct {
	// Law is fixed, exponential or lognormal.
	Law string `json:"distribution" one:"fixed exponential lognormal"`
	// Mean is the mean of the law.
	Mean yamldoc.Duration `json:"mean"`
	// CV is the coefficient of variation of the lognormal law.
	CV *float64 `json:"cv,omitempty" range:"(0,100]"`
}

// MarshalJSON writes the duration alone where it is fixed.
func (t ThinkTime) MarshalJSON() ([]byte, error) {
	if t.Law == "fixed" {
		return json.Marshal(t.Mean)
	}
	type plain ThinkTime
	return json.Marshal(plain(t))
}

func (t *ThinkTime) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	if n.Kind != yamldoc.Map {
		t.Law = "fixed"
		t.Mean.Decode(d, n, key)
		return
	}
	type plain ThinkTime
	p := plain{Law: "exponential"}
	d.Value(n, key, &p, "")
	d.Require(n, key, "", "mean")
	if (p.Law == "lognormal") != (p.CV != nil) {
		d.Fault(n.At, key, "cv is required for the lognormal distribution and allowed for no other", "")
	}
	*t = ThinkTime(p)
}

// oneOrMore decodes a number, or a list of numbers. The tag says which are allowed.
func oneOrMore[T any](d *yamldoc.Decoder, n *yamldoc.Node, key, want string, tag reflect.StructTag) (list []T) {
	switch {
	case n.Kind == yamldoc.Number:
		list = make([]T, 1)
		d.Value(n, key, &list[0], tag)
	case n.Kind == yamldoc.List && len(n.Items) > 0:
		d.Value(n, key, &list, tag)
	default:
		d.Wrong(n, key, want+", or a list of them")
	}
	return list
}

// marshalOneOrMore writes the number, or the list.
func marshalOneOrMore[T any](list []T) ([]byte, error) {
	if len(list) == 1 {
		return json.Marshal(list[0])
	}
	return json.Marshal(list)
}

// limitInt32 is n, at most the largest int32.
func limitInt32(n int) int32 { return int32(min(n, math.MaxInt32)) }

// delay is the law as the workload package takes it; nil is none.
func (t *ThinkTime) delay() workload.Delay {
	if t == nil {
		return workload.Delay{}
	}
	return workload.Delay{Distribution: t.Law, Mean: t.Mean.Clock(), CV: optional.Value(t.CV)}
}
