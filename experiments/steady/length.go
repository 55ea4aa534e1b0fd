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

// Run is a run that is ready, of a system whose saturation is known.
type Run struct {
	Setup *scenario.Setup
	// Case is what results are judged by.
	Case   Case
	system *Saturation
	open   bool // the scenario leaves its length open
}

// Resolve resolves a scenario, finds the saturation of its system, and sets the length of a run that the scenario leaves
// open.
func Resolve(ctx context.Context, s *scenario.Scenario) (*Run, error) {
	u, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	system, err := Of(ctx, u)
	if err != nil {
		return nil, err
	}
	r := &Run{Setup: u, system: system, open: s.Endless()}
	if r.open {
		if r.Setup, err = u.Lasting(system.Requests(u)); err != nil {
			return nil, err
		}
	}
	r.Case = system.Case(r.Setup)
	return r, nil
}

// Judge says in a result whether the run shows a steady state. If the scenario leaves the length open, and a longer run
// is likely to show one, it makes the run longer and returns true: the run should be made again.
func (r *Run) Judge(sum *report.Summary) (again bool, err error) {
	r.Case.Judge(sum)
	if !r.open {
		return false, nil
	}
	longer, err := r.system.Longer(r.Setup, sum)
	if longer != nil {
		r.Setup = longer
	}
	return longer != nil, err
}

// Requests is the number of requests of a run that leaves its length open: as many as it needs to settle, at least
// 10,000. If these are more than the budget of processor time allows, it is as many as three hours have, or the budget.
// A run above saturation is short, because it never settles.
func (s *Saturation) Requests(u *scenario.Setup) int {
	c, most := s.load(u), s.most()
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
	if needed > most {
		needed = c.Rate * 3600 * hours
	}
	return clampRequests(needed, most)
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

// Longer is the setup with so many requests that the run, which is too short or not precise enough, is likely to
// settle. It is nil if the run is settled, or if the number is above the budget. The run's requests are those that
// [Saturation.Requests] or Longer chose.
func (s *Saturation) Longer(u *scenario.Setup, sum *report.Summary) (*scenario.Setup, error) {
	const margin = 1.3 // because the interval is itself an estimate
	w := &sum.Window
	if w.State != report.Finite || s.Rates == nil || w.NeedsS == nil || sum.Partial {
		return nil, nil
	}
	now, n := float64(u.Traffic.Requests), 0.0
	if _, length := lengths(sum); length < *w.NeedsS {
		n = 1.05 * now * *w.NeedsS / max(length, *w.NeedsS/100) // the warm-up is cut
	} else if _, half := sum.Widest(means); sum.HasIntervals(means) && half > precision {
		n = max(n, margin*now*(half/precision)*(half/precision))
	}
	if n <= now || n > s.most() {
		return nil, nil
	}
	return u.Lasting(int(math.Ceil(n)))
}

// most is the largest number of requests within the budget.
func (s *Saturation) most() float64 { return max(LeastRequests, budget/max(1, s.work())) }

// work is the processor time of a request in units of that of the default scenario. Measured on one core, a request
// takes about 4 µs and a span of iterations 8 µs; the default scenario has half a span per request at saturation.
func (s *Saturation) work() float64 { return (4 + 8*s.Effort) / 8 }

func clampRequests(n, most float64) int {
	return int(math.Ceil(min(max(n, LeastRequests), most)))
}
