package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Thresholds of the analysis of a curve. They are fractions unless said otherwise.
const (
	quarter    = .25 // of the throughput gained per unit of load at the lowest load: what is left at the knee
	slowing    = .75 // of the same: throughput no longer grows with load
	noise      = .05 // of the peak's throughput, where replications do not tell better
	binding    = .10 // of the time that requests wait for a resource: it binds
	saturated  = .99 // of the time that the GPU is busy
	swinging   = .10 // standard deviation of KV usage over time
	nearlyFull = .90 // of the KV pool
	wasteful   = .01 // of computed tokens that are recomputed
	hitLoss    = .10 // fall of the prefix hit rate
	spike      = 2.0 // factor by which p99 grows, while
	calm       = 1.5 // p50 grows by this factor at most
)

// NewCurve puts the points of a sweep in order and says what they show together. over names what
// varies: a load, if its last part is "rate" or "users", or else another number, of which a knee and a gain
// per unit mean nothing. What cannot be told is nil.
func NewCurve(over string, points []CurvePoint) *Curve {
	c := &Curve{Schema: CurveSchema, Over: over, Points: slices.Clone(points), Signs: []Sign{}}
	slices.SortStableFunc(c.Points, func(a, b CurvePoint) int { return cmp.Compare(a.Value, b.Value) })
	a := newAnalysis(over, c.Points)
	c.Peak = a.peak()
	c.Knee = a.knee()
	c.Collapse = a.collapse()
	c.FirstLimit = a.firstLimit()
	c.Signs = append(c.Signs, a.signs()...)
	return c
}

// load is what the points at one load show; of several the means.
type load struct {
	value      float64
	isLoad     bool     // or the value of something else
	throughput float64  // output tokens per second
	error      float64  // half the width of its confidence interval, or NaN
	e2e        *float64 // mean, in milliseconds
	ttft50     *float64
	ttft99     *float64
	s          *Summary // the first of them
}

type analysis []load

func newAnalysis(over string, points []CurvePoint) analysis {
	var a analysis
	isLoad := lastPart(over) == "rate" || lastPart(over) == "users"
	for i := 0; i < len(points); {
		same := i
		var x, e, p50, p99 []float64
		l := load{value: points[i].Value, isLoad: isLoad, error: math.NaN()}
		for ; same < len(points) && points[same].Value == points[i].Value; same++ {
			s := points[same].Summary
			if s == nil || s.Throughput.OutputTokensPerS == nil {
				continue
			}
			if l.s == nil {
				l.s = s
			}
			x = append(x, *s.Throughput.OutputTokensPerS)
			for list, v := range map[*[]float64]*float64{&e: s.Latency.E2E.Mean, &p50: s.Latency.TTFT.P50, &p99: s.Latency.TTFT.P99} {
				if v != nil {
					*list = append(*list, *v)
				}
			}
			if ci, ok := s.CI95["throughput.output_tokens_per_s"]; ok {
				l.error = (ci[1] - ci[0]) / 2
			}
		}
		i = same
		if l.s != nil {
			l.throughput = mean(x)
			l.e2e, l.ttft50, l.ttft99 = number(mean(e)), number(mean(p50)), number(mean(p99))
			a = append(a, l)
		}
	}
	return a
}

// top is the index of the highest throughput, -1 without points.
func (a analysis) top() int {
	best := -1
	for i := range a {
		if best < 0 || a[i].throughput > a[best].throughput {
			best = i
		}
	}
	return best
}

func (a analysis) peak() *Peak {
	i := a.top()
	if i < 0 {
		return nil
	}
	return &Peak{Value: a[i].value, OutputTokensPerS: a[i].throughput, AtEdge: i == len(a)-1}
}

// gain is the throughput that each further unit of load brings after point i, as a fraction of what a unit
// brings at the lowest load. NaN if that cannot be said.
func (a analysis) gain(i int) float64 {
	if i+1 >= len(a) || !(a[0].value > 0) || !a[0].isLoad {
		return math.NaN()
	}
	slope := (a[i+1].throughput - a[i].throughput) / (a[i+1].value - a[i].value)
	return slope / (a[0].throughput / a[0].value)
}

