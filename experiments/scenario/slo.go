package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
	"clifftop/report"
)

// SLO is the service-level objective: limits on statistics of latency, such as ttft_p95, and the
// fraction of requests that must keep within them.
type SLO struct {
	// Limits maps METRIC_STATISTIC to its limit. The metrics are those of [report.LatencyMetrics]; the statistics mean
	// and percentiles such as p50, p95 and p99_9.
	Limits map[string]yamldoc.Duration
	// Attainment is the fraction wanted, 0 to 1; nil asks for none.
	Attainment *float64
	// WaitProbability is the greatest fraction of requests that may wait in the engine's queue for more than the end
	// of the iteration that runs when they come; nil asks for none.
	WaitProbability *float64
	// Hours is the share of hours that should meet the objective, more than 0 and less than 1; nil is 0.9. Capacities
	// and plans use it.
	Hours *float64
	// Horizon is the length of an hour; nil is 1h.
	Horizon *yamldoc.Duration
}

// The syntax of a limit's key. Limits on the time of a token may be written as a speed too.
var (
	sloTokenPattern = limitPattern(true)
	sloOtherPattern = limitPattern(false)
	sloTokenKey     = pattern.New(sloTokenPattern)
	sloOtherKey     = pattern.New(sloOtherPattern)
)

// limitPattern is the syntax of keys for the metrics that are times per token, or for the others.
func limitPattern(perToken bool) string {
	var names []string
	for _, l := range report.LatencyMetrics() {
		if l.PerToken == perToken {
			names = append(names, l.Name)
		}
	}
	return `^(` + strings.Join(names, "|") + `)_(mean|p[5-9][0-9](_[0-9]{1,3})?)$`
}

func sloKeys() []string {
	keys := []string{"attainment", "wait_probability", "hours", "horizon"}
	for _, l := range report.LatencyMetrics() {
		for _, statistic := range []string{"mean", "p50", "p90", "p95", "p99", "p99_9"} {
			keys = append(keys, l.Name+"_"+statistic)
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
	if s.Hours != nil {
		m["hours"] = *s.Hours
	}
	if s.Horizon != nil {
		m["horizon"] = *s.Horizon
	}
	return json.Marshal(m)
}

func (s SLO) empty() bool {
	return len(s.Limits) == 0 && s.Attainment == nil && s.WaitProbability == nil
}

// Objective is what the report judges by, nil for none.
func (s SLO) Objective() (*report.SLO, error) {
	if s.empty() {
		return nil, nil
	}
	for _, share := range []*float64{s.Attainment, s.WaitProbability} {
		if share != nil && !(*share >= 0 && *share <= 1) {
			return nil, fmt.Errorf("%v is not allowed (want a fraction from 0 to 1)", *share)
		}
	}
	slo := &report.SLO{Attainment: optional.Value(s.Attainment), WaitProbability: s.WaitProbability}
	for _, key := range slices.Sorted(maps.Keys(s.Limits)) {
		o, err := report.ParseObjective(key)
		if err != nil || s.Limits[key] < 0 {
			return nil, fmt.Errorf("%s: %v is not allowed (want a metric and a statistic such as ttft_p95, and a "+
				"limit of 0 or more)", key, s.Limits[key])
		}
		o.Limit = s.Limits[key].Clock()
		slo.Objectives = append(slo.Objectives, o)
	}
	return slo, nil
}

// decodeLimit reads a limit on latency. Of the time of a token a number without a unit could be either that or a speed.
func decodeLimit(d *yamldoc.Decoder, f yamldoc.Field, full string) (limit yamldoc.Duration) {
	if n := f.Value; sloTokenKey.Get().MatchString(f.Name) {
		speed, ok := yamldoc.ParseTokenTime(n.Text)
		switch {
		case n.Kind == yamldoc.Text && ok && strings.HasSuffix(n.Text, "tok/s"):
			return speed
		case n.Kind == yamldoc.Number && n.Number > 0:
			d.Fault(n.At, full, fmt.Sprintf("%s has no unit (want a time per token such as 200ms, or a speed such "+
				"as 5tok/s)",
				yamldoc.Short(n.Text)), "")
			return 0
		}
	}
	d.Value(f.Value, full, &limit, "")
	return limit
}

func (s *SLO) Decode(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	*s = SLO{Limits: map[string]yamldoc.Duration{}}
	if n.Kind != yamldoc.Map {
		d.Wrong(n, key, "a map such as {ttft_p95: 800ms}")
		return
	}
	seen := map[string]yamldoc.Place{}
	for _, f := range n.Fields {
		full := yamldoc.Join(key, f.Name)
		first, twice := seen[f.Name]
		seen[f.Name] = f.At
		switch {
		case twice:
			d.Fault(f.At, full, fmt.Sprintf("the key is given twice (first at %v)", first), "")
		case f.Value.Kind == yamldoc.Null:
		case f.Name == "attainment":
			d.Value(f.Value, full, &s.Attainment, `range:"[0,1]"`)
		case f.Name == "wait_probability":
			d.Value(f.Value, full, &s.WaitProbability, `range:"[0,1]"`)
		case f.Name == "hours":
			d.Value(f.Value, full, &s.Hours, `range:"(0,1)"`)
		case f.Name == "horizon":
			d.Value(f.Value, full, &s.Horizon, `range:"(0,)"`)
		case sloTokenKey.Get().MatchString(f.Name) || sloOtherKey.Get().MatchString(f.Name):
			s.Limits[f.Name] = decodeLimit(d, f, full)
		default:
			d.Fault(f.At, full, "unknown key (want a metric and a statistic, such as ttft_p95, or attainment or "+
				"wait_probability)", yamldoc.DidYouMean(f.Name, sloKeys()))
		}
	}
}
