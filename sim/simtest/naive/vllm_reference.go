package naive

import (
	"cmp"
	"slices"

	"clifftop/sim/sched"
)

// VLLMReference is a second implementation of vLLM's scheduler, which does not use the operations of a view: it walks
// the naive engine's own lists. It runs only on [Run], where it must do the same as the policy with its knobs.
func VLLMReference(p *sched.VLLM) sched.Scheduler { return vllmReference{p} }

type vllmReference struct{ *sched.VLLM }

// Schedule implements [sched.Scheduler].
func (p vllmReference) Schedule(v sched.View) {
	n := v.(view)
	p.extendRunning(n)
	if n.preempts {
		n.Blocked(sched.HeldByPolicy)
	} else {
		p.admitWaiting(n)
	}
}

// extendRunning gives the running sequences their missing tokens.
func (p vllmReference) extendRunning(n view) {
	for i := 0; i < len(n.running) && n.Budget() > 0; i++ {
		s := n.running[i]
		want := n.Clip(handle(s), min(p.capped(s.missing()), n.Budget()), p.LongPrefillTokenThreshold)
		if want == 0 {
			continue
		}
		for !n.grow(s, want) {
			victim := slices.MaxFunc(n.running, func(a, b *sequence) int { return p.compareVictims(n, a, b) })
			if slices.Index(n.running, victim) < i {
				i-- // s moves up
			}
			n.preempt(victim, true)
			if victim == s {
				return
			}
		}
		n.give(s, want)
	}
}

// compareVictims is positive if a is preempted rather than b.
func (p vllmReference) compareVictims(n view, a, b *sequence) int {
	last := cmp.Compare(a.serial, b.serial)
	switch p.Victim {
	case sched.LeastUrgent:
		return compareUrgency(n.rank(a), n.rank(b))
	case sched.MostRemaining:
		return cmp.Or(cmp.Compare(a.declared-a.known()+a.prompt, b.declared-b.known()+b.prompt), last)
	case sched.LeastProgress:
		return cmp.Or(cmp.Compare(b.known()-b.prompt, a.known()-a.prompt), last)
	case sched.Longest:
		return cmp.Or(cmp.Compare(a.known(), b.known()), last)
	}
	return last
}

// admitWaiting admits from the head of the queue until the head does not fit.
func (p vllmReference) admitWaiting(n view) {
	uniform := n.anyGiven() && !slices.ContainsFunc(n.running, func(s *sequence) bool { return !s.produces })
	skipped := false
	blocked := func(why sched.Cause) {
		if skipped {
			why = sched.HeldByPolicy
		}
		n.Blocked(why)
	}
	for n.place(0) != nil {
		s := n.place(0)
		if len(n.running) == n.cfg.MaxNumSeqs {
			blocked(sched.LacksSeats)
			return
		}
		if n.Budget() == 0 {
			blocked(sched.LacksBudget)
			return
		}
		if n.computes(s) || p.lacksAdapter(n, s) {
			n.Skip()
			skipped = true
			continue
		}
		cached, held := n.kv.lookup(s, s.known()-1)
		want := s.known() - cached
		pads := p.PadAdmissions && want == 1 && uniform && s.known()+n.cfg.Speculative.Tokens < n.cfg.MaxModelLen
		if pads {
			want += n.cfg.Speculative.Tokens
		}
		want = p.capped(want)
		if (pads || p.DisableChunkedPrefill) && want > n.Budget() {
			blocked(sched.LacksBudget)
			return
		}
		want = n.ClipWaiting(0, min(want, n.Budget()), p.LongPrefillTokenThreshold)
		if want == 0 {
			blocked(sched.LacksBudget)
			return
		}
		tokens := s.known()
		if p.Admission == sched.FirstChunk {
			tokens = cached + want
		}
		tokens = max(tokens, admissionSlots(&n.cfg, cached+want))
		need := n.BlocksFor(tokens) - held // cached blocks without references come out of the free blocks
		if h, ok := n.kv.(*hybrid); ok {
			need = h.needs(s, admissionSlots(&n.cfg, cached+want), false)
			if p.Admission == sched.FullPrompt {
				need = max(need, h.needs(s, s.known(), true))
			}
		}
		if len(n.running) > 0 {
			need += int(p.Watermark * float64(n.cfg.NumGPUBlocks))
		}
		if need > n.FreeBlocks() {
			blocked(sched.LacksKV)
			return
		}
		n.Admit(0, want)
	}
	blocked(sched.NotBlocked)
}

// lacksAdapter reports whether the iteration has as many adapters as it may have, and not the adapter of s.
func (p vllmReference) lacksAdapter(n view, s *sequence) bool {
	if p.MaxLoRAs == 0 || s.rec.Request.Adapter == 0 {
		return false
	}
	used := map[int32]bool{}
	for _, r := range n.running {
		if r.given > 0 && r.rec.Request.Adapter != 0 {
			used[r.rec.Request.Adapter] = true
		}
	}
	return len(used) >= p.MaxLoRAs && !used[s.rec.Request.Adapter]
}

// Repeats implements [sched.Scheduler].
func (p vllmReference) Repeats(v sched.View) int {
	if p.MaxLoRAs > 0 || v.(view).cfg.Radix {
		return 1 // the policy knows whom it passed over, and what it found before an eviction
	}
	return p.VLLM.Repeats(v)
}

// capped applies the threshold for long prefills.
func (p vllmReference) capped(tokens int32) int32 {
	if limit := p.LongPrefillTokenThreshold; limit > 0 {
		return min(tokens, limit)
	}
	return tokens
}
