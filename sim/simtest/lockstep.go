package simtest

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/model"
	"clifftop/sim"
	"clifftop/sim/engine"
	"clifftop/sim/route"
	"clifftop/sim/sched"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

// VerifyLockstep runs a policy on random groups of ranks that iterate in lock step. It checks that the iterations of
// all ranks begin and end together, with and without spans, and that ranks that get the same requests do what the naive
// engine does, as long as they have work.
func VerifyLockstep(t testing.TB, p Policy, router func() route.Router) {
	t.Helper()
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		c := p.Draw(t)
		c.config.Connector = nil
		ranks := rapid.IntRange(2, 4).Draw(t, "ranks")
		copies := rapid.Bool().Draw(t, "copies")
		c.config.Timer = sharing{c.config.Timer, ranks, rapid.Int64Range(0, 1e6).Draw(t, "femtos per token of all "+
			"ranks"),
			rapid.Int64Range(0, 1e6).Draw(t, "femtos per token of the busiest rank")}
		if copies {
			c.together()
		}
		var first []Recorder
		for _, maxSpan := range []int{1, 3, 0} {
			obs := c.lockstep(t, ranks, maxSpan, copies, router)
			if first == nil {
				first = obs.parts
				count(seen, &obs.Recorder)
				continue
			}
			for i := range first {
				if d := Diff(&first[i], &obs.parts[i]); d != "" {
					t.Fatalf("rank %d of %d stepped singly and in spans of %d: %s\n%v", i, ranks, maxSpan, d, c)
				}
			}
		}
		for i := 1; i < ranks; i++ {
			a, b := first[0].Iterations, first[i].Iterations
			if len(a) != len(b) {
				t.Fatalf("ranks 0 and %d have %d and %d iterations\n%v", i, len(a), len(b), c)
			}
			for k := range a {
				if a[k].Start != b[k].Start || a[k].End != b[k].End {
					t.Fatalf("iteration %d of rank 0 is from %v to %v, that of rank %d from %v to %v\n%v", k,
						a[k].Start, a[k].End, i, b[k].Start, b[k].End, c)
				}
			}
		}
		if !copies {
			return
		}
		for i := range first {
			var reference Recorder
			if err := naive.Run(c.Config(), newCopies(c.requests, ranks, i), &reference); err != nil {
				t.Fatalf("naive: %v\n%v", err, c)
			}
			worked := withoutDummies(first[i].Iterations)
			if len(worked) != len(reference.Iterations) {
				t.Fatalf("rank %d has %d iterations with work, the naive engine %d\n%v", i, len(worked),
					len(reference.Iterations), c)
			}
			for k, it := range worked {
				if n := &reference.Iterations[k]; it.Start != n.Start || it.End != n.End || it.Decodes != n.Decodes ||
					it.PrefillTokens != n.PrefillTokens {
					t.Fatalf("iteration %d of rank %d is %+v, naive %+v\n%v", k, i, it, n, c)
				}
			}
		}
	})
	t.Log(seen)
}

// sharing is a timer of ranks that do something together.
type sharing struct {
	model.StepTimer
	ranks               int
	perToken, perOfMost int64 // femtoseconds for each token of all ranks, and of the busiest one
}

// Span implements [model.StepTimer].
func (s sharing) Span(b *model.Batch) (first, slope int64, n int) {
	first, slope, n = s.StepTimer.Span(b)
	all, most := b.GroupTokens, b.BusiestTokens
	if all == 0 {
		most = int64(b.Decodes + b.Drafts)
		for _, c := range b.Chunks {
			most += int64(c.New)
		}
		all = most * int64(s.ranks)
	}
	return first + s.perToken*all + s.perOfMost*most, slope, n
}

// together makes all requests of a case reach the queue at once, from clients that stay.
func (c *Case) together() {
	c.users, c.retries = 0, Retries{}
	c.config.NetworkIn, c.config.Frontend, c.config.FrontendPerToken = 0, 0, 0
	c.config.Speculative = engine.Speculative{} // the draws of copies would differ
	if c.config.Order != nil {
		c.config.Order = sched.ByPriority{}
	}
	for i := range c.requests {
		c.requests[i].Arrival, c.requests[i].Client = 0, nil
	}
}

