package engine

import (
	"math"

	"clifftop/sim/sched"
)

// Preempt implements [sched.View].
func (it *batchBuilder) Preempt(i sched.Seq) { it.preempt(int32(i), false) }

// PreemptToTail implements [sched.View].
func (it *batchBuilder) PreemptToTail(i sched.Seq) { it.preempt(int32(i), true) }

func (it *batchBuilder) preempt(i int32, tail bool) {
	r := it.r
	s := r.seq(i)
	ending := s.phase == finishing && (r.pipe == nil || s.issued == s.declared)
	it.takeBack(i, s)
	s.reached = max(s.reached, s.computed)
	if ending {
		r.uncomputed -= s.promptLeft()
	} else {
		r.uncomputed += int64(min(s.computed, s.rec.Request.InputTokens))
	}
	if r.space.caching {
		r.indexOwnBlocks(s)
	}
	it.takeOut(i, s)
	if ending {
		s.phase = departed
		return
	}
	r.requeue(i, s, tail)
}

// takeOut puts s out of the running batch.
func (it *batchBuilder) takeOut(i int32, s *sequence) {
	r := it.r
	s.rec.Preemptions++
	r.leaveRunning(i)
	r.levels.Waiting++
	r.obs.Preempted(r.now)
	it.preempted++
	if r.detailed {
		it.victims = append(it.victims, s.rec.Request.ID)
	}
	s.given, s.grown = 0, false
	if s.awaited > 0 {
		f := r.inFlight.at(0)
		f.returns = without(f.returns, i)
		s.awaited = 0
	}
}

// requeue puts sequence i, which was preempted, into the queue.
func (r *Engine) requeue(i int32, s *sequence, tail bool) {
	s.phase = preempted
	req := &s.rec.Request
	key := r.keyOf(req, i)
	if tail {
		r.queue.pushTail(req, i, key)
	} else {
		r.queue.pushHead(req, i, key)
	}
}

// takeBack undoes what the iteration being composed gave to s, and lets it leave the cohort.
func (it *batchBuilder) takeBack(i int32, s *sequence) {
	it.r.Settle()
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
		it.takeBackChunk(i, s)
	}
}

// takeBackChunk undoes the prefill chunk that s was given in this iteration.
func (it *batchBuilder) takeBackChunk(i int32, s *sequence) {
	for k, j := range it.chunkSeqs {
		if j == i {
			it.chunks = append(it.chunks[:k], it.chunks[k+1:]...)
			it.chunkSeqs = append(it.chunkSeqs[:k], it.chunkSeqs[k+1:]...)
			break
		}
	}
	it.budget += s.given
	if s.computed == s.target {
		it.takeBackFirst(i, s)
		if s.issued--; s.issued > 0 {
			it.countLate(s.lastEnd, -1)
		}
	}
	s.computed -= s.given
	s.chunkBatch = 0
	it.countPrefill(s, s.given, -1)
}

// takeBackFirst takes s out of those that produce their first token since their admission.
func (it *batchBuilder) takeBackFirst(i int32, s *sequence) {
	it.current.firsts = without(it.current.firsts, i)
	s.joinBatch = math.MaxInt64
}

// takeBackDecode undoes the step of s, which decodes: the token it was given or, where the policy visits
// sequences singly, the step that was counted beforehand.
func (it *batchBuilder) takeBackDecode(i int32, s *sequence) {
	if it.r.inOtherCohort(s) {
		it.r.leaveCohort(i)
		return
	}
	hasToken := it.hasToken(s)
	it.r.leaveCohort(i)
	if it.stepped && it.r.queue.fair != nil {
		it.r.queue.fair.produced(s, -1)
	}
	if hasToken {
		it.takeBackToken(s)
	} else if it.stepped {
		s.computed--
		s.issued--
	}
}

// takeBackToken undoes the decode of s.
func (it *batchBuilder) takeBackToken(s *sequence) {
	it.budget++
	it.decodes--
	it.context -= int64(s.computed)
	it.countGaps(s.lastBatch, s.lastEnd, -1)
	s.computed--
	s.issued--
}

// Sequences whose KV goes to host memory and comes back.

// SwapOut implements [sched.View].
func (it *batchBuilder) SwapOut(h sched.Seq) bool {
	r, i := it.r, int32(h)
	s := r.seq(i)
	computed := it.computed(s)
	blocks := r.pagesFor(computed)
	if s.phase == finishing || s.over || computed == 0 || r.space.hosted+blocks > r.cfg.HostBlocks {
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

// load brings s back from host memory.
func (r *Engine) load(s *sequence) {
	r.space.hosted -= s.hosted
	r.space.moved += s.hosted
	s.loaded, s.hosted = s.computed, 0
}

// resume gives sequence i, which decoded when it was swapped out and is admitted again, its token.
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
	it.countGaps(s.lastBatch, s.lastEnd, 1)
	it.current.firsts = append(it.current.firsts, i)
}
