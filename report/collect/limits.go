package collect

import (
	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
)

// limitResults judges the requests that arrived in the window against every limit. Those that ended without completing
// count as infinitely slow. The outcome of those still in the system when the run stopped is unknown.
func (c summariser) limitResults(w *window, sum *bucket, d *detail) []report.LimitResult {
	slo := c.opts.SLO
	unfinished := sum.arrivals - sum.samples - sum.failures
	never := sum.failures + unfinished
	results := []report.LimitResult{}
	verdict := func(surely, perhaps bool) *bool {
		if !surely && perhaps {
			return nil
		}
		return &surely
	}
	share := func(key string, within, best int64, target float64, holds func(float64) bool) {
		all := float64(sum.arrivals)
		l := report.LimitResult{Key: key, Target: &target, N: sum.arrivals, Fraction: stats.Ratio(float64(within), all)}
		l.Met = verdict(holds(float64(within)/all), holds(float64(best)/all))
		results = append(results, l)
	}
	for i := range slo.Objectives {
		o := &slo.Objectives[i]
		l := report.LimitResult{Key: o.Key(), LimitMs: stats.Finite(milliseconds(float64(o.Limit)))}
		value := c.statistic(o, w, d, 0, never)
		surely := value <= float64(o.Limit)
		l.Met = verdict(surely, surely || unfinished > 0 &&
			c.statistic(o, w, d, unfinished, sum.failures) <= float64(o.Limit))
		within, n := c.within(o, w, d)
		if l.N = n + never; l.N > 0 {
			l.ValueMs = stats.Finite(milliseconds(value))
		}
		l.Fraction = stats.Ratio(float64(within), float64(l.N))
		if o.Percentile > 0 {
			l.Target = stats.Finite(o.Percentile / 100)
		}
		results = append(results, l)
	}
	if target := slo.Attainment; target > 0 {
		share("attainment", sum.good, sum.good+unfinished, target, func(x float64) bool { return x >= target })
	}
	if target := slo.WaitProbability; target != nil {
		share("wait_probability", sum.waited+never, sum.waited+sum.failures, *target, func(x float64) bool {
			return x <= *target
		})
	}
	return results
}

func milliseconds(picos float64) float64 { return picos / float64(clock.Millisecond) }

// within counts the completed requests of the window within a limit, or the gaps for ITL, and all of them.
func (c summariser) within(o *report.Objective, w *window, d *detail) (within, n int64) {
	if o.Metric == "itl" {
		return d.itl.AtMost(int64(o.Limit) * clock.FemtosPerPico), int64(d.itl.Count())
	}
	metric := latencyNamed(o.Metric)
	if c.folded || w.sketched {
		h := &d.sketch[metric]
		return h.AtMost(int64(o.Limit)), int64(h.Count())
	}
	c.kept.in(w.start, w.until, func(x *sample) {
		if v, ok := x.value(metric); ok {
			n++
			if v <= float64(o.Limit) {
				within++
			}
		}
	})
	return within, n
}
