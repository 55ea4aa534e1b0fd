package simtest

import (
	"slices"

	"clifftop/model"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/sched"
)

// iteration is one forward pass.
type iteration struct {
	shares   []share // in running order
	budget   int32   // what is left of it while composing
	preempts bool    // somebody was preempted while composing
	end      clock.Time
}

// share is what one sequence has in an iteration.
type share struct {
	seq    *sequence
	tokens int32
	cached int32 // found in the prefix cache, on admission
	emits  bool  // produces a token at the iteration's end
}

// compose decides what the next iteration does and takes the blocks for it.
func (n *naive) compose(at clock.Time) *iteration {
	it := &iteration{budget: int32(n.cfg.MaxNumBatchedTokens)}
	n.blocked = sched.NotBlocked
	n.extendRunning(it, at)
	if it.preempts {
		n.blocked = sched.HeldByPolicy
	} else {
		n.admitWaiting(it, at)
	}
	return it
}

// extendRunning gives the running sequences their missing tokens.
func (n *naive) extendRunning(it *iteration, at clock.Time) {
	for i := 0; i < len(n.running) && it.budget > 0; i++ {
		s := n.running[i]
		want := min(n.capped(s.missing()), it.budget)
		if want == 0 {
			continue
		}
		for !n.grow(s, want) {
			victim := n.victim()
			if slices.Index(n.running, victim) < i {
				i-- // s moves up
			}
			n.preempt(victim, it, at)
			if victim == s {
				return
			}
		}
		n.give(it, share{seq: s, tokens: want})
	}
}

// admitWaiting admits from the head of the queue until the head does not fit.
func (n *naive) admitWaiting(it *iteration, at clock.Time) {
	for len(n.waiting) > 0 {
		s := n.waiting[0]
		if len(n.running) == n.cfg.MaxNumSeqs {
			n.blocked = sched.LacksSeats
			return
		}
		if it.budget == 0 {
			n.blocked = sched.LacksBudget
			return
		}
		hits := n.lookup(s)
		cached := int32(len(hits)) * n.cfg.BlockSize
		want := n.capped(s.known() - cached)
		if n.policy.DisableChunkedPrefill && want > it.budget {
			n.blocked = sched.LacksBudget
			return
		}
		want = min(want, it.budget)
		if !n.fits(s, hits, want) {
			n.blocked = sched.LacksKV
			return
		}

		n.waiting = n.waiting[1:]
		n.running = append(n.running, s)
		if s.rec.Scheduled == clock.Never {
			s.rec.Scheduled = at
			s.rec.CachedTokens = cached
		}
		n.pool.take(hits)
		s.blocks, s.entered, s.computed = hits, len(hits), cached
		n.grow(s, want)
		n.give(it, share{seq: s, tokens: want, cached: cached})
	}
}

// capped applies the threshold for long prefills.
func (n *naive) capped(tokens int32) int32 {
	if limit := n.policy.LongPrefillTokenThreshold; limit > 0 {
		return min(tokens, limit)
	}
	return tokens
}

// blocksFor is the number of blocks that hold so many tokens.
func (n *naive) blocksFor(tokens int32) int {
	return (int(tokens) + int(n.cfg.BlockSize) - 1) / int(n.cfg.BlockSize)
}

// pagesFor is the number of blocks that hold so many tokens, and the charge for windowed layers.
func (n *naive) pagesFor(tokens int32) int {
	blocks := n.blocksFor(tokens)
	return blocks + n.cfg.Window.Extra(blocks)
}

// grow gives s the blocks for so many more tokens, if there are enough.
func (n *naive) grow(s *sequence, tokens int32) bool {
	blocks := n.blocksFor(s.computed + tokens)
	need := blocks - len(s.blocks)
	charge := n.cfg.Window.Extra(blocks)
	if need+charge-s.windowed > n.pool.free() {
		return false
	}
	n.pool.used += charge - s.windowed
	s.windowed = charge
	for range need {
		s.blocks = append(s.blocks, n.pool.pop())
	}
	return true
}

// give schedules tokens of a sequence that has the blocks for them. Blocks that they fill enter the
// prefix cache at once, as far as the tokens are known by now.
func (n *naive) give(it *iteration, sh share) {
	it.shares = append(it.shares, sh)
	it.budget -= sh.tokens
	n.enter(sh.seq, min(sh.seq.computed+sh.tokens, sh.seq.known()))
}

// release gives back what s holds of the pool.
func (n *naive) release(s *sequence) {
	n.pool.release(s.blocks)
	n.pool.used -= s.windowed
	s.windowed = 0
}

// lookup finds the blocks that hold the leading tokens of s, all but at least one.
func (n *naive) lookup(s *sequence) (hits []int) {
	most := int((s.known() - 1) / n.cfg.BlockSize)
	for _, key := range s.keys[:min(most, len(s.keys))] {
		b, ok := n.pool.find(key)
		if !ok {
			break
		}
		hits = append(hits, b)
	}
	return hits
}

