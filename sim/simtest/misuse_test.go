package simtest

import (
	"strings"
	"testing"

	"clifftop/sim/sched"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

// does is a policy that does one thing, over and over, and promises as many iterations as it says.
type does struct {
	schedule func(v sched.View)
	repeats  int
}

func (p does) Validate(sched.Limits) error { return nil }
func (p does) Repeats(sched.View) int      { return p.repeats }
func (p does) Schedule(v sched.View)       { p.schedule(v) }

// TestRefuses runs policies that break a rule on two requests of 4 and 5 tokens, on both engines. Only the naive one
// knows what a policy that was not asked would have done.
func TestRefuses(t *testing.T) {
	for _, test := range []struct {
		want    string
		repeats int
		does    func(v sched.View)
	}{
		{"nothing can be scheduled", 1, func(v sched.View) {}},
		{"admits request 2 of 2", 1, func(v sched.View) { v.Admit(2, 1) }},
		{"is given 5 tokens, where it misses 4", 1, func(v sched.View) { v.Admit(0, 5) }},
		{"there are not enough blocks", 1, func(v sched.View) { v.Admit(0, 4); v.Admit(0, 5) }},
		{"given tokens twice", 1, func(v sched.View) { s := v.Admit(0, 2); v.Grow(s, 1); v.Give(s, 1) }},
		{"given 2 tokens without blocks", 1, func(v sched.View) {
			for s := v.First(); s != sched.None; s = v.Next(s) {
				v.Give(s, 2)
			}
			if v.RunningLen() == 0 {
				v.Admit(0, 2)
			}
		}},
		{"does not run", 1, func(v sched.View) { s := v.Admit(0, 4); v.Preempt(s); v.Missing(s) }},
		{"Repeats promised 8 more iterations", 9, func(v sched.View) {
			v.DecodeFirst()
			if v.RunningLen() == 0 || v.DecodeSteps() == 1 {
				v.Admit(0, 4)
			}
		}},
	} {
		cfg := plain()
		cfg.BlockSize, cfg.NumGPUBlocks = 1, 9
		if test.repeats > 1 {
			cfg.NumGPUBlocks = 100
		}
		cfg.Scheduler = does{test.does, test.repeats}
		two := []workload.Request{{InputTokens: 4, OutputTokens: 4}, {InputTokens: 5, OutputTokens: 4}}
		if err := naive.Run(cfg, NewRequests(two), &Recorder{}); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("naive: want an error with %q, got %v", test.want, err)
		}
		if test.repeats > 1 {
			continue
		}
		cfg.Check = true
		if err := runEngine(cfg, NewRequests(two), &Recorder{}); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("engine: want an error with %q, got %v", test.want, err)
		}
	}
}
