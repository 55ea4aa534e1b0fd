package collect

import (
	"math"
	"math/bits"
	"strconv"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
)

// limits are the strictest limits on single requests, by metric; noLimit where there is none.
type limits [len(latencyNames)]clock.Duration

const noLimit = clock.Duration(clock.Never)

func newLimits(s *report.SLO) limits {
	l := limits{noLimit, noLimit, noLimit, noLimit}
	if s == nil {
		return l
	}
	for _, o := range s.Objectives {
		metric := latencyNamed(o.Metric)
		if o.Metric == "itl" { // a request is judged by the mean of its gaps
			metric = tpot
		}
		if metric < 0 {
			panic("report: an objective limits " + strconv.Quote(o.Metric) + ", which is not a metric")
		}
		l[metric] = min(l[metric], o.Limit)
	}
	return l
}

func (l *limits) good(s *sample) bool {
	if s.ttft > l[ttft] || s.e2e > l[e2e] || s.queue > l[queue] {
		return false
	}
	if s.tokens <= 1 || l[tpot] == noLimit {
		return true
	}
	// (e2e-ttft)/(tokens-1) ≤ limit, without rounding.
	hi, lo := bits.Mul64(uint64(l[tpot]), uint64(s.tokens-1))
	return hi > 0 || uint64(s.e2e-s.ttft) <= lo
}

// statistic is what the objective limits, in picoseconds, when quick requests that did not complete had taken no
// time at all and others never end. Of the inter-token gaps, each is one.
func (c summariser) statistic(o *report.Objective, w *window, d *detail, quick, never int64) float64 {
	q := o.Percentile / 100
	if o.Metric == "itl" {
		return d.itl.QuantileAmong(q, quick, never) / clock.FemtosPerPico
	}
	metric := latencyNamed(o.Metric)
	if c.folded || w.sketched {
		return d.sketch[metric].QuantileAmong(q, quick, never)
	}
	values := make([]float64, quick, int(quick)+c.kept.n)
	c.kept.in(w.start, w.until, func(x *sample) {
		if v, ok := x.value(metric); ok {
			values = append(values, v)
		}
	})
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
