package main

import (
	"errors"

	"clifftop/sim/sched"
)

var politeRule = sched.Rule{
	Name:    "polite",
	Does:    "while requests decode, prompts get at most a share of the iteration",
	Section: "polite",
	New:     func() sched.Options { return &Polite{Share: 512} },
}

// Polite is a batching policy: while requests decode, prompts get at most Share tokens of an iteration, so that
// decoding never stops for long. Prompts are admitted in order of arrival, when the KV cache has room for the
// whole prompt.
type Polite struct {
	Share int32 `json:"share" range:"[1,1e6]" doc:"most prompt tokens of an iteration beside decodes"`
}

// Make returns the scheduler of a replica.
func (p *Polite) Make(*sched.Keys) sched.Scheduler { made := *p; return &made }

// Defaults are vLLM's.
func (*Polite) Defaults() sched.Defaults { return sched.Defaults{} }

// Schedule composes one iteration.
func (p *Polite) Schedule(v sched.View) {
	for !v.DecodeFirst() { // the KV cache is full: preempt the last admitted request
		v.Preempt(v.Last())
		v.Blocked(sched.LacksKV)
	}
	share := v.Budget()
	if v.Decoding() > 0 {
		share = min(share, p.Share)
	}
	for s := v.NextPrefill(sched.None); s != sched.None && share > 0; s = v.NextPrefill(s) {
		n := min(v.Missing(s), share)
		v.Grow(s, n) // admission has reserved these blocks
		v.Give(s, n)
		share -= n
	}
	for w, ok := v.Waiting(0); ok; w, ok = v.Waiting(0) {
		if share == 0 || v.Seats() == 0 || v.BlocksFor(v.Slots(w.Known))-w.Held > v.FreeBlocks() {
			v.Blocked(sched.HeldByPolicy)
			return
		}
		n := min(w.Known-w.Cached, share)
		v.Reserve(v.Admit(0, n), w.Known)
		share -= n
	}
}

// Repeats returns for how many iterations Schedule would do the same.
func (p *Polite) Repeats(v sched.View) int {
	if w, ok := v.Waiting(0); ok && w.Live {
		return 1 // another request is computing the prefix that it waits for
	}
	return 1 << 30
}

// Validate checks the options.
func (p *Polite) Validate(l sched.Limits) error {
	if p.Share < 1 || l.Contiguous || l.Speculative {
		return errors.New("polite: needs a share of 1 or more, a paged KV cache and no drafts")
	}
	return nil
}
