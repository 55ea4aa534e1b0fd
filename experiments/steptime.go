package experiments

import (
	"encoding/json"
	"fmt"

	"clifftop/model"
)

// StepTime is the model of an iteration's length: a name, or a map of one name to its constants.
type StepTime struct {
	// Kind is kernels (calibrated on measured kernels), roofline (peaks and a few efficiencies), table (measured
	// iterations) or linear.
	Kind     string
	Linear   LinearStep
	Roofline RooflineStep
	Table    TableStep
}

// LinearStep makes every iteration last A + B·n, n being the sequences in it, whatever their
// lengths. The KV pool is then unlimited and the overheads are 0, unless they are set.
type LinearStep struct {
	// AMilliseconds is the length of an iteration without sequences.
	AMilliseconds float64 `json:"a_ms" range:"[0,1000000]"`
	// BMicroseconds is added for each sequence.
	BMicroseconds float64 `json:"b_us" range:"[0,1000000000]"`
}

func (l *LinearStep) check(d *decoder, n *node, key string) {
	zero := func(name string) bool {
		v := n.get(name)
		return v == nil || v.kind == isNull || v.kind == isNumber && v.number == 0
	}
	if zero("a_ms") && zero("b_us") {
		d.fault(n.at, key, "a_ms and b_us are both 0 (want an iteration that takes time)", "")
	}
}

// stepKinds are the names of the step-time models.
var stepKinds = []string{"kernels", "roofline", "table", "linear"}

// MarshalJSON writes the name, or a map of it to its constants.
func (s StepTime) MarshalJSON() ([]byte, error) {
	switch {
	case s.Kind == "linear":
		return json.Marshal(map[string]any{s.Kind: s.Linear})
	case s.Kind == "roofline":
		return json.Marshal(map[string]any{s.Kind: s.Roofline})
	case s.Kind == "table":
		return json.Marshal(map[string]any{s.Kind: s.Table})
	}
	return json.Marshal(s.Kind)
}

func (s *StepTime) decode(d *decoder, n *node, key string) {
	const want = "kernels, roofline, or a map of one name such as {linear: {a_ms: 10, b_us: 100}} or {table: steps.csv}"
	*s = StepTime{Kind: "kernels", Roofline: defaultRoofline()}
	switch {
	case n.kind == isText && n.text == "linear":
		d.fault(n.at, key, "linear needs its constants (want {linear: {a_ms: 10, b_us: 100}})", "")
	case n.kind == isText && n.text == "table":
		d.fault(n.at, key, "table needs its file (want {table: steps.csv})", "")
	case n.kind == isText && (n.text == "kernels" || n.text == "roofline"):
		s.Kind = n.text
	case n.kind == isText:
		d.fault(n.at, key, fmt.Sprintf("%q is not known (want %s)", short(n.text), want), DidYouMean(n.text, stepKinds))
	case n.kind != isMap:
		d.wrong(n, key, want)
	case len(n.fields) != 1:
		d.fault(n.at, key, fmt.Sprintf("the map has %d keys (want %s)", len(n.fields), want), "")
	default:
		s.decodeKind(d, n.fields[0], join(key, n.fields[0].name))
	}
}

func (s *StepTime) decodeKind(d *decoder, f field, key string) {
	s.Kind = f.name
	switch f.name {
	case "kernels":
		d.value(f.value, key, &struct{}{}, "")
	case "roofline":
		d.value(f.value, key, &s.Roofline, "")
	case "table":
		d.value(f.value, key, &s.Table, "")
		if f.value.kind == isNull {
			d.fault(f.at, key, "table needs its file (want {table: steps.csv})", "")
		}
	case "linear":
		if f.value.kind == isNull {
			f.value.kind = isMap
		}
		d.value(f.value, key, &s.Linear, "")
	default:
		s.Kind = "kernels"
		d.fault(f.at, key, "unknown key (want "+list(stepKinds)+")", DidYouMean(f.name, stepKinds))
	}
}

// RooflineStep holds the constants of the roofline. Those left out keep their defaults.
type RooflineStep struct {
	// PeakFraction is the part of the datasheet's arithmetic that is reached.
	PeakFraction float64 `json:"peak_fraction" range:"(0,1]"`
	// BandwidthFraction is the part of the datasheet's memory bandwidth that is reached.
	BandwidthFraction float64 `json:"bandwidth_fraction" range:"(0,1]"`
	// LayerTime is added for every layer.
	LayerTime Duration `json:"layer_time" range:"[0,1]"`
	// StepTime is added for every iteration.
	StepTime Duration `json:"step_time" range:"[0,1]"`
}

func defaultRoofline() RooflineStep {
	o := model.DefaultRooflineOptions()
	return RooflineStep{o.PeakFraction, o.BandwidthFraction, Duration(o.LayerTime), Duration(o.StepTime)}
}
