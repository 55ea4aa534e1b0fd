package validation

import (
	"context"
	"errors"

	"clifftop/experiments"
	"clifftop/report"
)

// Options say how cases are run.
type Options struct {
	// Jobs is the number of simulations at a time; 0 is one for each processor. It changes no result.
	Jobs int
	// Check asserts the simulator's invariants.
	Check bool
	// Progress is told how many simulations are done.
	Progress func(done, total int)
}

// outcome is what a simulation gives for one row; nil where there is none.
type outcome struct {
	throughput report.Throughput
	latency    report.Latency
	summary    *report.Summary
}

// simulate runs the cases side by side. The outcomes are in the order of the cases and their rows. A
// simulation that fails makes its case a refused one; only an interrupted run is an error.
func simulate(ctx context.Context, cases []*Case, o Options) ([][]*outcome, error) {
	results := make([][]*outcome, len(cases))
	err := experiments.Parallel(ctx, len(cases), o.Jobs, o.Progress, func(ctx context.Context, i int) error {
		list, err := cases[i].run(ctx, o)
		if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return err
		}
		if err != nil {
			cases[i].Refused = "the simulation failed: " + reason(err)
		}
		results[i] = list
		return nil
	})
	return results, err
}

// run simulates a case once.
func (c *Case) run(ctx context.Context, o Options) ([]*outcome, error) {
	list := make([]*outcome, len(c.Rows))
	if c.setup == nil || c.Refused != "" {
		return list, nil
	}
	setup := *c.setup
	if c.cold {
		setup.Config.Timer = newColdTimer(setup.Config.Timer)
	}
	ro := experiments.RunOptions{Check: o.Check}
	if c.list != nil {
		ro.Source = &replayed{list: c.list}
	}
	res, err := experiments.RunSetup(ctx, &setup, ro)
	if err != nil {
		return list, err
	}
	stages := res.Summary.Stages
	for i := range list {
		if i < len(stages) {
			list[i] = &outcome{throughput: stages[i].Throughput, latency: stages[i].Latency, summary: res.Summary}
		}
	}
	return list, nil
}
