package validation

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"clifftop/experiments"
	"clifftop/report"
	"clifftop/sim/engine"
)

// Options say how cases are run.
type Options struct {
	// Jobs is the number of simulations at a time; 0 is one for each processor. It changes no result.
	Jobs int
	// Check asserts the simulator's invariants.
	Check bool
	// Progress is called with the number of finished simulations.
	Progress func(done, total int)
	// States makes results have the state of the system over time.
	States bool
}

// outcome has the simulated numbers of one row; a number is nil if there is none.
type outcome struct {
	throughput report.Throughput
	latency    report.Latency
	summary    *report.Summary
	states     *States // nil unless asked for
}

// simulate runs the cases side by side. The outcomes are in the order of the cases and their rows. A
// simulation that fails makes its case a refused one; only an interrupted run is an error.
func simulate(ctx context.Context, cases []*Case, o Options) ([][]*outcome, error) {
	results := make([][]*outcome, len(cases))
	first, same := repeats(cases)
	err := experiments.Parallel(ctx, len(first), o.Jobs, o.Progress, func(ctx context.Context, k int) error {
		i := first[k]
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
	for i, j := range same {
		results[i] = results[j]
		if cases[i].Refused == "" {
			cases[i].Refused = cases[j].Refused
		}
	}
	return results, err
}

// repeats finds the cases that a simulation serves which another one has already: runs of one configuration on
// different days differ in the name of the scenario only. It returns the others in order, and of each repeat the one
// that it repeats. Cases of results of load tools have no text to compare: each is simulated.
func repeats(cases []*Case) (first []int, same map[int]int) {
	same, seen := map[int]int{}, map[string]int{}
	for i, c := range cases {
		if c.setup == nil || c.steady || len(c.Rows) != 1 || c.list != nil || c.sessions != nil || len(c.YAML) == 0 {
			first = append(first, i)
			continue
		}
		_, text, _ := bytes.Cut(c.YAML, []byte("\n")) // the first line is the name
		key := fmt.Sprintf("%d %v\n%s", c.ranks, c.cold, text)
		if j, ok := seen[key]; ok {
			same[i] = j
			continue
		}
		seen[key] = i
		first = append(first, i)
	}
	return first, same
}

// run simulates a case once.
func (c *Case) run(ctx context.Context, o Options) ([]*outcome, error) {
	list := make([]*outcome, len(c.Rows))
	if c.setup == nil || c.Refused != "" {
		return list, nil
	}
	if c.steady {
		list[0] = c.steadyOutcome()
		return list, nil
	}
	setup := c.setup
	if c.cold.steps > 0 && !c.Rows[0].Pools() {
		setup = setup.Configured(func(e *engine.Config) { e.Timer = newColdTimer(e.Timer, c.cold) })
	}
	ro := experiments.RunOptions{Check: o.Check}
	var states *States
	if o.States {
		states = &States{}
		states.watch(&ro)
	}
	switch {
	case c.sessions != nil:
		src, err := newTalks(c.sessions, c.output, or(c.Rows[0].DurationS, longestRun))
		if err != nil {
			return list, err
		}
		ro.Source = src
	case c.list != nil:
		ro.Source = &replayed{list: c.list}
	}
	res, err := experiments.RunSetup(ctx, setup, ro)
	if err != nil {
		return list, err
	}
	if states != nil {
		states.complete(res)
	}
	stages := res.Summary.Stages
	for i := range list {
		if i < len(stages) {
			list[i] = &outcome{throughput: stages[i].Throughput, latency: stages[i].Latency, summary: res.Summary,
				states: states}
		}
	}
	return list, nil
}