// enter puts the blocks of the first tokens of s into the prefix cache.
func (n *naive) enter(s *sequence, tokens int32) {
	if !n.cfg.PrefixCaching {
		return
	}
	for ; s.entered < int(tokens/n.cfg.BlockSize); s.entered++ {
		n.pool.enter(s.blocks[s.entered], s.keys[s.entered])
	}
}

// fits reports whether the pool has room to admit s: for all its known tokens, or for its first chunk.
func (n *naive) fits(s *sequence, hits []int, want int32) bool {
	tokens := s.known()
	if n.policy.AdmitOnFirstChunk {
		tokens = int32(len(hits))*n.cfg.BlockSize + want
	}
	need := n.pagesFor(tokens)
	for _, b := range hits {
		if n.pool.blocks[b].refs > 0 {
			need-- // hits that nobody references come out of the free blocks
		}
	}
	if len(n.running) > 0 {
		need += int(n.policy.Watermark * float64(n.cfg.NumGPUBlocks))
	}
	return need <= n.pool.free()
}

// victim is the running sequence to preempt.
func (n *naive) victim() *sequence {
	if n.policy.Victim == sched.LeastUrgent {
		return slices.MaxFunc(n.running, compareUrgency)
	}
	return n.running[len(n.running)-1]
}

// preempt takes s out of the running batch, and out of the iteration being composed.
func (n *naive) preempt(s *sequence, it *iteration, at clock.Time) {
	it.preempts = true
	for i, sh := range it.shares {
		if sh.seq == s {
			it.budget += sh.tokens
			it.shares = slices.Delete(it.shares, i, i+1)
			break
		}
	}
	n.release(s)
	s.blocks, s.entered, s.computed, s.produces, s.decoding = nil, 0, 0, false, false
	n.running = without(n.running, s)
	n.requeue(s)
	s.rec.Preemptions++
	n.preempted = append(n.preempted, s.rec.Request.ID)
	n.obs.Preempted(at)
}

// launch starts a composed iteration and reports it.
func (n *naive) launch(it *iteration, at clock.Time) {
	span := sim.Span{UsedBlocks: n.pool.used, Shared: int64(n.pool.shared) * int64(n.cfg.BlockSize)}
	batch := model.Batch{SharedTokens: span.Shared}
	step := sim.Step{Span: &span, Preempted: n.preempted, FreeBlocks: n.pool.free()}
	var gaps []*sequence // of sequences that did not produce in the previous iteration
	for i := range it.shares {
		sh := &it.shares[i]
		s := sh.seq
		decodes := s.produces
		first := s.scheduled == 0
		if decodes {
			batch.Decodes++
			batch.Context += int64(s.computed) + 1
		} else {
			batch.Chunks = append(batch.Chunks, model.Chunk{New: sh.tokens, Cached: s.computed})
			again := max(0, min(s.computed+sh.tokens, s.highest)-s.computed)
			s.rec.RecomputedTokens += again
			span.RecomputedTokens += int(again)
			span.PrefillTokens += int(sh.tokens - again)
		}
		s.computed += sh.tokens
		s.highest = max(s.highest, s.computed)
		if s.computed == s.prompt+s.scheduled {
			sh.emits = true
			s.produces = true
			s.scheduled++
			batch.Emit++
			switch {
			case decodes && s.lastIteration == n.launched-1:
				span.Gaps++
			case !first:
				gaps = append(gaps, s)
			}
			if !decodes {
				span.FirstTokens++
			}
		}
		step.Scheduled = append(step.Scheduled, sim.Share{
			Request: s.rec.Request.ID, Tokens: sh.tokens, Cached: sh.cached, Emits: sh.emits, Ends: sh.emits && s.scheduled == s.answer,
		})
	}
	span.Decodes, span.Context = batch.Decodes, batch.Context

	span.Start, span.N = max(at, n.gpuFree), 1
	if span.Start == n.gpuFree {
		span.Remainder = n.gpuRemainder
	}
	if n.launched > 0 {
		span.Wait = span.Start.Sub(n.gpuFree)
	}
	span.First, _, _ = n.cfg.Timer.Span(&batch)
	span.BlockFemtos = sim.Mul64(uint64(span.UsedBlocks), uint64(span.First))
	it.end = span.End(1)
	n.gpuFree, n.gpuRemainder = it.end, span.EndRemainder(1)

	n.obs.Span(&span)
	for _, s := range gaps {
		n.obs.Gap(it.end, it.end.Sub(s.lastEnd), 1)
	}
	for _, sh := range it.shares {
		if sh.emits {
			sh.seq.lastIteration, sh.seq.lastEnd = n.launched, it.end
		}
	}
	if n.steps != nil {
		n.steps.Step(&step)
	}
	n.inFlight = append(n.inFlight, it)
	n.launched++
	n.preempted = nil
}
