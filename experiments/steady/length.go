package steady

import (
	"context"
	"math"

	"clifftop/experiments/scenario"
	"clifftop/report"
)

// How long a run is if the scenario leaves it open.
const (
	// LeastRequests is the smallest number of requests of a run.
	LeastRequests = scenario.DefaultRequests
	// budget is the largest number of requests of a run, of a system whose simulation takes one unit of work for each.
	budget = 700_000
	// hours is the length of a run that cannot settle within the budget, if the budget allows it.
	hours = 3
	// overloadLengths is the length of a run above saturation, in residences, with overloadRequests at least.
	overloadLengths, overloadRequests = 25, 30_000
	// warmupShare is the part of a run that a warm-up may take.
	warmupShare = .1
)

// searchShare is the number of requests of runs for each request of a search.
const searchShare = 10

// Run judges a run, or runs that are pooled, and says how long they should be. It searches for the saturation of the
// system only if the verdict depends on it, with a tenth of the requests of the runs at most.
type Run struct {
	// Setup is ready to run. [Run.Next] lengthens it.
	Setup *scenario.Setup
	// Extends means that the run can be continued where it ended: [Run.Next] says how far.
	Extends bool

	judged  Case
	system  *Saturation // nil if it is unknown
	bounded bool        // the search
	effort  report.Effort
}

// Search says when to search for the saturation of a system, and with how many requests.
type Search int

// The searches.
const (
	// Bounded searches only if the verdict depends on it, with a tenth of the requests of the runs at most.
	Bounded Search = iota
	// IfOpen searches only if the verdict depends on it, with as many requests as it takes.
	IfOpen
	// First searches in any case.
	First
)

// Options say how runs are judged.
type Options struct {
	// System is the saturation of the system, if it is known.
	System *Saturation
	// Search says when the saturation rates are looked for.
	Search Search
	// Runs is the number of runs that are pooled; 0 is one.
	Runs int
}

// Resolve resolves a scenario. If the scenario leaves the length of a run open, and the run cannot be continued, it
// searches for the saturation to set the length.
func Resolve(ctx context.Context, s *scenario.Scenario, o Options) (*Run, error) {
	u, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	r := newRun(u, o)
	open := s.Endless()
	known := r.judged.Finite || u.Traffic.Closed
	switch r.Extends = open && !known && o.Runs <= 1 && u.Traffic.Spec.Extends(); {
	case known, r.system != nil:
	case o.Search == First:
		r.system, err = Find(ctx, u)
		r.found(0)
	case open && !r.Extends:
		err = r.search(ctx, min(leastSearch(u), int64(r.most())*int64(max(o.Runs, 1))/searchShare))
	}
	if err != nil {
		return nil, err
	}
	if r.system != nil {
		r.judged.know(r.system, u)
	}
	if open && !r.Extends {
		n := r.requests()
		if o.System == nil && o.Search != First {
			n = max(n, int(searchShare*r.effort.SearchRequests)/max(o.Runs, 1))
		}
		r.Setup, err = u.Lasting(n)
	}
	return r, err
}

// Before returns what runs of a setup are judged by that are made afterwards, with this many requests together. A tenth
// of them may be simulated to find the saturation of the system; searched is how many were.
func Before(ctx context.Context, u *scenario.Setup, requests int64) (c Case, searched int64, err error) {
	r := newRun(u, Options{})
	if !r.judged.Finite && !u.Traffic.Closed {
		err = r.search(ctx, requests/searchShare)
	}
	return r.judged, r.effort.SearchRequests, err
}

// newRun is a run of a setup whose length is known.
func newRun(u *scenario.Setup, o Options) *Run {
	r := &Run{Setup: u, judged: new(Saturation).load(u), system: o.System, bounded: o.Search == Bounded}
	r.judged.Traffic, r.judged.MeanOver = Traffic(u)
	return r
}

// search looks for the saturation if the budget of requests allows it.
func (r *Run) search(ctx context.Context, budget int64) error {
	needs := leastSearch(r.Setup)
	if budget >= needs {
		var err error
		if r.system, needs, err = within(ctx, r.Setup, needs); err != nil {
			return err
		}
	}
	r.found(needs)
	return nil
}

// found takes in the result of a search, or that it needs more requests than it had.
func (r *Run) found(needs int64) {
	r.judged.SearchNeeds = needs
	if r.system != nil {
		r.effort.SearchRequests += r.system.Simulated
		r.judged.know(r.system, r.Setup)
	}
}

