package experiments

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"clifftop/report"
	"clifftop/sim/clock"
)

// SLO is the service-level objective: limits on statistics of latency, such as ttft_p95, and the
// fraction of requests that must keep within them.
type SLO struct {
	// Limits maps METRIC_STATISTIC to its limit. The metrics are ttft, tpot, itl, e2e and queue; the
	// statistics mean and percentiles such as p50, p95 and p99_9.
	Limits map[string]Duration
	// Attainment is the fraction wanted, 0 to 1; nil asks for none.
	Attainment *float64
	// WaitProbability is the greatest fraction of requests that may wait in the engine's queue for more than the end
	// of the iteration that runs when they come; nil asks for none.
	WaitProbability *float64
}

// The syntax of a limit's key. Limits on the time of a token may be written as a speed too.
const (
	sloStatistic    = `_(mean|p([1-9]|[1-9][0-9])(_[0-9]{1,3})?)$`
	sloPattern      = `^(ttft|tpot|itl|e2e|queue)` + sloStatistic
	sloTokenPattern = `^(tpot|itl)` + sloStatistic
	sloOtherPattern = `^(ttft|e2e|queue)` + sloStatistic
)

// speedPattern is the syntax of a speed, which means the time from one token to the next.
const speedPattern = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)tok/s$`

var speedSyntax = regexp.MustCompile(speedPattern)

var (
	sloKey      = regexp.MustCompile(sloPattern)
	sloTokenKey = regexp.MustCompile(sloTokenPattern)
)

// ParseTokenTime reads the time of a token: a duration such as 200ms, or a speed such as 5tok/s. It reports whether the text
// is one of them.
func ParseTokenTime(text string) (Duration, bool) {
	if !speedSyntax.MatchString(text) {
		return ParseDuration(text)
	}
	speed, err := strconv.ParseFloat(strings.TrimSuffix(text, "tok/s"), 64)
	d := clock.FromSeconds(1 / speed)
	if err != nil || !(speed > 0) || d < 1 || d > clock.MaxRun {
		return 0, false
	}
	return Duration(d), true
}

// sloKeys are all keys that an SLO can have.
func sloKeys() []string {
	keys := []string{"attainment", "wait_probability"}
	for _, metric := range []string{"ttft", "tpot", "itl", "e2e", "queue"} {
		for _, statistic := range []string{"mean", "p50", "p90", "p95", "p99", "p99_9"} {
			keys = append(keys, metric+"_"+statistic)
		}
	}
	return keys
}

// MarshalJSON writes the objective as it stands in a scenario; null without one.
func (s SLO) MarshalJSON() ([]byte, error) {
	if s.empty() {
		return []byte("null"), nil
	}
	m := map[string]any{}
	for key, limit := range s.Limits {
		m[key] = limit
	}
	if s.Attainment != nil {
		m["attainment"] = *s.Attainment
	}
	if s.WaitProbability != nil {
		m["wait_probability"] = *s.WaitProbability
	}
	return json.Marshal(m)
}

func (s SLO) empty() bool {
	return len(s.Limits) == 0 && s.Attainment == nil && s.WaitProbability == nil
}

// objective is what the report judges by, nil for none.
func (s SLO) objective() (*report.SLO, error) {
	if s.empty() {
		return nil, nil
	}
	for _, share := range []*float64{s.Attainment, s.WaitProbability} {
		if share != nil && !(*share >= 0 && *share <= 1) {
			return nil, fmt.Errorf("%v is not allowed (want a fraction from 0 to 1)", *share)
		}
	}
	slo := &report.SLO{Attainment: value(s.Attainment), WaitProbability: s.WaitProbability}
	for _, key := range slices.Sorted(maps.Keys(s.Limits)) {
		o, err := report.ParseObjective(key)
		if err != nil || s.Limits[key] < 0 {
			return nil, fmt.Errorf("%s: %v is not allowed (want a metric and a statistic such as ttft_p95, and a limit of 0 or more)", key, s.Limits[key])
		}
		o.Limit = s.Limits[key].Clock()
		slo.Objectives = append(slo.Objectives, o)
	}
	return slo, nil
}

// decodeLimit reads a limit on latency. Of the time of a token a number without a unit could be either that or a speed.
func decodeLimit(d *decoder, f field, full string) (limit Duration) {
	if n := f.value; sloTokenKey.MatchString(f.name) {
		speed, ok := ParseTokenTime(n.text)
		switch {
		case n.kind == isText && ok && strings.HasSuffix(n.text, "tok/s"):
			return speed
		case n.kind == isNumber && n.number > 0:
			d.fault(n.at, full, fmt.Sprintf("%s has no unit (want a time per token such as 200ms, or a speed such as 5tok/s)", short(n.text)), "")
			return 0
		}
	}
	d.value(f.value, full, &limit, "")
	return limit
}

func (s *SLO) decode(d *decoder, n *node, key string) {
	*s = SLO{Limits: map[string]Duration{}}
	if n.kind != isMap {
		d.wrong(n, key, "a map such as {ttft_p95: 800ms}")
		return
	}
	seen := map[string]place{}
	for _, f := range n.fields {
		full := join(key, f.name)
		first, twice := seen[f.name]
		seen[f.name] = f.at
		switch {
		case twice:
			d.fault(f.at, full, fmt.Sprintf("the key is given twice (first at %v)", first), "")
		case f.value.kind == isNull:
		case f.name == "attainment":
			d.value(f.value, full, &s.Attainment, `range:"[0,1]"`)
		case f.name == "wait_probability":
			d.value(f.value, full, &s.WaitProbability, `range:"[0,1]"`)
		case sloKey.MatchString(f.name):
			s.Limits[f.name] = decodeLimit(d, f, full)
		default:
			d.fault(f.at, full, "unknown key (want a metric and a statistic, such as ttft_p95, or attainment or wait_probability)", DidYouMean(f.name, sloKeys()))
		}
	}
}

// Objective is what reports judge by; nil without one.
func (s SLO) Objective() (*report.SLO, error) { return s.objective() }