// lockstep runs a case on ranks. With copies each rank gets all requests.
func (c *Case) lockstep(t *rapid.T, ranks, maxSpan int, copies bool, router func() route.Router) *fleetRecorder {
	f := sim.Fleet{Lockstep: []int{ranks}, Routers: []route.Router{router()}}
	for range ranks {
		cfg := c.Config()
		cfg.Check, cfg.MaxSpan, cfg.RecvInterval = true, maxSpan, 0
		if p, ok := cfg.Scheduler.(*sched.TRTLLM); ok && copies { // an engine alone does not wait for others
			p.Waits = sched.ContextWaits{}
		}
		f.Replicas = append(f.Replicas, cfg)
	}
	src := workload.Source(c.Source())
	if copies {
		src = newCopies(c.requests, ranks, -1)
		f.Routers = []route.Router{byID(ranks)}
	}
	obs := &fleetRecorder{parts: make([]Recorder, ranks)}
	e, err := sim.NewFleet(f, src, obs)
	if err == nil {
		err = e.Run(context.Background())
	}
	if err != nil {
		t.Fatalf("%d ranks, spans of %d: %v\n%v", ranks, maxSpan, err, c)
	}
	return obs
}

// withoutDummies leaves out the iterations of dummy batches.
func withoutDummies(list []Iteration) []Iteration {
	var some []Iteration
	for _, it := range list {
		if it.Decodes+it.PrefillTokens+it.RecomputedTokens+it.Drafts > 0 {
			some = append(some, it)
		}
	}
	return some
}

// newCopies sends each request once for each of n ranks, or for one of them alone; the ID gives the rank.
func newCopies(list []workload.Request, n, alone int) *replay {
	p := new(replay)
	for i, r := range list {
		for k := range n {
			if r.ID = int64(i*n + k); alone < 0 || alone == k {
				p.list = append(p.list, r)
			}
		}
	}
	return p
}

// byID routes by request ID modulo the number of ranks.
type byID int

// Route implements [route.Router].
func (n byID) Route(_ route.View, r *workload.Request) int { return int(r.ID % int64(n)) }

// VerifyLockstepLifecycle runs a policy on random groups of ranks that iterate in lock step and crash, drain, are slow,
// lose their link and are scaled together. It checks that no request is lost, and that the iterations of the ranks of a
// group always begin and end together, with and without spans.
func VerifyLockstepLifecycle(t testing.TB, p Policy, router func() route.Router) {
	t.Helper()
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		c := p.Draw(t)
		c.config.Connector = nil
		d := drawer{t}
		ranks := slices.Repeat([]int{d.between("ranks", 2, 3)}, d.between("groups", 1, 3))
		alone := !d.once("clients react", 4)
		if alone { // what one group does must not change the requests of another at the same instant
			c.users, c.retries, c.config.NetworkIn = 0, Retries{}, 0
		}
		lifecycle := d.lifecycle(len(ranks)*ranks[0], ranks, c.step())
		var first []Recorder
		for _, maxSpan := range []int{1, 3, 0} {
			obs := c.lockstepLifecycle(t, *lifecycle, maxSpan, router())
			if first == nil {
				first = obs.parts
				count(seen, &obs.Recorder)
			}
			for i := range first {
				if d := Diff(&first[i], &obs.parts[i]); alone && d != "" {
					t.Fatalf("rank %d stepped singly and in spans of %d: %s\n%v of %d\n%+v\n%v", i, maxSpan, d, ranks,
						ranks[0], lifecycle, c)
				}
			}
		}
		for i := range first {
			a, b := first[i/ranks[0]*ranks[0]].Iterations, first[i].Iterations
			if !slices.EqualFunc(a, b, func(x, y Iteration) bool { return x.Start == y.Start && x.End == y.End }) {
				t.Fatalf("rank %d does not iterate with its group: %d and %d iterations\n%v\n%+v\n%v", i, len(a),
					len(b), ranks, lifecycle, c)
			}
		}
	})
	t.Log(seen)
}