// Judge says in a result of the run whether it shows a steady state, and what it took. It may search; see [Search].
func (r *Run) Judge(ctx context.Context, sum *report.Summary) (err error) {
	if r.system == nil && r.judged.SearchNeeds == 0 && r.judged.Open(sum) {
		if r.bounded {
			err = r.search(ctx, sum.Effort.Requests/searchShare)
		} else if r.system, err = Find(ctx, r.Setup); err == nil {
			r.found(0)
		}
		if err != nil {
			return err
		}
	}
	sum.Effort.Add(r.effort)
	r.judged.Judge(sum)
	return nil
}

// Next says how many requests a run should have that was continued up to now, and spans how many spans of iterations
// each took. It is 0 if the run is long enough, or if the rest is beyond the budget. sum is the result of the run so
// far.
func (r *Run) Next(ctx context.Context, sum *report.Summary, spans float64) (requests int64, err error) {
	now, most := float64(sum.Effort.Requests), budgetOf(spans)
	if r.system != nil {
		most = r.system.most()
	} else if !r.judged.beyond(&sum.Window) {
		needs := float64(searchShare * leastSearch(r.Setup))
		switch {
		case needs > most:
			r.judged.SearchNeeds = int64(needs / searchShare)
			return next(r.precise(sum, now), now, most), nil
		case now < needs:
			return int64(needs), nil
		}
		if err := r.search(ctx, sum.Effort.Requests/searchShare); err != nil {
			return 0, err
		}
	}
	r.judged.Judge(sum)
	switch {
	case sum.Window.State == report.Overloaded, r.judged.overloaded():
		return next(r.overload(sum), now, most), nil
	case sum.Window.State != report.Finite || r.judged.RelaxationS == nil || sum.Partial:
		return 0, nil
	}
	n := r.precise(sum, now)
	if _, length := lengths(sum); length < *sum.Window.NeedsS {
		n = 1.05 * now * *sum.Window.NeedsS / max(length, *sum.Window.NeedsS/100) // the warm-up is cut
	}
	if n > most {
		n = min(r.judged.Rate*3600*hours, most)
	}
	return next(n, now, most), nil
}

// Work is about the processor time of the run, in requests of the default scenario at saturation.
func (r *Run) Work() float64 {
	n, t := float64(r.Setup.Traffic.Requests), &r.Setup.Traffic
	if r.system == nil || r.system.Rates == nil || !(t.Rate > 0) {
		return n
	}
	if r.Extends {
		n = float64(r.system.requests(&r.judged, r.Setup))
	}
	const alone = 4 // spans of a request that meets few others
	spans := min(alone, r.system.Effort*max(1, r.system.Rates.LowRequestsPerS/t.Rate))
	return n * workOf(spans)
}

// next is the number of requests, or 0 if it is not more than now, or beyond the budget.
func next(n, now, most float64) int64 {
	if n <= now || n > most {
		return 0
	}
	return int64(math.Ceil(n))
}

// precise is the number of requests that make the means as precise as they should be.
func (r *Run) precise(sum *report.Summary, now float64) float64 {
	const (
		margin = 1.3 // because the interval is itself an estimate
		factor = 2   // without an interval
	)
	switch path, half := sum.Widest(means); {
	case path == "" || !sum.HasIntervals(means):
		return factor * now
	case half > precision:
		return margin * now * (half / precision) * (half / precision)
	}
	return 0
}

// overload is the number of requests of a run above saturation, which never settles.
func (r *Run) overload(sum *report.Summary) float64 {
	service := 0.0
	if e2e, queue := sum.Latency.E2E.Mean, sum.Latency.Queue.Mean; e2e != nil && queue != nil {
		service = (*e2e - *queue) / 1000
	}
	return max(overloadRequests, overloadLengths*service*r.judged.Rate)
}

// requests is the number of requests of a run whose length must be known before.
func (r *Run) requests() int {
	if r.system != nil {
		return r.system.requests(&r.judged, r.Setup)
	}
	if r.judged.Users > 0 || r.judged.Finite {
		return new(Saturation).Requests(r.Setup)
	}
	return clampRequests(r.judged.Rate*3600*hours, r.most())
}

// most is the largest number of requests within the budget.
func (r *Run) most() float64 {
	if r.system != nil {
		return r.system.most()
	}
	return budgetOf(usualSpans)
}

