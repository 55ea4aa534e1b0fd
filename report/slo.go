package report

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"clifftop/report/layout"
	"clifftop/sim/clock"
)

// SLO is a service-level objective: limits on statistics of the run, and shares that must be kept.
// Each limit also judges single requests: one is good when it completed and its own TTFT, TPOT,
// E2E and queue time are within the limits given for that metric, whatever their percentile. A
// limit on ITL judges a request by its mean gap, its TPOT. A request of one token meets every limit
// on TPOT and ITL.
type SLO struct {
	Objectives []Objective
	// Attainment is the fraction of offered requests that must be good; 0 asks for none.
	Attainment float64
	// WaitProbability is the greatest fraction of requests that may wait in the queue for more than the end of the
	// iteration that runs when they come; nil asks for none.
	WaitProbability *float64
}

// Limits reports whether there is anything to judge; it is false for nil.
func (s *SLO) Limits() bool {
	return s != nil && (len(s.Objectives) > 0 || s.Attainment > 0 || s.WaitProbability != nil)
}

// Objective limits one statistic of a latency.
type Objective struct {
	Metric     string  // the name of one of [LatencyMetrics]
	Percentile float64 // above 0 and below 100; 0 is the mean
	Limit      clock.Duration
}

// Statistic returns the limited statistic of the metric: "mean", "p95", "p99_9".
func (o Objective) Statistic() string {
	if o.Percentile == 0 {
		return "mean"
	}
	return "p" + strings.Replace(strconv.FormatFloat(o.Percentile, 'f', -1, 64), ".", "_", 1)
}

// AnyBad returns the probability that at least one of k independent requests is bad, if each is bad with the given
// probability. Percentiles count requests: a user with many requests meets the tail more often than a percentile
// suggests.
func AnyBad(probability float64, k int) float64 { return 1 - math.Pow(1-probability, float64(k)) }

// Key is the objective's name, such as "ttft_p95".
func (o Objective) Key() string { return o.Metric + "_" + o.Statistic() }

// ParseObjective reads a key such as "ttft_p95", the inverse of [Objective.Key]. The limit is left to the caller.
func ParseObjective(key string) (Objective, error) {
	metric, statistic, _ := strings.Cut(key, "_")
	if _, ok := latencyMetric(metric); !ok {
		var names []string
		for _, l := range LatencyMetrics() {
			names = append(names, l.Name)
		}
		last := len(names) - 1
		return Objective{}, fmt.Errorf("%q is not a metric (want %s or %s)", metric, strings.Join(names[:last], ", "),
			names[last])
	}
	if statistic == "mean" {
		return Objective{Metric: metric}, nil
	}
	percent, ok := strings.CutPrefix(statistic, "p")
	p, err := strconv.ParseFloat(strings.Replace(percent, "_", ".", 1), 64)
	if !ok || err != nil || !(p >= 50 && p < 100) {
		return Objective{}, fmt.Errorf("%q is not a statistic (want mean, or a percentile from p50 to p99_999)",
			statistic)
	}
	return Objective{Metric: metric, Percentile: p}, nil
}

// LimitName is the key of a limit in words, such as "TTFT p95"; that of a class keeps the class before it.
func LimitName(key string) string {
	if i := strings.LastIndex(key, ": "); i >= 0 {
		return key[:i+2] + LimitName(key[i+2:])
	}
	o, err := ParseObjective(key)
	if err != nil {
		return strings.ReplaceAll(key, "_", " ")
	}
	metric, _ := latencyMetric(o.Metric)
	return metric.Label + " " + strings.ReplaceAll(o.Statistic(), "_", ".")
}

// MarshalJSON writes a map: limits by key, such as "ttft_p95": "800ms", and the shares where they are asked for.
func (s *SLO) MarshalJSON() ([]byte, error) {
	m := make(map[string]any)
	for _, o := range s.Objectives {
		m[o.Key()] = o.Limit.String()
	}
	if s.Attainment > 0 {
		m["attainment"] = s.Attainment
	}
	if s.WaitProbability != nil {
		m["wait_probability"] = *s.WaitProbability
	}
	return json.Marshal(m)
}

// Text is the objective in words.
func (s *SLO) Text() string {
	var parts []string
	for _, o := range s.Objectives {
		parts = append(parts, fmt.Sprintf("%s ≤ %s", LimitName(o.Key()), layout.Milliseconds(o.Limit.Seconds()*1e3)))
	}
	if a := s.Attainment; a > 0 {
		parts = append(parts, fmt.Sprintf("attainment %s", layout.Percent(a)))
	}
	if x := s.WaitProbability; x != nil {
		parts = append(parts, fmt.Sprintf("at most %s wait", layout.Percent(*x)))
	}
	return strings.Join(parts, ", ")
}
