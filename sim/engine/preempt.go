package engine

import "clifftop/sim/sched"

// Preemption. A policy of package sched decides when and whom to preempt, for example VLLM.extendRunning and Victim;
// the methods here carry it out.

// Preempt implements [sched.Preemption].
func (it *batchBuilder) Preempt(i sched.Seq) { it.preempt(int32(i), false) }

// PreemptToTail implements [sched.Preemption].
func (it *batchBuilder) PreemptToTail(i sched.Seq) { it.preempt(int32(i), true) }

// preempt preempts sequence i, which returns to the head or the tail of the queue.
func (it *batchBuilder) preempt(i int32, tail bool) {
	r := it.r
	s := r.seqs.at(i)
	ending := s.phase == finishing && (r.pipe == nil || s.issued == s.declared) || r.drafter.async && s.lastInFlight()
	it.takeBack(i, s)
	s.reached = max(s.reached, s.computed-s.rejecting)
	if s.padding > 0 {
		s.reached = max(s.reached, s.target)
	}
	if ending {
		r.uncomputed -= s.promptLeft()
	} else {
		r.uncomputed += int64(min(s.computed, s.rec.Request.InputTokens))
	}
	r.space.cache.Retain(i)
	it.takeOut(i, s)
	if ending {
		s.phase = departed
		return
	}
	if r.cfg.UnpredictedEnds {
		it.dropInFlight(i, s)
	}
	if tail {
		s.returned = int64(r.now)
	}
	r.requeue(i, s, tail)
}

// dropInFlight drops the tokens of sequence i that are in flight, as SGLang's overlap does when it retracts a request.
// They are produced again.
func (it *batchBuilder) dropInFlight(i int32, s *sequence) {
	s.issued -= it.r.withdraw(i, 0)
	it.r.line.SetLast(i, 0)
}

// takeOut removes s from the running batch.
func (it *batchBuilder) takeOut(i int32, s *sequence) {
	r := it.r
	if s.rec.Preemptions++; s.rec.Preemptions == 1 {
		r.space.again++
	}
	r.leaveRunning(i, 0)
	r.levels.Waiting++
	r.obs.Preempted(r.now)
	it.preempted++
	if r.detailed {
		it.victims = append(it.victims, s.rec.Request.ID)
	}
	s.given, s.grown = 0, false
	s.unseen, s.rejecting, s.padding, s.dummies = 0, 0, 0, 0
	if s.awaited > 0 {
		f := r.inFlight.at(0)
		f.returns = without(f.returns, i)
		s.awaited = 0
	}
}

// takeBack takes back what s got in this iteration, and removes it from the cohort.
func (it *batchBuilder) takeBack(i int32, s *sequence) {
	it.r.space.Settle()
	switch {
	case s.phase == decoding:
		it.takeBackDecode(i, s)
	case s.phase == speculating:
		it.takeBackDrafts(i, s)
	case s.given > 0 && s.joinBatch == it.current.number && s.swapped:
		it.takeBackFirst(i, s)
		it.takeBackToken(s)
		it.resumed--
	case s.given > 0:
		if s.dummies > 0 {
			it.takeBackPadding(s)
		}
		it.takeBackChunk(i, s)
	}
}

// SwapOut implements [sched.Preemption].
func (it *batchBuilder) SwapOut(h sched.Seq) bool {
	r, i := it.r, int32(h)
	s := r.seqs.at(i)
	computed := it.computed(s)
	blocks := r.cfg.PagesFor(computed)
	if s.phase == finishing || computed == 0 || r.space.hosted+blocks > r.cfg.HostBlocks {
		return false
	}
	decodes := s.phase == decoding || s.swapped && s.joinBatch == it.current.number
	it.takeBack(i, s)
	s.reached = max(s.reached, s.computed)
	s.swapped, s.hosted = decodes, blocks
	r.space.hosted += blocks
	r.space.moved += blocks
	if r.detailed {
		it.swaps = append(it.swaps, s.rec.Request.ID)
	}
	it.takeOut(i, s)
	r.requeue(i, s, false)
	return true
}

// swapIn moves the KV of s back from host memory.
func (k *Space) swapIn(s *sequence) {
	k.hosted -= s.hosted
	k.moved += s.hosted
	s.loaded, s.hosted = s.computed, 0
}

// resume gives a token to sequence i, which decoded when it was swapped out and is admitted again.
func (it *batchBuilder) resume(i int32, s *sequence) {
	s.given, s.grown = 1, false
	s.joinBatch = it.current.number
	s.computed++
	s.issued++
	s.target = s.computed
	it.budget--
	it.decodes++
	it.resumed++
	it.context += int64(s.computed)
	it.squares += square(s.computed)
	it.countGaps(s.lastBatch, s.lastEnd, 1)
	it.current.firsts = append(it.current.firsts, i)
}
