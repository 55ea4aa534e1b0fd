package engine

import (
	"clifftop/internal/pq"
	"clifftop/sim/event"
)

// What remains to be done once the policy has composed an iteration.

// finish completes the composition: it puts back the members that were left out, lets those join whose
// prefill is complete, and ranks the sequences that emit.
func (it *composition) finish() {
	r := it.r
	it.flight.stepped = it.stepped
	if it.slow || it.stepped && r.lagging > 0 {
		it.putBack()
	}
	if r.queue.fair != nil {
		for _, i := range it.flight.firsts {
			r.queue.fair.produced(r.seq(i), 1)
		}
	}
	it.verify()
	it.sortFirsts()
	if r.pipe != nil {
		r.pipe.part(it)
	}
	for _, i := range it.flight.firsts {
		switch s := r.seq(i); {
		case s.issued >= s.slots:
			s.phase = finishing
		case r.cfg.Speculative.On():
			r.speculate(s)
		default:
			r.joinCohort(i)
			it.joined++
		}
	}
	it.open = false
	if r.cfg.StreamPerSequence > 0 || it.flight.partial {
		it.rank()
	}
	if !r.detailed {
		for _, i := range it.chunkSeqs {
			r.seq(i).given = 0
		}
		for _, i := range it.flight.firsts {
			r.seq(i).given = 0
		}
		for _, i := range it.flight.verified {
			r.seq(i).given = 0
		}
		if it.slow {
			for i := r.first; i != none; i = r.seq(i).next {
				r.seq(i).given = 0
			}
		}
	}
}

// sortFirsts brings the sequences that completed their prefill into running order.
func (it *composition) sortFirsts() { it.r.sortBySerial(it.flight.firsts) }

// rank gives the sequences that emit their places, as far as they do not follow from the running
// order when they finish.
func (it *composition) rank() {
	switch {
	case it.slow || it.preempted > 0 || it.r.pipe != nil && it.r.pipe.ending() || len(it.flight.verified) > 0 || it.mixed && len(it.flight.firsts) > 0:
		it.rankByWalking()
	default:
		for k, i := range it.flight.firsts {
			s := it.r.seq(i)
			s.rank(int32(it.decodes-it.resumed+k+1), s.issued)
		}
	}
}

// rank notes the place of a token of s, the issued-th, among those of its iteration.
func (s *sequence) rank(place, issued int32) {
	if issued == 1 {
		s.firstRank = place
	}
	if issued <= s.output {
		s.lastRank = place
	}
}

// putBack gives the members that got no token their step back.
func (it *composition) putBack() {
	r, c := it.r, &it.r.cohort
	for i := r.first; i != none; i = r.seq(i).next {
		s := r.seq(i)
		if s.phase != decoding || r.away(s) {
			continue
		}
		if it.got(s) {
			if s.lagging {
				s.lagging = false
				r.lagging--
			}
			continue
		}
		if !s.lagging {
			r.leaveStep(s)
			s.lagging = true
			r.lagging++
		}
		it.missed = append(it.missed, i)
		r.leaveResidue(i)
		s.joined++
		s.ends++
		if r.queue.fair != nil {
			r.queue.fair.missed(s)
		}
		c.context--
		r.enterResidue(i)
		c.ends.Push(pq.Item[int32]{Key: s.ends, Tie: s.serial, Value: i})
		it.flight.partial = true
	}
}

// rankByWalking ranks the sequences that emit by walking the running batch.
func (it *composition) rankByWalking() {
	r := it.r
	it.ranked = true
	var place int32
	for i := r.first; i != none; i = r.seq(i).next {
		s := r.seq(i)
		completes := s.joinBatch == it.flight.number
		decodes := s.phase == decoding && s.joinBatch < it.flight.number && it.got(s) && !r.away(s)
		verifies := s.given > 0 && (s.phase == speculating || s.phase == finishing)
		if !completes && !decodes && !verifies {
			continue
		}
		place++
		if completes || verifies {
			s.rank(place, s.issued)
		} else {
			s.rank(place, s.issued+int32(r.cohort.steps-s.joined))
		}
		if it.flight.partial {
			it.flight.emitters = append(it.flight.emitters, i)
		}
	}
}

// reportStep tells the step observer of the iteration in detail.
func (it *composition) reportStep() {
	r := it.r
	st := &r.step
	st.Span = &r.span
	st.Preempted, st.SwappedOut = it.victims, it.swaps
	st.FreeBlocks = r.free()
	st.Scheduled = st.Scheduled[:0]
	for i := r.first; i != none; i = r.seq(i).next {
		s := r.seq(i)
		share := event.Share{Request: s.rec.Request.ID}
		if s.serial > it.serials {
			share.Cached, share.Loaded = s.reused, s.loaded
		}
		switch {
		case contains(it.flight.verified, i):
			share.Tokens, share.Drafts, share.Produced, share.Emits = s.given, s.given-1, s.fresh, true
		case contains(it.chunkSeqs, i), s.joinBatch == it.flight.number:
			share.Tokens = s.given
			if share.Emits = s.joinBatch == it.flight.number; share.Emits {
				share.Produced = 1
			}
		case s.lastBatch == it.flight.number && s.phase == finishing,
			it.stepped && s.phase == decoding && !s.lagging && s.joinBatch < it.flight.number && !r.away(s):
			share.Tokens, share.Produced, share.Emits = 1, 1, true
		default:
			continue
		}
		share.Ends = s.slots == s.output && contains(it.flight.finishes, i) || contains(it.flight.lasts, i)
		st.Scheduled = append(st.Scheduled, share)
		s.given = 0
	}
	r.obs.Step(st)
	it.victims, it.swaps = it.victims[:0], it.swaps[:0]
}

func contains(list []int32, i int32) bool {
	for _, x := range list {
		if x == i {
			return true
		}
	}
	return false
}
