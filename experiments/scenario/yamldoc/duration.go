package yamldoc

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"clifftop/internal/pattern"
	"clifftop/sim/clock"
)

// SpeedPattern is the syntax of a speed, which means the time from one token to the next.
const SpeedPattern = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)tok/s$`

var speedSyntax = pattern.New(SpeedPattern)

// ParseTokenTime reads the time of a token: a duration such as 200ms, or a speed such as 5tok/s. It reports whether
// the text is one of them.
func ParseTokenTime(text string) (Duration, bool) {
	if !speedSyntax.Get().MatchString(text) {
		return ParseDuration(text)
	}
	speed, err := strconv.ParseFloat(strings.TrimSuffix(text, "tok/s"), 64)
	d := clock.FromSeconds(1 / speed)
	if err != nil || !(speed > 0) || d < 1 || d > clock.MaxRun {
		return 0, false
	}
	return Duration(d), true
}

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

// DurationPattern is the syntax of a duration.
const DurationPattern = `^` + numberAndUnit + `(` + numberAndUnit + `)*$`

const numberAndUnit = `([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)`

var (
	durationSyntax = pattern.New(DurationPattern)
	durationPart   = pattern.New(`([0-9.]+)([a-zµ]+)`)
)

// ParseDuration reads a duration such as 4.2ms or 1h30m; 0 needs no unit. It reports whether the
// text is one and is short enough for a run.
func ParseDuration(s string) (Duration, bool) {
	if s == "0" {
		return 0, true
	}
	if len(s) > 64 || !durationSyntax.Get().MatchString(s) {
		return 0, false
	}
	sum := 0.0
	for _, part := range durationPart.Get().FindAllStringSubmatch(s, -1) {
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

// String is the duration in the largest unit that leaves at least 1 before the point, if that is a short text from
// which the same duration is read; otherwise it is the shortest such text. A third of an hour is 20m, not
// 0.3333333333333333h.
func (d Duration) String() string {
	const short = 12 // characters
	if d == 0 {
		return "0"
	}
	best := ""
	for _, u := range timeUnits {
		if clock.Duration(d) < u.size && u.size != clock.Nanosecond {
			continue
		}
		text := strconv.FormatFloat(float64(d)/float64(u.size), 'f', -1, 64) + u.name
		if back, ok := ParseDuration(text); !ok || back != d {
			continue
		}
		if len(text) <= short {
			return text
		}
		if best == "" || len(text) < len(best) {
			best = text
		}
	}
	if best == "" { // longer than a run can be
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"
	}
	return best
}

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

func (d *Duration) Decode(dec *Decoder, n *Node, key string) {
	v, ok := ParseDuration(n.Text)
	switch {
	case ok && (n.Kind == Text || n.Kind == Number):
		*d = v
	case n.Kind == Number && n.Number < 0, n.Kind == Text && strings.HasPrefix(n.Text, "-"):
		dec.Refuse(n, key, "0 or more")
	case n.Kind == Number:
		dec.Fault(n.At, key, fmt.Sprintf("%s has no unit (want %s)", Short(n.Text), wantDuration), "")
	case n.Kind == Text && durationSyntax.Get().MatchString(n.Text):
		dec.Refuse(n, key, "at most 100 days")
	case n.Kind == Text:
		dec.Fault(n.At, key, fmt.Sprintf("%q is not a duration (want %s)", Short(n.Text), wantDuration), "")
	default:
		dec.Wrong(n, key, wantDuration)
	}
}
