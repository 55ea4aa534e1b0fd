package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"clifftop/experiments"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Difference is the first iteration of a case that the policy composed differently.
type Difference struct {
	Format  string `json:"format"`
	Profile string `json:"profile"`
	Case    string `json:"case"`
	// Iteration is its number from 0. Expected is the recorded iteration, Got that of the simulator.
	Iteration int    `json:"iteration"`
	Expected  string `json:"expected"`
	Got       string `json:"got"`
}

// Simulator runs an engine until the source is exhausted.
type Simulator func(ctx context.Context, cfg engine.Config, src workload.Source, obs event.Observer) error

// Simulate is the [Simulator] of this program.
func Simulate(ctx context.Context, cfg engine.Config, src workload.Source, obs event.Observer) error {
	s, err := sim.New(cfg, src, obs)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// Options say how cases are replayed.
type Options struct {
	// Jobs is the number of cases at a time; 0 is one for each processor. It changes no result.
	Jobs int
	// Check asserts the simulator's invariants.
	Check bool
	// Progress is called with the number of cases done.
	Progress func(done, total int)
	// Simulator replays a case; nil is [Simulate].
	Simulator Simulator
}

// replay replays the case on a simulator, and returns the first difference, or nil.
func (c *Case) replay(ctx context.Context, o *Options) (*Difference, error) {
	cfg := c.engine()
	cfg.Check = o.Check
	if err := cfg.Validate(); err != nil {
		c.Refused = err.Error()
		return nil, nil
	}
	run := o.Simulator
	if run == nil {
		run = Simulate
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	w := &comparison{c: c, stop: stop}
	err := run(inner, cfg, &source{list: c.requests}, w)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case w.found != nil || w.done:
		return w.found, nil
	case err != nil && !errors.Is(err, context.Canceled):
		return w.differs("an error: " + err.Error()), nil
	case w.next < len(c.iterations):
		return w.differs("no further iteration"), nil
	}
	return nil, nil
}

// comparison is the observer that compares each iteration with the recorded one.
type comparison struct {
	event.Ignore
	c     *Case
	next  int // number of the next iteration
	found *Difference
	done  bool // the record ended before the run
	stop  context.CancelFunc
}

var _ event.StepObserver = (*comparison)(nil)

// Step implements [event.StepObserver].
func (w *comparison) Step(s *event.Step) {
	if w.found != nil || w.done {
		return
	}
	got := observed(s)
	if w.c.unordered {
		slices.SortFunc(got.Rows, byRequest)
	}
	switch {
	case w.next == len(w.c.iterations) && w.c.cut:
		w.done = true
		w.stop()
	case w.next == len(w.c.iterations) || !w.c.compares(&got, &w.c.iterations[w.next]):
		w.found = w.differs(w.describe(&got))
		w.stop()
	}
	w.next++
}

// differs returns the difference at the next iteration.
func (w *comparison) differs(got string) *Difference {
	d := &Difference{Format: w.c.Format, Profile: w.c.Profile, Case: w.c.Name, Iteration: w.next, Got: got,
		Expected: "no further iteration"}
	if w.next < len(w.c.iterations) {
		d.Expected = w.describe(&w.c.iterations[w.next])
	}
	return d
}

// describe describes an iteration with the values that the format records.
func (w *comparison) describe(it *iteration) string {
	if w.c.unordered {
		return fmt.Sprintf("%v at %v ms", it, float64(it.At)/float64(clock.Millisecond))
	}
	return fmt.Sprintf("%v, running %d, waiting %d", it, it.Running, it.Waiting)
}

// source sends the requests of a case.
type source struct {
	list []workload.Request
	next int
}

var _ workload.Source = (*source)(nil)

// Peek implements [workload.Source].
func (s *source) Peek() (at clock.Time, ok bool) {
	if s.next == len(s.list) {
		return clock.Never, false
	}
	return s.list[s.next].Arrival, true
}

// Next implements [workload.Source].
func (s *source) Next() workload.Request {
	r := s.list[s.next]
	r.ID = int64(s.next)
	s.next++
	return r
}

// Done implements [workload.Source].
func (s *source) Done(*workload.Request, workload.End) bool { return false }

// Err implements [workload.Source].
func (s *source) Err() error { return nil }

// result is the result of a case: the first difference, or nil.
type result struct {
	found *Difference
	done  bool
}

// Run replays the cases of records, and reports which agree. If it is interrupted, the report has the cases that were
// replayed before.
func Run(ctx context.Context, records []*Record, o Options) (*Report, error) {
	var cases []*Case
	for _, r := range records {
		cases = append(cases, r.Cases...)
	}
	results := make([]result, len(cases))
	err := experiments.Parallel(ctx, len(cases), o.Jobs, o.Progress, func(ctx context.Context, i int) error {
		if cases[i].Refused == "" {
			found, err := cases[i].replay(ctx, &o)
			if err != nil {
				return err
			}
			results[i].found = found
		}
		results[i].done = true
		return nil
	})
	return newReport(records, cases, results), err
}
