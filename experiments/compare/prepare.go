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
// open. hourly reports that the runs of some variant cannot settle, and that all are hours.
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
	lengths, hours := make([]int, n), make([]bool, n)
	var progress func(done, total int)
	if c.o.Progress != nil {
		progress = func(done, total int) { c.o.Progress(done, total+n*runs) } // the runs follow
	}
	err = experiments.Parallel(c.ctx, n, c.o.Jobs, progress, func(ctx context.Context, i int) error {
		system, err := steady.Of(ctx, c.setups[i])
		if err != nil {
			return err
		}
		c.cases[i] = system.Case(c.setups[i])
		if open {
			lengths[i], hours[i], err = length(ctx, c.setups[i], system, runs)
		}
		return err
	})
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
