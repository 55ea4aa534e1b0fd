package experiments

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"clifftop/sim/clock"
)

// Duration is a length of time that carries its unit: 4.2ms, 90s, 1h30m. The units are ns, us, ms,
// s, m and h.
type Duration clock.Duration

// Seconds is the duration in seconds.
func (d Duration) Seconds() float64 { return clock.Duration(d).Seconds() }

// Clock is the duration on the simulator's clock.
func (d Duration) Clock() clock.Duration { return clock.Duration(d) }

var timeUnits = []struct {
	name string
	size clock.Duration
}{
	{"h", clock.Hour}, {"m", clock.Minute}, {"s", clock.Second}, {"ms", clock.Millisecond},
	{"us", clock.Microsecond}, {"µs", clock.Microsecond}, {"ns", clock.Nanosecond},
}

const wantDuration = "a duration with a unit of ns, us, ms, s, m or h, such as 60s"

// durationPattern is the syntax of a duration.
const durationPattern = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*$`

var (
	durationSyntax = regexp.MustCompile(durationPattern)
	durationPart   = regexp.MustCompile(`([0-9.]+)([a-zµ]+)`)
)

// ParseDuration reads a duration such as 4.2ms or 1h30m; 0 needs no unit. It reports whether the
// text is one and is short enough for a run.
func ParseDuration(s string) (Duration, bool) {
	if s == "0" {
		return 0, true
	}
	if len(s) > 64 || !durationSyntax.MatchString(s) {
		return 0, false
	}
	sum := 0.0
	for _, part := range durationPart.FindAllStringSubmatch(s, -1) {
		x, err := strconv.ParseFloat(part[1], 64)
		if err != nil {
			return 0, false
		}
		for _, u := range timeUnits {
			if u.name == part[2] {
				sum += x * float64(u.size)
			}
		}
	}
	if sum > float64(clock.MaxRun) {
		return 0, false
	}
	return Duration(math.Round(sum)), true
}

// String is the duration in the largest unit that leaves at least 1 before the point, exactly.
func (d Duration) String() string {
	if d == 0 {
		return "0"
	}
	for _, u := range timeUnits {
		if clock.Duration(d) >= u.size || u.size == clock.Nanosecond {
			return strconv.FormatFloat(float64(d)/float64(u.size), 'f', -1, 64) + u.name
		}
	}
	return ""
}

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *Duration) decode(dec *decoder, n *node, key string) {
	v, ok := ParseDuration(n.text)
	switch {
	case ok && (n.kind == isText || n.kind == isNumber):
		*d = v
	case n.kind == isNumber && n.number < 0, n.kind == isText && strings.HasPrefix(n.text, "-"):
		dec.refuse(n, key, "0 or more")
	case n.kind == isNumber:
		dec.fault(n.at, key, fmt.Sprintf("%s has no unit (want %s)", short(n.text), wantDuration), "")
	case n.kind == isText && durationSyntax.MatchString(n.text):
		dec.refuse(n, key, "at most 100 days")
	case n.kind == isText:
		dec.fault(n.at, key, fmt.Sprintf("%q is not a duration (want %s)", short(n.text), wantDuration), "")
	default:
		dec.wrong(n, key, wantDuration)
	}
}

// Share is a part of a whole, more than 0 and less than 1, which may be given in percent: 0.02 or 2%.
type Share float64

const wantShare = "more than 0 and less than 1, or such as 2%"

// sharePattern is the syntax of a share in percent.
const sharePattern = `^[0-9]+(\.[0-9]+)? ?%$`

var shareSyntax = regexp.MustCompile(sharePattern)

// ParseShare reads a share, such as 0.02 or 2%.
func ParseShare(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if shareSyntax.MatchString(text) {
		v, err = strconv.ParseFloat(strings.TrimRight(text, " %"), 64)
		v /= 100
	}
	if err != nil || !(v > 0 && v < 1) {
		return 0, fmt.Errorf("%q is not allowed (want %s)", short(text), wantShare)
	}
	return v, nil
}

func (s *Share) decode(d *decoder, n *node, key string) {
	v := n.number
	switch {
	case n.kind == isText && shareSyntax.MatchString(n.text):
		v, _ = strconv.ParseFloat(strings.TrimRight(n.text, " %"), 64)
		v /= 100
	case n.kind != isNumber:
		d.wrong(n, key, wantShare)
		return
	}
	if !(v > 0 && v < 1) {
		d.refuse(n, key, wantShare)
		return
	}
	*s = Share(v)
}

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

func (t *Toggle) decode(d *decoder, n *node, key string) {
	switch {
	case n.kind == isBool && n.truth:
		*t = On
	case n.kind == isBool:
		*t = Off
	case n.kind == isText && n.text == "auto":
		*t = Auto
	default:
		d.wrong(n, key, "auto, true or false")
	}
}

// Warmup says which part at the start of a run is not measured.
type Warmup struct {
	// Auto finds the end of the warm-up in the run itself; otherwise it is Length.
	Auto   bool
	Length Duration
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

func (w *Warmup) decode(d *decoder, n *node, key string) {
	const want = "auto, none or a duration such as 30s"
	length, ok := ParseDuration(n.text)
	switch {
	case n.kind == isText && n.text == "auto":
		*w = Warmup{Auto: true}
	case n.kind == isText && n.text == "none":
		*w = Warmup{}
	case ok:
		*w = Warmup{Length: length}
	case n.kind == isText, n.kind == isNumber:
		d.refuse(n, key, want)
	default:
		d.wrong(n, key, want)
	}
}

// ThinkTime is how long a user of a closed loop waits between an answer and the next request:
// a duration, or a law with a mean.
type ThinkTime struct {
	// Law is fixed, exponential or lognormal.
	Law string `json:"distribution" one:"fixed exponential lognormal"`
	// Mean is the mean of the law.
	Mean Duration `json:"mean"`
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

func (t *ThinkTime) decode(d *decoder, n *node, key string) {
	if n.kind != isMap {
		t.Law = "fixed"
		t.Mean.decode(d, n, key)
		return
	}
	type plain ThinkTime
	p := plain{Law: "exponential"}
	d.value(n, key, &p, "")
	d.require(n, key, "", "mean")
	if (p.Law == "lognormal") != (p.CV != nil) {
		d.fault(n.at, key, "cv goes with the lognormal law, which needs it", "")
	}
	*t = ThinkTime(p)
}
