package sim

// What remains to be done once the policy has composed an iteration.

// finish completes the composition: it puts back the members that were left out, lets those join whose
// prefill is complete, and ranks the sequences that emit.
func (it *composition) finish() {
	r := it.r
	it.flight.stepped = it.stepped
	if it.slow {
		it.putBack()
	}
	if r.queue.fair != nil {
		for _, i := range it.flight.firsts {
			r.queue.fair.produced(r.seq(i), 1)
		}
	}
	for _, i := range it.joining {
		r.joinCohort(i)
	}
	if r.cfg.StreamPerSequence > 0 || it.flight.partial {
		it.rank()
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

// rank gives the sequences that emit their places, as far as they do not follow from the running
// order when they finish.
func (it *composition) rank() {
	switch {
	case it.slow || it.preempted > 0 || it.mixed && len(it.flight.firsts) > 0:
		it.rankByWalking()
	default:
		for k, i := range it.flight.firsts {
			s := it.r.seq(i)
			s.rank(int32(it.decodes + k + 1))
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
		if s.phase != decoding {
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
			r.leaveStep(s)
			s.lagging = true
			r.lagging++
		}
		r.leaveResidue(i)
		s.joined++
		s.ends++
		if r.queue.fair != nil {
			r.queue.fair.missed(s)
		}
		c.context--
		r.enterResidue(i)
		c.ends.push(entry{s.ends, s.serial, i})
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
		decodes := s.phase == decoding && s.joinBatch < it.flight.number && it.got(s)
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
			it.stepped && s.phase == decoding && !s.lagging && s.joinBatch < it.flight.number:
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
