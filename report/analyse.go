package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/report/layout"
)

// NewCurve is [NewCurveBy] the [DefaultThresholds].
func NewCurve(over string, points []CurvePoint) *Curve {
	return NewCurveBy(DefaultThresholds(), over, points)
}

// NewCurveBy puts the points of a sweep in order and says what they show together. over names what
// varies: a load, if its last part is "rate" or "users", or else another number, of which a knee and a gain
// per unit mean nothing. What cannot be told is nil. Points measured over too short a window are marked, and
// nothing is told from them.
func NewCurveBy(t Thresholds, over string, points []CurvePoint) *Curve {
	c := &Curve{Schema: CurveSchema, Over: over, Thresholds: t, Points: slices.Clone(points), Warnings: []Warning{}}
	slices.SortStableFunc(c.Points, func(a, b CurvePoint) int { return cmp.Compare(a.Value, b.Value) })
	c.markShort()
	c.warnOffLoad()
	a := newAnalysis(t, over, c.Points)
	c.Peak = a.peak()
	c.Knee = a.knee()
	c.Collapse = a.collapse()
	c.UsefulCollapse = a.usefulCollapse()
	c.FirstLimit = a.firstLimit()
	c.Signs = a.signs(c.Points)
	c.USL = a.usl()
	c.Bounds = a.bounds()
	return c
}

// markShort marks the points whose windows are too short, and warns of them.
func (c *Curve) markShort() {
	n, first := 0, 0.0
	for i := range c.Points {
		p := &c.Points[i]
		p.Short = p.Summary != nil && p.Summary.short()
		if p.Short {
			if n == 0 {
				first = p.Value
			}
			n++
		}
	}
	if n > 0 {
		c.Warnings = append(c.Warnings, Warning{"points_short", fmt.Sprintf(
			"%d of %d windows (*), the first of them at %.4g, are shorter than %d times what a request takes: the system is still filling up there. Nothing is told from them; longer runs would tell",
			n, len(c.Points), first, minResidences)})
	}
}

// warnOffLoad warns of rates that the traffic did not have: bursts and slow changes average out over long runs
// only.
func (c *Curve) warnOffLoad() {
	worst, at := 0.0, &CurvePoint{}
	for i := range c.Points {
		p := &c.Points[i]
		if p.Summary == nil || p.Short || p.Value <= 0 || lastPart(c.Over) != "rate" {
			continue
		}
		v, n := p.Summary.Throughput.OfferedRequestsPerS, float64(p.Summary.Latency.E2E.N)
		if v == nil || math.Abs(*v/p.Value-1) < 3/math.Sqrt(n) { // which is chance
			continue
		}
		if off := *v/p.Value - 1; math.Abs(off) > math.Abs(worst) {
			worst, at = off, p
		}
	}
	if math.Abs(worst) <= c.Thresholds.RateOff {
		return
	}
	side := "above"
	if worst < 0 {
		side = "below"
	}
	c.Warnings = append(c.Warnings, Warning{"rate_off", fmt.Sprintf(
		"the rate that was offered, at %.4g, is %s %s that: the course of the traffic does not average out over %s. Longer runs would meet more of it",
		at.Value, layout.Percent(math.Abs(worst)), side, seconds(at.Summary.Window.EndS-at.Summary.Window.StartS))})
}

// load is what the points at one load show; of several the means.
type load struct {
	value      float64
	isLoad     bool     // or the value of something else
	offered    float64  // the load that there was: of a rate the one within the window, else the value
	throughput float64  // output tokens per second
	error      float64  // half the width of its confidence interval, or NaN
	requests   float64  // that it is measured on, 0 if unknown
	e2e        *float64 // mean, in milliseconds
	s          *Summary // the first of them
	runs       []*Summary
}

// analysis is what is told from loads by thresholds.
type analysis struct {
	Thresholds
	at     []load
	closed bool   // what varies is a number of users
	what   string // the tokens that throughput counts
}

func newAnalysis(t Thresholds, over string, points []CurvePoint) *analysis {
	a := &analysis{Thresholds: t, closed: lastPart(over) == "users", what: "output"}
	isRate := lastPart(over) == "rate"
	isLoad := isRate || a.closed
	for i := 0; i < len(points); {
		same := i
		var x, e, rates []float64
		l := load{value: points[i].Value, isLoad: isLoad, offered: points[i].Value, error: math.NaN()}
		for ; same < len(points) && points[same].Value == points[i].Value; same++ {
			s := points[same].Summary
			if s == nil || points[same].Short || s.Throughput.OutputTokensPerS == nil {
				continue
			}
			if l.s == nil {
				l.s = s
			}
			l.runs = append(l.runs, s)
			x = append(x, *s.Throughput.OutputTokensPerS)
			l.requests += float64(s.Latency.E2E.N)
			if v := s.Latency.E2E.Mean; v != nil {
				e = append(e, *v)
			}
			if v := s.Throughput.OfferedRequestsPerS; v != nil && isRate {
				rates = append(rates, *v)
			}
			if ci, ok := s.CI95["throughput.output_tokens_per_s"]; ok && s.CI95Method != ByBatchMeans {
				l.error = (ci[1] - ci[0]) / 2
			}
		}
		i = same
		if l.s != nil {
			l.throughput, l.e2e = mean(x), number(mean(e))
			if len(rates) > 0 {
				l.offered = mean(rates)
			}
			a.at = append(a.at, l)
		}
	}
	return a
}

// deviation is the standard deviation of the difference of two throughputs, as requests of unlike lengths
// let it be: that of the sum of n of them is about 1/√n of it. It is 0 where n is unknown.
func deviation(a, b load) float64 {
	if a.requests == 0 || b.requests == 0 {
		return 0
	}
	return max(a.throughput, b.throughput) * math.Sqrt(1/a.requests+1/b.requests)
}

// intervals is the sum of what the confidence intervals of two throughputs leave open; NaN without them.
func intervals(a, b load) float64 { return a.error + b.error }

// recomputedShare is the fraction of computed tokens that had been computed before.
func recomputedShare(s *Summary) float64 {
	all := computedTokens(s)
	if all <= 0 {
		return 0
	}
	return float64(s.Tokens.Recomputed) / all
}

// computedTokens is the number of tokens that the run computed, rejected drafts apart.
func computedTokens(s *Summary) float64 {
	t := &s.Tokens
	return float64(t.Recomputed + t.Input - t.CachedInput + t.Output)
}

// join appends a name to a dotted path.
func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// lastPart is what follows the last dot of a dotted key.
func lastPart(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }
