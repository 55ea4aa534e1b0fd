package sim

import (
	"math"

	"clifftop/sim/sched"
)

// Preempt implements [sched.View].
func (it *composition) Preempt(i sched.Seq) { it.preempt(i, false) }

// PreemptToTail implements [sched.View].
func (it *composition) PreemptToTail(i sched.Seq) { it.preempt(i, true) }

func (it *composition) preempt(i sched.Seq, tail bool) {
	r := it.r
	s := r.seq(int32(i))
	r.settle()
	if s.phase == decoding {
		it.takeBackDecode(int32(i), s)
	} else if s.given > 0 {
		it.takeBackChunk(int32(i), s)
	}
	s.reached = max(s.reached, s.computed)
	s.rec.Preemptions++
	done := s.phase == finishing && s.issued == s.output
	if r.caching {
		r.indexOwnBlocks(s)
	}
	r.leaveRunning(int32(i))
	r.host.levels.Waiting++
	r.host.obs.Preempted(r.now)
	it.preempted++
	if r.host.steps != nil {
		it.victims = append(it.victims, s.rec.Request.ID)
	}
	s.given = 0
	if done {
		s.phase = departed
		return
	}
	s.phase = preempted
	key := r.keyOf(&waiting{req: s.rec.Request, seq: int32(i)})
	if tail {
		r.queue.pushTail(&s.rec.Request, int32(i), key)
	} else {
		r.queue.pushHead(&s.rec.Request, int32(i), key)
	}
}

// takeBackChunk undoes the prefill chunk that s was given in this iteration.
func (it *composition) takeBackChunk(i int32, s *sequence) {
	for k, j := range it.chunkSeqs {
		if j == i {
			it.chunks = append(it.chunks[:k], it.chunks[k+1:]...)
			it.chunkSeqs = append(it.chunkSeqs[:k], it.chunkSeqs[k+1:]...)
			break
		}
	}
	it.budget += s.given
	if s.computed == s.target {
		s.issued--
		if s.issued > 0 {
			it.countLate(s.lastEnd, -1)
		}
		s.joinBatch = math.MaxInt64
		it.flight.firsts = without(it.flight.firsts, i)
		it.joining = without(it.joining, i)
		s.phase = prefilling
	}
	s.computed -= s.given
	it.countPrefill(s, s.given, -1)
}

// takeBackDecode undoes the step of s, which decodes: the token it was given, or, in slow mode, the
// step that was counted beforehand.
func (it *composition) takeBackDecode(i int32, s *sequence) {
	got := it.got(s)
	length := s.target + int32(it.r.cohort.steps-s.joined)
	it.r.leaveCohort(i)
	if !it.stepped {
		return
	}
	s.computed--
	s.issued--
	if it.r.queue.fair != nil {
		it.r.queue.fair.produced(s, -1)
	}
	if !got {
		s.blockCount = it.r.blocksFor(s.computed)
		return
	}
	it.budget++
	it.decodes--
	it.context -= int64(length)
	it.countGaps(s.lastBatch, s.lastEnd, -1)
}
