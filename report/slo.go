package report

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"clifftop/report/layout"
	"clifftop/report/stats"
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

// Objective limits one statistic of a latency.
type Objective struct {
	Metric     string  // ttft, tpot, itl, e2e or queue
	Percentile float64 // above 0 and below 100; 0 is the mean
	Limit      clock.Duration
}

// Statistic is what of the metric is limited: "mean", "p95", "p99_9".
func (o Objective) Statistic() string {
	if o.Percentile == 0 {
		return "mean"
	}
	return "p" + strings.Replace(strconv.FormatFloat(o.Percentile, 'f', -1, 64), ".", "_", 1)
}

// AnyBad is the probability that at least one of k requests is bad, if each is so with the given probability, by
// itself. Percentiles are of requests: who sends many meets the tail sooner than they suggest.
func AnyBad(probability float64, k int) float64 { return 1 - math.Pow(1-probability, float64(k)) }

// Key is the objective's name, such as "ttft_p95".
func (o Objective) Key() string { return o.Metric + "_" + o.Statistic() }

// ParseObjective reads a key such as "ttft_p95", the inverse of [Objective.Key]. The limit is left to the caller.
func ParseObjective(key string) (Objective, error) {
	metric, statistic, _ := strings.Cut(key, "_")
	if !slices.Contains([]string{"ttft", "tpot", "itl", "e2e", "queue"}, metric) {
		return Objective{}, fmt.Errorf("%q is not a metric (want ttft, tpot, itl, e2e or queue)", metric)
	}
	if statistic == "mean" {
		return Objective{Metric: metric}, nil
	}
	percent, ok := strings.CutPrefix(statistic, "p")
	p, err := strconv.ParseFloat(strings.Replace(percent, "_", ".", 1), 64)
	if !ok || err != nil || !(p > 0 && p < 100) {
		return Objective{}, fmt.Errorf("%q is not a statistic (want mean, or a percentile such as p95 or p99_9)", statistic)
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
	metric := o.Metric
	if metric != "queue" {
		metric = strings.ToUpper(metric)
	}
	return metric + " " + strings.ReplaceAll(o.Statistic(), "_", ".")
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

// limits are the strictest limits on single requests; noLimit where there is none.
type limits struct{ ttft, tpot, e2e, queue clock.Duration }

const noLimit = clock.Duration(clock.Never)

func newLimits(s *SLO) limits {
	l := limits{noLimit, noLimit, noLimit, noLimit}
	if s == nil {
		return l
	}
	for _, o := range s.Objectives {
		of := map[string]*clock.Duration{"ttft": &l.ttft, "tpot": &l.tpot, "itl": &l.tpot, "e2e": &l.e2e, "queue": &l.queue}[o.Metric]
		if of == nil {
			panic("report: an objective limits " + strconv.Quote(o.Metric) + ", which is no metric")
		}
		*of = min(*of, o.Limit)
	}
	return l
}

func (l *limits) good(s *sample) bool {
	if s.ttft > l.ttft || s.e2e > l.e2e || s.queue > l.queue {
		return false
	}
	if s.tokens <= 1 || l.tpot == noLimit {
		return true
	}
	// (e2e-ttft)/(tokens-1) ≤ limit, without rounding.
	hi, lo := bits.Mul64(uint64(l.tpot), uint64(s.tokens-1))
	return hi > 0 || uint64(s.e2e-s.ttft) <= lo
}

// QuantileAmong is what the objective limits, in picoseconds, when quick requests that did not complete had taken no
// time at all and others never end. Of the inter-token gaps, each is one.
func (c *Collector) statistic(o *Objective, w *window, d *detail, quick, never int64) float64 {
	q := o.Percentile / 100
	if o.Metric == "itl" {
		return d.itl.QuantileAmong(q, quick, never) / clock.FemtosPerPico
	}
	metric := map[string]int{"ttft": ttft, "tpot": tpot, "e2e": e2e, "queue": queue}[o.Metric]
	if c.folded {
		return d.sketch[metric].QuantileAmong(q, quick, never)
	}
	values := c.values(make([]float64, quick, int(quick)+c.kept.n), metric, w)
	switch {
	case len(values) == 0 && never == 0:
		return 0
	case q > 0:
		return stats.Percentiles(values, len(values)+int(never), q)[0]
	case never > 0:
		return math.Inf(1)
	}
	return stats.Mean(values)
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
