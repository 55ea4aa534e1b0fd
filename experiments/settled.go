package experiments

import (
	"cmp"
	"context"

	"clifftop/experiments/scenario"
	"clifftop/experiments/steady"
	"clifftop/report"
	"clifftop/report/collect"
	"clifftop/workload"
)

// SettledRun is a run that is as long as it needs to settle if its scenario leaves the length open, within a budget of
// processor time. Make one with [NewSettled].
type SettledRun struct {
	// Setup is the setup of the run. Its number of requests changes as the run goes on.
	Setup *scenario.Setup
	judge *steady.Run
}

// NewSettled resolves a scenario. If the options have a search, or the length of the run must be known before it
// starts, it searches for the saturation of the system.
func NewSettled(ctx context.Context, s *scenario.Scenario, o steady.Options) (*SettledRun, error) {
	judge, err := steady.Resolve(ctx, s, o)
	if err != nil {
		return nil, err
	}
	return &SettledRun{judge.Setup, judge}, nil
}

// Settled is [Run] of a run that is as long as it needs, and says whether the run shows a steady state. It is judged
// by its own window. If that leaves the verdict open, the saturation of the system is looked for with a tenth of its
// requests at most.
func Settled(ctx context.Context, s *scenario.Scenario, o RunOptions) (*Result, error) {
	r, err := NewSettled(ctx, s, steady.Options{})
	if err != nil {
		return nil, err
	}
	return r.Run(ctx, o)
}

// Run makes the run. A run that turns out to be too short is continued, so that it gives the bytes of one that had
// its length from the start. It returns what [Run] returns.
func (r *SettledRun) Run(ctx context.Context, o RunOptions) (*Result, error) {
	x, err := begin(r.Setup, o)
	if err != nil {
		return nil, err
	}
	if src, ok := x.patient.(workload.Adjustable); ok && r.judge.Extends && o.Source == nil {
		if err := r.extend(ctx, x, src); err != nil {
			return nil, err
		}
	}
	res, runErr := x.finish(ctx)
	if res == nil {
		return nil, runErr
	}
	return res, cmp.Or(runErr, r.judge.Judge(ctx, res.Summary))
}

// extend runs until the last request is sent, whose number it finds meanwhile.
func (r *SettledRun) extend(ctx context.Context, x *simulation, src workload.Adjustable) error {
	n := x.setup.Traffic.Requests
	src.EndAfter(maxRequests)
	for {
		done, err := x.engine.RunUntil(ctx, func() bool { return src.Sent() >= n })
		if err != nil && ctx.Err() == nil {
			return x.failure(err)
		}
		if done {
			break
		}
		sum := collect.Peek(x.collector, x.engine.Now())
		sum.Effort.Requests = sum.Requests.Offered
		longer, err := r.judge.Next(ctx, sum, float64(x.engine.Effort().Compositions)/float64(n))
		if err != nil {
			return err
		}
		if longer <= n {
			break
		}
		n = longer
		if x.meter != nil {
			x.meter.requests = n
		}
	}
	src.EndAfter(max(n, src.Sent()))
	setup, err := x.setup.Lasting(int(n))
	if err != nil {
		return err
	}
	x.setup, r.Setup = setup, setup
	return nil
}

// maxRequests is more than any run has.
const maxRequests = 1 << 62

// Replicate makes several runs, as replicateSetup does, and says whether together they show a steady state.
func (r *SettledRun) Replicate(ctx context.Context, o ReplicateOptions) (*report.Summary, error) {
	pooled, err := replicateSetup(ctx, r.Setup, o)
	if pooled == nil {
		return nil, err
	}
	return pooled, cmp.Or(err, r.Judge(ctx, pooled))
}

// Judge says in the pooled result of several runs whether they show a steady state.
func (r *SettledRun) Judge(ctx context.Context, pooled *report.Summary) error {
	return r.judge.Judge(ctx, pooled)
}

// Work is about the processor time that the run takes, to put long runs before short ones.
func (r *SettledRun) Work() float64 { return r.judge.Work() }
