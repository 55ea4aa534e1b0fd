package report

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"clifftop/sim/clock"
)

// SLO is a service-level objective: limits on statistics of the run, and shares that must be kept.
// Each limit also judges single requests: one is good when it completed and its own TTFT, TPOT,
// E2E and queue time are within the limits given for that metric, whatever their percentile. A
// limit on ITL judges a request by its mean gap, its TPOT. A request of one token meets every limit
// on TPOT and ITL.
type SLO struct {
	Objectives []Objective // in the order of metrics, then as given
	// Attainment is the fraction of offered requests that must be good; 0 asks for none.
	Attainment float64
	// WaitProbability is the greatest fraction of requests that may wait in the queue at
	// all; nil asks for none.
	WaitProbability *float64
}

// Objective limits one statistic of a latency.
type Objective struct {
	Metric string // ttft, tpot, itl, e2e or queue
	// Quantile is the fraction of the percentile, or 0 for the mean.
	Quantile float64
	Limit    clock.Duration
	stat     string // mean, p95, p99_9 …
	text     string // the limit as given
}

// Key is the objective's name, such as "ttft_p95".
func (o Objective) Key() string { return o.Metric + "_" + o.stat }

var sloMetrics = []string{"ttft", "tpot", "itl", "e2e", "queue"}

// ParseSLO reads the limits by key: {ttft|tpot|itl|e2e|queue}_{mean|p50…p99_9} with a duration
// such as "800ms", attainment and wait_probability with a fraction. All faults are reported.
func ParseSLO(limits map[string]string) (*SLO, error) {
	var slo SLO
	var faults []error
	keys := make([]string, 0, len(limits))
	for key := range limits {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := slo.add(key, limits[key]); err != nil {
			faults = append(faults, err)
		}
	}
	slices.SortStableFunc(slo.Objectives, func(a, b Objective) int {
		return slices.Index(sloMetrics, a.Metric) - slices.Index(sloMetrics, b.Metric)
	})
	return &slo, errors.Join(faults...)
}

// ParseSLOList reads limits from one line: "ttft_p95=800ms,tpot_p95=80ms,attainment=0.95".
func ParseSLOList(s string) (*SLO, error) {
	limits := make(map[string]string)
	for item := range strings.SplitSeq(s, ",") {
		key, value, ok := strings.Cut(item, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			return nil, fmt.Errorf("slo: %q is not KEY=LIMIT (want one such as ttft_p95=800ms)", item)
		}
		if _, twice := limits[key]; twice {
			return nil, fmt.Errorf("slo: %s is given twice", key)
		}
		limits[key] = strings.TrimSpace(value)
	}
	return ParseSLO(limits)
}

func (s *SLO) add(key, value string) error {
	switch key {
	case "attainment", "wait_probability":
		v, err := strconv.ParseFloat(value, 64)
		if err != nil || !(v >= 0 && v <= 1) {
			return fmt.Errorf("slo.%s: %q is not allowed (want a fraction from 0 to 1)", key, value)
		}
		if key == "attainment" {
			s.Attainment = v
		} else {
			s.WaitProbability = &v
		}
		return nil
	}
	metric, stat, _ := strings.Cut(key, "_")
	quantile, ok := parseStat(stat)
	if !ok || !slices.Contains(sloMetrics, metric) {
		return fmt.Errorf("slo: unknown key %q (want ttft, tpot, itl, e2e or queue with _mean, _p50 … _p99_9; attainment; wait_probability)", key)
	}
	limit, err := ParseDuration(value)
	if err != nil {
		return fmt.Errorf("slo.%s: %w", key, err)
	}
	s.Objectives = append(s.Objectives, Objective{Metric: metric, Quantile: quantile, Limit: limit, stat: stat, text: value})
	return nil
}

// parseStat turns "mean" into 0 and "p99_9" into 0.999.
func parseStat(stat string) (quantile float64, ok bool) {
	if stat == "mean" {
		return 0, true
	}
	digits, ok := strings.CutPrefix(stat, "p")
	if !ok || strings.ContainsAny(digits, ".+-eExX") {
		return 0, false
	}
	percent, err := strconv.ParseFloat(strings.Replace(digits, "_", ".", 1), 64)
	return percent / 100, err == nil && percent > 0 && percent < 100
}

// ParseDuration reads a length of time with its unit: ns, us, ms, s, m or h. It is not negative; only
// 0 may go without a unit.
func ParseDuration(s string) (clock.Duration, error) {
	units := []struct {
		name string
		d    clock.Duration
	}{
		{"ns", clock.Nanosecond}, {"us", clock.Microsecond}, {"µs", clock.Microsecond}, {"ms", clock.Millisecond},
		{"s", clock.Second}, {"m", clock.Minute}, {"h", clock.Hour},
	}
	for _, u := range units {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		if v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64); err == nil && v >= 0 && v*u.d.Seconds() <= clock.MaxRun.Seconds() {
			return clock.FromSeconds(v * u.d.Seconds()), nil
		}
	}
	if s == "0" {
		return 0, nil
	}
	return 0, fmt.Errorf("%q is not a duration (want a number with a unit: ns us ms s m h)", s)
}

// limits are the strictest limits on single requests; clock.Duration(clock.Never) where there is none.
type limits struct{ ttft, tpot, e2e, queue clock.Duration }

const noLimit = clock.Duration(clock.Never)

func (s *SLO) limits() limits {
	l := limits{noLimit, noLimit, noLimit, noLimit}
	if s == nil {
		return l
	}
	for _, o := range s.Objectives {
		of := map[string]*clock.Duration{"ttft": &l.ttft, "tpot": &l.tpot, "itl": &l.tpot, "e2e": &l.e2e, "queue": &l.queue}[o.Metric]
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

// settings are the objective as results repeat it.
func (s *SLO) settings() map[string]any {
	if s == nil {
		return nil
	}
	m := make(map[string]any)
	for _, o := range s.Objectives {
		m[o.Key()] = o.text
	}
	if s.Attainment > 0 {
		m["attainment"] = s.Attainment
	}
	if s.WaitProbability != nil {
		m["wait_probability"] = *s.WaitProbability
	}
	return m
}

// of is the statistic that the objective limits, of values in picoseconds, which it overwrites; nil if there are none.
func (o *Objective) of(values []float64) *float64 {
	switch {
	case len(values) == 0:
		return nil
	case o.Quantile == 0:
		return number(mean(values))
	}
	return number(percentiles(values, len(values), o.Quantile)[0])
}

// ofHistogram is the same of what a histogram recorded, in picoseconds after multiplication by scale.
func (o *Objective) ofHistogram(h *Histogram, scale float64) *float64 {
	if o.Quantile == 0 {
		return number(h.Mean() * scale)
	}
	return number(h.Quantile(o.Quantile) * scale)
}
