package engine

// Sequences whose tokens are speculated about. They are not in the cohort: what an iteration brings each of them
// differs from one to the next, and so do the tokens that it takes, so that the policy has to visit each
// of them, and an iteration costs in proportion to their number.

// speculate makes s, which has computed all its known tokens but the last, decode with drafts.
func (r *Engine) speculate(s *sequence) {
	s.phase = speculating
	r.running.speculating++
	r.propose(s)
}

// propose finds drafts for the next iteration of s.
func (r *Engine) propose(s *sequence) { s.drafts = r.drafter.proposed(s.rec.Request.ID, s.verified) }

// missingDrafts is how many tokens s, which decodes with drafts, may be given: the one that it lacks and the drafts, as
// far as the longest sequence goes.
func (r *Engine) missingDrafts(s *sequence) int32 {
	if s.given > 0 {
		return 0
	}
	return min(1+s.drafts, r.cfg.MaxModelLen-1-s.computed)
}

// giveDrafts gives s the token that it lacks and n-1 drafts.
func (it *batchBuilder) giveDrafts(i int32, s *sequence, n int32) {
	r := it.r
	s.given, s.grown = n, false
	s.computed += n
	it.countDrafts(s, 1)
	it.current.verified = append(it.current.verified, i)
	if r.space.caching {
		r.register(s, (s.rec.Request.InputTokens+s.issued)/r.cfg.BlockSize)
	}
}

// takeBackDrafts undoes it.
func (it *batchBuilder) takeBackDrafts(i int32, s *sequence) {
	if s.given == 0 {
		return
	}
	it.countDrafts(s, -1)
	s.computed -= s.given
	it.current.verified = without(it.current.verified, i)
}

// countDrafts counts what s was given; sign -1 takes it back.
func (it *batchBuilder) countDrafts(s *sequence, sign int) {
	it.budget -= int32(sign) * s.given
	it.decodes += sign
	it.drafts += sign * int(s.given-1)
	it.context += int64(sign) * int64(s.computed)
	it.countGaps(s.lastBatch, s.lastEnd, sign)
}

// verify settles what the drafts of the iteration that was composed bring.
func (it *batchBuilder) verify() {
	r := it.r
	for _, i := range it.current.verified {
		s := r.seq(i)
		drafts := s.given - 1
		accepted := r.drafter.accepted(s.rec.Request.ID, s.verified, drafts)
		s.verified++
		s.rejected = drafts - accepted
		s.fresh = min(1+accepted, s.output-s.issued)
		s.useless = s.given - s.fresh
		s.issued += s.fresh
		it.accepted += int(accepted)
		it.discarded += int(1 + accepted - s.fresh)
		if r.queue.fair != nil {
			r.queue.fair.produced(s, s.fresh)
		}
		if s.issued == s.output {
			s.phase = finishing
			r.running.speculating--
		}
	}
}

// launched notes that flight f issues the tokens of the sequences that speculate, and of those that begin to.
func (r *Engine) launched(f *iteration) {
	r.running.remaining -= int64(r.it.accepted - r.it.discarded)
	for _, i := range f.verified {
		s := r.seq(i)
		s.lastBatch, s.lastEnd = f.number, f.end
		if s.phase == finishing {
			f.finishes = append(f.finishes, i)
		}
	}
	for _, i := range f.firsts {
		s := r.seq(i)
		s.fresh, s.lastBatch, s.lastEnd = 1, f.number, f.end
	}
}

// deliverDrafts gives up what was computed for rejected drafts. The blocks stay, for the tokens to come.
func (r *Engine) deliverDrafts(f *iteration) {
	for _, i := range f.verified {
		s := r.seq(i)
		s.computed -= s.rejected
		if r.space.caching {
			r.register(s, (s.rec.Request.InputTokens+s.issued-1)/r.cfg.BlockSize)
		}
		if s.phase == speculating {
			r.propose(s)
		}
	}
}