// knee needs the maximum of power to lie between other points: at an end of the sweep it might be beyond.
func (a analysis) knee() *Knee {
	best, most := -1, 0.0
	for i, l := range a {
		if l.e2e == nil || *l.e2e <= 0 || !l.isLoad {
			continue
		}
		if power := l.throughput / *l.e2e; power > most {
			best, most = i, power
		}
	}
	if best <= 0 || best == len(a)-1 {
		return nil
	}
	k := &Knee{
		Value: a[best].value, OutputTokensPerS: a[best].throughput, E2EMeanMs: *a[best].e2e,
		Evidence: fmt.Sprintf("throughput divided by mean E2E latency is greatest at %.4g: %s tokens/s in %s ms",
			a[best].value, digits(a[best].throughput), digits(*a[best].e2e)),
	}
	for i := range a {
		if a.gain(i) < quarter {
			k.MarginalValue = &a[i].value
			break
		}
	}
	return k
}

func (a analysis) collapse() *Collapse {
	top := a.top()
	if top < 0 || top == len(a)-1 {
		return nil
	}
	peak := a[top]
	fallen := func(l load) bool {
		margin := noise * peak.throughput
		if both := peak.error + l.error; !math.IsNaN(both) {
			margin = both
		}
		return l.throughput < peak.throughput-margin
	}
	if !fallen(a[len(a)-1]) {
		return nil // a dip
	}
	var c *Collapse
	worst := peak
	for _, l := range a[top+1:] {
		if c == nil && fallen(l) {
			c = &Collapse{Value: l.value, OutputTokensPerS: l.throughput}
		}
		if l.throughput < worst.throughput {
			worst = l
		}
	}
	c.FallFraction = 1 - worst.throughput/peak.throughput
	c.Evidence = fmt.Sprintf("output falls from %s tokens/s at %.4g to %s at %.4g", digits(peak.throughput), peak.value, digits(worst.throughput), worst.value)
	if before, after := recomputedShare(peak.s), recomputedShare(worst.s); after > before+wasteful {
		c.Evidence += fmt.Sprintf("; recomputed tokens rise from %s to %s", percent(before), percent(after))
	}
	if before, after := peak.s.System.PrefixHitRate, worst.s.System.PrefixHitRate; before != nil && after != nil && *before > *after+hitLoss {
		c.Evidence += fmt.Sprintf("; the prefix hit rate falls from %s to %s", percent(*before), percent(*after))
	}
	return c
}

// recomputedShare is the fraction of computed tokens that had been computed before.
func recomputedShare(s *Summary) float64 {
	t := s.Tokens
	all := float64(t.Recomputed + t.Input - t.CachedInput + t.Output)
	if all <= 0 {
		return 0
	}
	return float64(t.Recomputed) / all
}

// firstLimit is what requests first wait for; where they wait for nothing, what keeps the GPU busy
// once more load brings no more throughput.
func (a analysis) firstLimit() *Limit {
	for i, l := range a {
		y := &l.s.System
		best := Limit{Value: l.value}
		share := 0.0
		for _, r := range []struct {
			name string
			part *float64
		}{{"kv", y.GapByCause.KV}, {"seats", y.GapByCause.Seats}, {"token_budget", y.GapByCause.TokenBudget}, {"policy", y.GapByCause.Policy}} {
			if r.part != nil && *r.part >= binding && *r.part > share {
				best.Resource, share = r.name, *r.part
			}
		}
		if share > 0 {
			best.Evidence = fmt.Sprintf("requests wait for it %s of the time", percent(share))
			return &best
		}
		flat := a.gain(i) < quarter || i > 0 && a.gain(i-1) < quarter
		if y.BusyFraction == nil || *y.BusyFraction < saturated || !flat {
			continue
		}
		best.Resource = "gpu"
		best.Evidence = fmt.Sprintf("busy %s of the time, and more load brings little", percent(*y.BusyFraction))
		if y.MFU != nil && y.MBU != nil {
			best.Resource = "memory_bandwidth"
			if *y.MFU > *y.MBU {
				best.Resource = "compute"
			}
			best.Evidence += fmt.Sprintf("; MFU %s, MBU %s", percent(*y.MFU), percent(*y.MBU))
		}
		return &best
	}
	return nil
}

