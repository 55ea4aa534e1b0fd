package report

import (
	"math"

	"clifftop/report/stats"
)

// LimitResult judges one limit of a service-level objective.
type LimitResult struct {
	// Key names it: "ttft_p95", "attainment" or "wait_probability".
	Key string `json:"key"`
	// LimitMs is the limit on a latency, and ValueMs the statistic that it limits, over all requests that arrived in
	// the window; nil where that is infinite, because too many did not complete, and where N is 0. Both are nil for
	// shares of requests.
	LimitMs *float64 `json:"limit_ms"`
	ValueMs *float64 `json:"value_ms"`
	// Fraction is the part of N requests (of inter-token gaps, for ITL) that keep within a limit on latency, that are
	// good for attainment, or that waited for wait_probability. Target is the least that it should be, for
	// wait_probability the greatest; nil for means. Where N is 0, as of the TPOT of answers of one token, nothing
	// breaks the limit, and it is met.
	Fraction *float64 `json:"fraction"`
	Target   *float64 `json:"target_fraction"`
	N        int64    `json:"n"`
	// Met is nil where requests that were still in the system at the end could turn the verdict either way.
	Met *bool `json:"met"`

	// Of pooled runs:
	within  float64   // Fraction·N
	values  []float64 // ValueMs of each with an N, infinite where it is nil; none for shares
	parts   []float64 // Fraction·N of each
	counts  []float64 // N of each
	decided int       // runs that have a verdict
}

// Lower says that less than the target is wanted.
func (l *LimitResult) Lower() bool { return l.Key == "wait_probability" }

// Mean reports whether the limit is on a mean, and not on a fraction of requests.
func (l *LimitResult) Mean() bool { return l.Target == nil }

// Interval returns the confidence interval of the limited value, from the pooled runs, and its target: of the mean, in
// milliseconds, or of the fraction of requests. The interval is infinite if the runs do not determine it.
func (l *LimitResult) Interval(confidence float64) (value, low, high, target float64) {
	if l.counts == nil { // a single run
		one := LimitResult{}
		one.add(l)
		l = &one
	}
	if !l.Mean() {
		value, low, high = stats.ShareInterval(l.parts, l.counts, confidence)
		return value, low, high, *l.Target
	}
	center, half := stats.MeanInterval(l.values, confidence)
	if math.IsInf(center, 1) {
		return center, center, center, *l.LimitMs
	}
	return center, center - half, center + half, *l.LimitMs
}

// add joins the result of another run.
func (l *LimitResult) add(r *LimitResult) {
	l.Key, l.LimitMs, l.Target = r.Key, r.LimitMs, r.Target
	within, n := 0.0, float64(r.N)
	if r.Fraction != nil {
		within = math.Round(*r.Fraction * n)
	}
	l.N += r.N
	l.within += within
	l.parts, l.counts = append(l.parts, within), append(l.counts, n)
	if r.LimitMs != nil && r.N > 0 {
		value := math.Inf(1)
		if r.ValueMs != nil {
			value = *r.ValueMs
		}
		l.values = append(l.values, value)
	}
	if r.Met != nil {
		l.decided++
	}
}

// conclude judges joined results: the mean of the statistics where it is a mean that is limited, or else the share of
// all requests.
func (l *LimitResult) conclude(runs int) {
	l.Fraction = stats.Ratio(l.within, float64(l.N))
	if len(l.values) > 0 {
		l.ValueMs = stats.Finite(stats.Mean(l.values))
	}
	if l.decided < runs {
		return
	}
	met := false
	switch {
	case l.N == 0:
		met = true
	case l.Mean():
		met = l.ValueMs != nil && *l.ValueMs <= *l.LimitMs
	case l.Lower():
		met = *l.Fraction <= *l.Target
	default:
		met = *l.Fraction >= *l.Target
	}
	l.Met = &met
}

// Judge draws the verdict on the objective from those on its limits: it is met where all are, and unknown where one is
// and the others are met.
func (g *Goodput) Judge(throughput *float64) {
	met, known := true, true
	for i := range g.Limits {
		switch m := g.Limits[i].Met; {
		case m == nil:
			known = false
		default:
			met = met && *m
		}
	}
	g.Met, g.GatedOutputTokensPerS = nil, nil
	if !known && met {
		return
	}
	g.Met = &met
	if throughput != nil {
		gated := 0.0
		if met {
			gated = *throughput
		}
		g.GatedOutputTokensPerS = &gated
	}
}

// JudgeByClasses sets whether the objective is met where only classes have one: if each of them meets its own.
func (s *Summary) JudgeByClasses() {
	var all Goodput
	for i := range s.Classes {
		all.Limits = append(all.Limits, s.Classes[i].Goodput.Limits...)
	}
	if all.Limits != nil {
		all.Judge(s.Throughput.OutputTokensPerS)
		s.Goodput.Met, s.Goodput.GatedOutputTokensPerS = all.Met, all.GatedOutputTokensPerS
	}
}

// Use is how much of the limit is taken up.
func (l *LimitResult) Use() float64 {
	switch {
	case l.N == 0:
		return 0
	case l.LimitMs != nil && l.ValueMs == nil, l.LimitMs == nil && l.Fraction == nil:
		return math.Inf(1)
	case l.LimitMs != nil:
		return partOf(*l.ValueMs, *l.LimitMs)
	case l.Lower():
		return partOf(*l.Fraction, *l.Target)
	}
	return partOf(1-*l.Fraction, 1-*l.Target)
}