// Requests is the number of requests of a run that leaves its length open: as many as it needs to settle, at least
// 10,000. If these are more than the budget of processor time allows, it is as many as three hours have, or the budget.
// A run above saturation is short, because it never settles.
func (s *Saturation) Requests(u *scenario.Setup) int {
	c := s.load(u)
	return s.requests(&c, u)
}

// requests is [Saturation.Requests] for a case of the system.
func (s *Saturation) requests(c *Case, u *scenario.Setup) int {
	most := s.most()
	switch {
	case c.Finite:
		return LeastRequests
	case c.Users > 0:
		return clampRequests(relaxations*float64(c.Users)/(1-warmupShare), most)
	case s.Rates == nil:
		return LeastRequests
	}
	if c.overloaded() || c.RelaxationS == nil {
		return clampRequests(max(overloadRequests, overloadLengths*s.Service*c.Rate), most)
	}
	needed := c.Rate * relaxations * *c.RelaxationS / (1 - warmupShare)
	if needed <= most {
		needed = max(needed, c.Rate*s.precise(c, u))
	}
	if needed > most {
		needed = c.Rate * 3600 * hours
	}
	return clampRequests(needed, most)
}

// precise is about the time in seconds after which the means of a run are known to 10 %, if a rate that wanders is
// what makes them uncertain; 0 for other traffic. Near saturation it is infinite: surges make most of the mean wait.
//
// At a rate r, a request takes E(r) = idle/(1 − r·slope), a system whose speed falls in proportion to the number it
// holds, and its relative deviation is the deviation of the rate times the elasticity r·slope/(1 − r·slope). Over T
// seconds the mean has 2·correlation/T of its variance. The mean wait in surges makes the upper side of the interval
// wider.
func (s *Saturation) precise(c *Case, u *scenario.Setup) float64 {
	const margin = 1.3
	d, ok := u.Traffic.Dispersion()
	if c.Surges == nil || !ok {
		return 0
	}
	low := s.Rates.LowRequestsPerS
	share := c.Rate / low * (1 - s.Idle/s.Service)
	ttft := s.IdleTTFT / (1 - share)
	wait := c.Surges.wait(c.Rate, low, 2*ttft*precision/(1-precision))
	if math.IsInf(wait, 1) {
		return wait
	}
	c.surgeWait = &wait
	left := precision - wait/(2*ttft+wait)
	elasticity := share / (1 - share)
	half := normal * c.Surges.Sigma * elasticity / left
	return margin * 2 * d.Correlation * half * half
}

// Each is the number of requests of each of several runs, if a scenario leaves it open and the runs together are to
// settle. short is a run of the system, which tells how much requests wait. If the runs need more than the
// budget of processor time allows, each is an hour, and hourly is true: hours are compared by their median.
func (s *Saturation) Each(u *scenario.Setup, short *report.Summary, runs int) (requests int, hourly bool) {
	const margin = 1.3 // because the wait of a short run is an estimate
	c := s.load(u)
	if c.Finite || s.Rates == nil && c.Users == 0 || c.overloaded() {
		return s.Requests(u), false
	}
	each := float64(relaxations*c.Users) / float64(runs)
	if c.Users > 0 {
		return clampRequests(max(each, eachRelaxations*float64(c.Users))/(1-warmupShare), s.most()), false
	}
	needs := c.needs(short)
	if c.RelaxationS == nil || needs == nil {
		return s.Requests(u), false
	}
	length := max(margin**needs/float64(runs), eachRelaxations**c.RelaxationS) / (1 - warmupShare)
	if total := c.Rate * length * float64(runs); total > s.most() {
		return clampRequests(c.Rate*3600, s.most()), true
	}
	return clampRequests(c.Rate*length, s.most()), false
}

// most is the largest number of requests within the budget.
func (s *Saturation) most() float64 { return budgetOf(s.Effort) }

// usualSpans is the number of spans of iterations per request of the default scenario at saturation.
const usualSpans = .5

// workOf returns the processor time of a request that takes a number of spans, in units of a request of the default
// scenario. Measured on one core, a request takes about 4 µs and a span of iterations 8 µs.
func workOf(spans float64) float64 { return (4 + 8*spans) / (4 + 8*usualSpans) }

// budgetOf is the largest number of requests of a run within the budget, if each takes a number of spans.
func budgetOf(spans float64) float64 { return max(LeastRequests, budget/max(1, workOf(spans))) }

func clampRequests(n, most float64) int {
	return int(math.Ceil(min(max(n, LeastRequests), most)))
}