// signs are the warning signs in the order of the list below, each at the load where it first shows.
func (a analysis) signs() []Sign {
	var signs []Sign
	first := func(code string, shows func(i int) (evidence string, ok bool)) {
		for i := range a {
			if evidence, ok := shows(i); ok {
				signs = append(signs, Sign{Code: code, Value: a[i].value, Evidence: evidence})
				return
			}
		}
	}
	top := a.top()
	first("throughput_slows", func(i int) (string, bool) {
		g := a.gain(i)
		return fmt.Sprintf("from here to %.4g each unit of load brings %s of what it brings at the lowest load", a[min(i+1, len(a)-1)].value, percent(g)),
			i < top && g < slowing
	})
	first("tail_spikes", func(i int) (string, bool) {
		for _, b := range a[:i] {
			l := a[i]
			if l.ttft99 == nil || l.ttft50 == nil || b.ttft99 == nil || b.ttft50 == nil {
				continue
			}
			if *l.ttft99 >= spike**b.ttft99 && *l.ttft50 <= calm**b.ttft50 {
				return fmt.Sprintf("TTFT p99 goes from %s ms at %.4g to %s ms, p50 only from %s to %s ms",
					digits(*b.ttft99), b.value, digits(*l.ttft99), digits(*b.ttft50), digits(*l.ttft50)), true
			}
		}
		return "", false
	})
	first("busy_but_flat", func(i int) (string, bool) {
		busy := a[i].s.System.BusyFraction
		if busy == nil || *busy < saturated || !(a.gain(i) < quarter) {
			return "", false
		}
		return fmt.Sprintf("the GPU is busy %s of the time, yet a further unit of load brings %s of what it brings at the lowest", percent(*busy), percent(a.gain(i))), true
	})
	first("kv_oscillates", func(i int) (string, bool) {
		kv := a[i].s.System.KVUsage
		if kv.SD == nil || kv.Max == nil || *kv.SD < swinging || *kv.Max < nearlyFull {
			return "", false
		}
		return fmt.Sprintf("KV usage swings by %s (standard deviation over time) and reaches %s", percent(*kv.SD), percent(*kv.Max)), true
	})
	first("gap", func(i int) (string, bool) {
		// The wait for an iteration to end is no sign of anything.
		g, total, text := a[i].s.System.GapByCause, 0.0, ""
		for _, part := range []struct {
			name string
			of   *float64
		}{{"KV", g.KV}, {"token budget", g.TokenBudget}, {"policy", g.Policy}, {"idle", g.Idle}} {
			if part.of != nil && *part.of > 0 {
				total += *part.of
				text += fmt.Sprintf(" %s %s", part.name, percent(*part.of))
			}
		}
		return fmt.Sprintf("requests wait beside free seats %s of the time:%s", percent(total), text), total >= binding
	})
	first("recompute", func(i int) (string, bool) {
		share := recomputedShare(a[i].s)
		return fmt.Sprintf("%s of the computed tokens are computed again after %d preemptions", percent(share), a[i].s.System.Preemptions), share >= wasteful
	})
	first("prefix_thrash", func(i int) (string, bool) {
		hit, best := a[i].s.System.PrefixHitRate, 0.0
		for _, b := range a[:i] {
			if b.s.System.PrefixHitRate != nil {
				best = max(best, *b.s.System.PrefixHitRate)
			}
		}
		if hit == nil || *hit > best-hitLoss {
			return "", false
		}
		return fmt.Sprintf("the prefix hit rate is down from %s to %s", percent(best), percent(*hit)), true
	})
	first("not_stationary", func(i int) (string, bool) {
		w := a[i].s.Window
		if w.Stationary == nil || *w.Stationary {
			return "", false
		}
		if w.GrowthRequestsPerS != nil {
			return fmt.Sprintf("the system fills up by %s requests/s", digits(*w.GrowthRequestsPerS)), true
		}
		return "the system had not settled after half the run", true
	})
	return signs
}

// lastPart is what follows the last dot of a dotted key.
func lastPart(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

func percent(fraction float64) string { return digits(100*fraction) + " %" }

// digits prints a number to about three significant digits, without an exponent.
func digits(v float64) string {
	switch m := math.Abs(v); {
	case m >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case m >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case m >= .9995:
		return fmt.Sprintf("%.2f", v)
	case m >= .0005:
		return fmt.Sprintf("%.3f", v)
	case m == 0:
		return "0"
	default:
		return fmt.Sprintf("%.1e", v)
	}
}
