package engine

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// What observers are told of the iterations that were committed.

// report tells the observer of the iterations of p, in parts that do not cross its edges. used is the
// number of blocks referenced in iteration 0; released ones are gone in iteration 1.
func (r *Engine) report(p clock.Progression, used int, wait clock.Duration) {
	it, c, s := &r.it, &r.cohort, &r.span
	step, context := c.steps, it.context
	s.Replica = r.index
	s.Wait, s.Decodes, s.Gaps, s.FirstTokens = wait, it.decodes, it.gaps, len(it.current.firsts)-it.resumed
	s.PrefillTokens, s.RecomputedTokens, s.Shared = it.prefill, it.recomputed, r.batch.SharedTokens
	s.PaddedRows, s.PaddedTokens, s.PaddedContext = it.padRows, it.padTokens, it.padContext
	s.Drafts, s.Accepted, s.Discarded = it.drafts, it.accepted, it.discarded
	s.SwappedBlocks, s.LostTokens = r.moved, it.lost
	r.moved = 0
	for {
		n := p.N
		if r.released > 0 || it.leaving > 0 {
			n = 1
		}
		if edge := r.obs.Edge(p.Start); n > 1 && p.End(n) > edge {
			n = p.FirstEndAtOrAfter(edge)
			if p.End(n) > edge {
				n--
			}
			n = max(n, 1)
		}
		s.Start, s.Remainder, s.First, s.Slope, s.N = p.Start, p.Remainder, p.First, p.Slope, n
		s.Context = context
		if n == 1 {
			s.BlockFemtos = clock.Mul64(uint64(used), uint64(p.First))
		} else {
			s.BlockFemtos = c.takes.femtos(used, &s.Progression, step)
			used += c.takes.over(step, n-1)
		}
		s.UsedBlocks = used
		it.reportEmpty(s, step)
		r.obs.Span(s)
		if n == p.N {
			return
		}
		used += c.takes.over(step+int64(n)-1, 1) - r.released
		if it.empty > 0 {
			it.empty -= c.fills.over(step+int64(n)-1, 1) + it.leaving
			it.leaving = 0
		}
		r.released = 0
		step += int64(n)
		context += int64(n) * int64(it.decodes)
		p = p.Tail(n)
		s.PaddedContext += int64(n) * int64(it.padRows)
		s.Carry = s.CarryAfter(n)
		s.HostFemtos += int64(n) * s.HostSlope
		s.Wait, s.Gaps = 0, it.decodes
	}
}

// reportEmpty completes s by the blocks that hold nothing; step is the one that iteration 1 makes.
func (it *batchBuilder) reportEmpty(s *event.Span, step int64) {
	c := &it.r.cohort
	s.EmptyBlocks, s.EmptyFemtos = it.empty, clock.Uint128{}
	if it.empty == 0 {
		return
	}
	s.EmptyFemtos = clock.Mul64(uint64(it.empty), uint64(s.Femtos(s.N)))
	if s.N > 1 && c.fills.members > 0 {
		s.EmptyFemtos = s.EmptyFemtos.Sub(c.fills.femtos(0, &s.Progression, step))
		it.empty -= c.fills.over(step, s.N-1)
	}
	s.EmptyBlocks = it.empty
}
