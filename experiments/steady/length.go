package steady

import (
	"context"
	"math"
	"strconv"

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

// Resolve resolves a scenario, finds the saturation of its system, and sets the length of a run that the scenario leaves
// open. It returns what its runs are judged by.
func Resolve(ctx context.Context, s *scenario.Scenario) (*scenario.Setup, Case, error) {
	u, err := s.Resolve()
	if err != nil {
		return nil, Case{}, err
	}
	system, err := Of(ctx, u)
	if err != nil {
		return nil, Case{}, err
	}
	if s.Endless() {
		n := strconv.Itoa(system.Requests(u))
		if s, err = s.With(scenario.Setting{Key: "run.requests", Value: n, Flag: "run.requests"}); err != nil {
			return nil, Case{}, err
		}
		if u, err = s.Resolve(); err != nil {
			return nil, Case{}, err
		}
	}
	return u, system.Case(u), nil
}

// Requests is the number of requests of a run that leaves its length open: as many as it needs to settle, at least
// 10,000. If these are more than the budget of processor time allows, it is as many as three hours have, or the budget.
// A run above saturation is short, because it never settles.
func (s *Saturation) Requests(u *scenario.Setup) int {
	c, most := s.Case(u), s.most()
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

// Longer is the number of requests with which a run that is long enough, but not precise enough, is likely to settle; 0 if
// the run is settled or the number is above the budget. The run's requests are those that [Saturation.Requests] chose.
func (s *Saturation) Longer(u *scenario.Setup, sum *report.Summary) int {
	const margin = 1.3 // because the interval is itself an estimate
	w := &sum.Window
	_, half := sum.Widest(means)
	if w.State != report.Finite || s.Rates == nil || w.NeedsS == nil || !sum.HasIntervals(means) || half <= precision ||
		w.EndS-w.StartS < *w.NeedsS {
		return 0
	}
	n := margin * float64(u.Traffic.Requests) * (half / precision) * (half / precision)
	if n > s.most() {
		return 0
	}
	return int(math.Ceil(n))
}

// most is the largest number of requests within the budget.
func (s *Saturation) most() float64 { return max(LeastRequests, budget/max(1, s.work())) }

// work is the processor time of a request in units of that of the default scenario. Measured on one core, a request
// takes about 4 µs and a span of iterations 8 µs; the default scenario has half a span per request at saturation.
func (s *Saturation) work() float64 { return (4 + 8*s.Effort) / 8 }

func clampRequests(n, most float64) int {
	return int(math.Ceil(min(max(n, LeastRequests), most)))
}
