package sim

import "clifftop/sim/clock"

// What remains to be done once the policy has composed an iteration.

// finish completes the composition: it puts back the members that were left out, and ranks the
// sequences that emit.
func (it *composition) finish() {
	r := it.r
	if it.slow {
		it.putBack()
	}
	stream := r.cfg.StreamPerSequence > 0
	if it.slow || it.preempted > 0 {
		if stream || it.flight.partial {
			it.rankByWalking()
		}
	} else if stream {
		for k, i := range it.flight.firsts {
			s := r.seq(i)
			s.rank(int32(it.decodes + k + 1))
		}
	}
	if r.host.steps == nil {
		for _, i := range it.chunkSeqs {
			r.seq(i).given = 0
		}
		if it.slow {
			for i := r.first; i != none; i = r.seq(i).next {
				r.seq(i).given = 0
			}
		}
	}
}

// rank notes the place of the token that completes a prefill.
func (s *sequence) rank(place int32) {
	if s.issued == 1 {
		s.firstRank = place
	}
	s.lastRank = place
}

// putBack gives the members that got no token their step back.
func (it *composition) putBack() {
	r, c := it.r, &it.r.cohort
	for i := r.first; i != none; i = r.seq(i).next {
		s := r.seq(i)
		if s.phase != decoding || s.joined == c.steps {
			continue
		}
		if s.given > 0 {
			if s.lagging {
				s.lagging = false
				r.lagging--
			}
			continue
		}
		if !s.lagging {
			s.lagging = true
			r.lagging++
			s.lastBatch, s.lastEnd = r.batches, r.gpuFree
		}
		r.leaveResidue(i)
		s.joined++
		s.ends++
		c.context--
		r.enterResidue(i)
		c.ends.push(entry{s.ends, s.serial, i})
		it.flight.partial = true
	}
}

// rankByWalking ranks the sequences that emit by walking the running batch.
func (it *composition) rankByWalking() {
	r, c := it.r, &it.r.cohort
	it.ranked = true
	var place int32
	for i := r.first; i != none; i = r.seq(i).next {
		s := r.seq(i)
		completes := s.given > 0 && (s.phase == finishing || s.phase == decoding && s.joined == c.steps)
		decodes := s.phase == decoding && s.joined < c.steps && it.got(s)
		if !completes && !decodes {
			continue
		}
		place++
		if completes {
			s.rank(place)
		} else {
			s.lastRank = place
		}
		if it.flight.partial {
			it.flight.emitters = append(it.flight.emitters, i)
		}
	}
}

// reportGaps tells the observer of the inter-token gaps that end with the iteration and are not its
// length.
func (it *composition) reportGaps(end clock.Time) {
	for k := range it.late {
		it.r.host.obs.Gap(end, end.Sub(it.lateFrom[k]), 1)
	}
}

// reportStep tells the step observer of the iteration in detail.
func (it *composition) reportStep() {
	r := it.r
	st := &r.step
	st.Span = &r.span
	st.Preempted = it.victims
	st.FreeBlocks = r.free()
	st.Scheduled = st.Scheduled[:0]
	for i := r.first; i != none; i = r.seq(i).next {
		s := r.seq(i)
		share := Share{Request: s.rec.Request.ID}
		switch {
		case contains(it.chunkSeqs, i):
			share.Tokens = s.given
			share.Emits = contains(it.flight.firsts, i)
			if s.serial > it.serials {
				share.Cached = s.reused
			}
		case s.lastBatch == it.flight.number && s.phase == finishing,
			s.phase == decoding && !s.lagging && s.joinBatch < it.flight.number:
			share.Tokens, share.Emits = 1, true
		default:
			continue
		}
		share.Ends = contains(it.flight.finishes, i)
		st.Scheduled = append(st.Scheduled, share)
		s.given = 0
	}
	r.host.steps.Step(st)
	it.victims = it.victims[:0]
}

func contains(list []int32, i int32) bool {
	for _, x := range list {
		if x == i {
			return true
		}
	}
	return false
}
