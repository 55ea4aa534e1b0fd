package hours

import (
	"context"
	"fmt"
	"math"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/experiments/steady"
	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/sim/clock"
)

// Defaults of [Options].
const (
	// DefaultHours is the smallest number of hours that show a share of 90 % with a confidence of 95 % if all meet the
	// objective.
	DefaultHours = 29
	// DefaultShare is the share of hours that should meet the objective.
	DefaultShare = .9
	// DefaultHorizon is the length of an hour.
	DefaultHorizon = 3600 * clock.Second
)

// Options says which hours to simulate. The zero value is 29 hours.
type Options struct {
	// First is the number of the first hour, and Hours how many there are; 0 is 29. The random numbers of hour k are
	// those of the scenario's seed plus k, whatever the setup, so that the hours of two setups can be compared one by
	// one.
	First, Hours int
	// Horizon is the length of an hour; 0 is 3,600 s.
	Horizon clock.Duration
	// Lead is the time of the same traffic before each hour; 0 is that of [Lead].
	Lead clock.Duration
	// Jobs is the number of hours at a time; 0 is one for each processor. It changes no result.
	Jobs int
	// Check asserts the simulator's invariants throughout, at a cost.
	Check bool
	// Cache keeps the results of the hours, and gives those that it has; nil keeps none.
	Cache *experiments.ResultCache
	// Progress is called, from one goroutine at a time, with the number of hours that are done.
	Progress func(done, total int)
}

// Hour is the result of one hour.
type Hour struct {
	// Seed is that of its random numbers.
	Seed uint64
	// Met means that each limit of the objective was met by the requests that arrived in the hour.
	Met bool
	// Distance is the largest of the distances of the limits: positive where the objective was missed.
	Distance float64
	Limits   []Limit
	// Summary is that of the hour's run, whose window is the hour.
	Summary *report.Summary
}

// Limit is how one limit of the objective was kept in an hour.
type Limit struct {
	Key string
	Met bool
	// Distance is the natural logarithm of the value divided by the limit; for shares of requests, of the share that
	// breaks the rule divided by the share that may. It is at most 10 and at least −10.
	Distance float64
}

// farthest is the largest absolute distance of a limit. A value without end, and one of 0, count as so far.
const farthest = 10

// Judge simulates hours of a setup and holds each against the scenario's objective. Each hour is a run of its own: it
// begins with a lead-in, nothing is cut inside the hour, and requests that arrive in it count until they end. The
// rate is the mean of the hour. The result does not depend on the number of jobs.
//
// The error is [yamldoc.Faults] if the scenario cannot be judged by the hour.
func Judge(ctx context.Context, u *scenario.Setup, o Options) ([]Hour, error) {
	if err := o.fill(ctx, u); err != nil {
		return nil, err
	}
	list := make([]Hour, o.Hours)
	err := experiments.Parallel(ctx, o.Hours, o.Jobs, o.Progress, func(ctx context.Context, i int) error {
		var err error
		list[i], err = one(ctx, u, o.First+i, &o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// fill fills in the defaults, and checks the rest.
func (o *Options) fill(ctx context.Context, u *scenario.Setup) error {
	if !u.Report.Limited() {
		return yamldoc.Faults{u.Scenario.Fault("slo",
			"there is no SLO to judge hours by (set a limit such as ttft_p95: 800ms, or attainment: 0.95)")}
	}
	if o.Hours == 0 {
		o.Hours = DefaultHours
	}
	if o.Horizon == 0 {
		o.Horizon = DefaultHorizon
	}
	if o.Lead != 0 {
		return nil
	}
	var err error
	o.Lead, err = Lead(ctx, u, o.Horizon)
	return err
}

// Lead is the time of the same traffic that comes before an hour: three times what a request takes on an idle system,
// or the time in which a system with a load of three quarters settles, up to the horizon and an hour. It is rounded
// up to a multiple of 2^18 ms (4.4 minutes), or of 2^14 ms if it is shorter, so that the hour begins with a bucket of
// time and hours of like systems have the same lead-in. It is an error if the hour is shorter than a request takes.
func Lead(ctx context.Context, u *scenario.Setup, horizon clock.Duration) (clock.Duration, error) {
	const (
		residences = 3
		load       = .75
		unit       = 1 << 18 * clock.Millisecond
		most       = 14 // units, 61 minutes
	)
	idle, err := steady.Idle(ctx, u)
	if err != nil {
		return 0, err
	}
	if idle >= horizon.Seconds() {
		return 0, yamldoc.Faults{u.Scenario.Fault("slo.horizon",
			"%s is shorter than a request takes, %s s on an idle system (want %s s or more)",
			layout.Seconds(horizon.Seconds()), layout.Digits(idle), layout.Digits(10*idle))}
	}
	seconds := residences * idle
	if d, ok := u.Traffic.Dispersion(); ok && u.Traffic.Rate > 0 {
		low := u.Traffic.Rate / load
		seconds = max(seconds, 2*(d.Asymptotic+1)/(low*(1-load)*(1-load))+d.Correlation+idle)
	}
	if seconds = min(seconds, horizon.Seconds()); seconds < clock.Duration(unit).Seconds() {
		const fine = unit >> 4
		return clock.Duration(math.Ceil(seconds/clock.Duration(fine).Seconds())) * fine, nil
	}
	units := math.Ceil(seconds / clock.Duration(unit).Seconds())
	return clock.Duration(min(units, most)) * unit, nil
}

func one(ctx context.Context, u *scenario.Setup, k int, o *Options) (Hour, error) {
	seeded, err := u.Reseeded(k)
	if err != nil {
		return Hour{}, err
	}
	hour, err := seeded.Hour(o.Lead, o.Horizon)
	if err != nil {
		return Hour{}, err
	}
	about := fmt.Sprintf("hour of %d after %d", o.Horizon, o.Lead)
	s, err := o.Cache.Run(ctx, hour, experiments.RunOptions{Check: o.Check}, about)
	if err != nil {
		return Hour{}, err
	}
	h := Hour{Seed: s.Seed, Met: true, Distance: -farthest, Summary: s}
	held := s.HeldTo()
	for i := range held {
		l := &held[i]
		if l.N == 0 {
			return Hour{}, yamldoc.Faults{u.Scenario.Fault("slo."+l.Key,
				"there is nothing to judge it by: no request of an hour has this metric (remove the limit, or set a "+
					"higher rate or longer outputs)")}
		}
		x := Limit{Key: l.Key, Met: l.Met != nil && *l.Met, Distance: distance(l)}
		h.Met, h.Distance = h.Met && x.Met, max(h.Distance, x.Distance)
		h.Limits = append(h.Limits, x)
	}
	return h, nil
}

// distance is that of a limit.
func distance(l *report.LimitResult) float64 {
	used := l.Use()
	if l.LimitMs == nil { // the share of few requests is seldom exactly 0
		used = max(used, .5/float64(l.N))
	}
	return min(max(math.Log(used), -farthest), farthest)
}
