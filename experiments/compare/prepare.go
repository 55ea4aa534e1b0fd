package compare

import (
	"context"
	"slices"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/steady"
	"clifftop/report"
)

// prepare finds the saturation of the system of each variant, and sets the length of the runs if all scenarios leave it
// open. If they do not, the search has a tenth of the requests of the runs at most. hourly reports that the runs of
// some variant cannot settle, and that all are hours.
func (c *comparison) prepare(r experiments.Replication) (hourly bool, err error) {
	runs, open := r.Runs, true
	if r.Precision > 0 {
		runs = scenario.LeastReplications
	}
	for _, v := range c.variants {
		open = open && v.Scenario.Endless()
	}
	n := len(c.variants)
	c.cases = make([]steady.Case, n)
	lengths, hours, searched := make([]int, n), make([]bool, n), make([]int64, n)
	var progress func(done, total int)
	if c.o.Progress != nil {
		progress = func(done, total int) { c.o.Progress(done, total+n*runs) } // the runs follow
	}
	err = experiments.Parallel(c.ctx, n, c.o.Jobs, progress, func(ctx context.Context, i int) error {
		var err error
		u := c.setups[i]
		if !open {
			c.cases[i], searched[i], err = steady.Before(ctx, u, int64(runs)*u.Traffic.Expected())
			return err
		}
		system, err := steady.Of(ctx, u)
		if err != nil {
			return err
		}
		c.cases[i], searched[i] = system.Case(u), system.Simulated+steady.LeastRequests
		lengths[i], hours[i], err = length(ctx, u, system, runs)
		return err
	})
	for _, k := range searched {
		c.searched += k
	}
	if err != nil || !open {
		return false, err
	}
	hourly = slices.Contains(hours, true)
	for i := range lengths {
		if hours[i] == hourly { // hours are of one length, and enough for those that settle sooner
			c.requests = max(c.requests, lengths[i])
		}
	}
	for i, u := range c.setups {
		if c.setups[i], err = u.Lasting(c.requests); err != nil {
			return false, err
		}
	}
	return hourly, nil
}

// length is the number of requests that each run of a variant needs. A short run tells how much its requests wait.
func length(ctx context.Context, u *scenario.Setup, system *steady.Saturation, runs int) (requests int, hourly bool,
	err error) {
	short, err := u.Lasting(steady.LeastRequests)
	if err != nil {
		return 0, false, err
	}
	r, err := experiments.RunSetup(ctx, short, experiments.RunOptions{})
	if err != nil {
		return 0, false, err
	}
	requests, hourly = system.Each(u, r.Summary, runs)
	return requests, hourly, nil
}

// judge says in the pooled runs of a variant whether they show a steady state.
func (c *comparison) judge(variant int, pooled *report.Summary) { c.cases[variant].Judge(pooled) }