// lockstepLifecycle runs a case on groups of ranks with a lifecycle.
func (c *Case) lockstepLifecycle(t *rapid.T, lifecycle sim.Lifecycle, maxSpan int, router route.Router) *fleetRecorder {
	lifecycle.Renew = func(int) engine.Config {
		cfg := c.Config()
		cfg.Check, cfg.MaxSpan, cfg.RecvInterval = true, maxSpan, 0
		return cfg
	}
	lifecycle.Scalers = slices.Clone(lifecycle.Scalers)
	for i := range lifecycle.Scalers {
		policy := *lifecycle.Scalers[i].Policy.(*randomAutoscaler)
		lifecycle.Scalers[i].Policy = &policy
	}
	f := sim.Fleet{Lockstep: lifecycle.Groups, Routers: []route.Router{router}, Lifecycle: &lifecycle}
	for _, ranks := range lifecycle.Groups {
		for range ranks {
			f.Replicas = append(f.Replicas, lifecycle.Renew(0))
		}
	}
	src, obs := c.Source(), &fleetRecorder{parts: make([]Recorder, len(f.Replicas))}
	e, err := sim.NewFleet(f, src, obs)
	if err == nil {
		err = e.Run(context.Background())
	}
	if err == nil {
		err = checkConserved(&obs.Recorder, src)
	}
	if err != nil {
		t.Fatalf("spans of %d: %v\n%+v\n%v", maxSpan, err, lifecycle, c)
	}
	return obs
}

// DrawPipeline makes a random case with two or more pipeline stages of different lengths. Features that pipelines do
// not support are left out.
func (p Policy) DrawPipeline(t *rapid.T) Case {
	c := p.Draw(t)
	d := drawer{t}
	cfg := &c.config
	cfg.Stages = d.between("stages", 2, 6)
	cfg.RecvInterval = 0
	cfg.HostBlocks, cfg.Radix, cfg.Contiguous, cfg.Connector, cfg.Speculative = 0, false, false, nil,
		engine.Speculative{}
	cfg.Hybrid = nil
	if _, fair := cfg.Order.(sched.Fair); fair {
		cfg.Order = sched.ByPriority{}
	}
	if d.once("narrow", 2) && !c.wholePrompts() { // decoding sequences are then often left out, behind prefills
		cfg.MaxNumBatchedTokens = cfg.MaxNumSeqs + d.of("spare budget", 3)
	}
	if d.once("even", 2) {
		return c
	}
	timer := Staged{StepTimer: cfg.Timer}
	for range cfg.Stages {
		timer.Weights = append(timer.Weights, int64(d.one("weight", 1, 2, 5)))
	}
	b := model.Batch{Decodes: 1, Context: 1, Emit: 1}
	step, _, _ := cfg.Timer.Span(&b)
	timer.Hop = int64(d.one("hop", 0, 1, 20)) * step / 50
	cfg.Timer = timer
	return c
}

// wholePrompts reports whether the policy never splits a prompt.
func (c *Case) wholePrompts() bool {
	v, ok := c.policy.New(c.knobs).(*sched.VLLM)
	return ok && v.DisableChunkedPrefill
}

// pipelined changes a policy so that it supports a pipeline, if it can.
func pipelined(s sched.Scheduler) {
	if v, ok := s.(*sched.VLLM); ok {
		if v.Swap = false; v.Admission == sched.FullLength {
			v.Admission = sched.FullPrompt
		}
	}
}

// together is the numbers of iterations that were in flight together, by their passages.
func (t *Recorder) together() map[int]bool {
	seen := make(map[int]bool)
	for i, it := range t.Iterations {
		if it.Passages == "" {
			return nil
		}
		n := 1
		enter := parsePassages(it.Passages)[0]
		for k := i - 1; k >= 0 && int64(t.Iterations[k].End) > enter[0]; k-- {
			n++
		}
		seen[n] = true
	}
	return seen
}
