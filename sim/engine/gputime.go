package engine

import "clifftop/sim/clock"

// shareOut shares out the time of the iterations that are committed, and returns that of one token of each.
func (r *Engine) shareOut(p *clock.Progression) (each int64) {
	it, s := &r.it, &r.span
	tokens := int64(it.decodes + it.drafts + it.prefill + it.recomputed + it.padRows + it.padTokens)
	if tokens != r.gpu.sharers {
		r.gpu.sharers, r.gpu.carry = tokens, 0
	}
	s.Progression, s.Carry = *p, r.gpu.carry
	femtos := s.SharedFemtos(p.N)
	each = femtos / tokens
	r.gpu.carry = femtos - each*tokens
	if r.cfg.Check {
		r.gpu.given += each * (tokens - int64(it.padRows+it.padTokens))
	}
	return each
}

// checkGPUTime asserts that the sequences alive and those that have ended took what was shared out to them.
func (r *Engine) checkGPUTime() error {
	took := r.gpu.took
	for i, s := range r.seqs.items {
		if s.serial == 0 {
			continue
		}
		t := s.rec.GPU
		if s.phase == decoding {
			t.Decode += r.cohortOf(s).share - s.shared
		}
		if took += t.Total(); t.Prefill|t.Lost|t.Recomputed|t.Decode|t.Drafts < 0 {
			return r.Broken("request %d, sequence %d, took %+v of GPU time", s.rec.Request.ID, i, t)
		}
	}
	if took != r.gpu.given {
		return r.Broken("%d fs of GPU time were given to requests, and %d taken", r.gpu.given, took)
	}
	return nil
}

// charge charges the sequences of the iterations just committed, by the time of a token of each. The
// cohort's members are charged as one; of those who joined it, or were left out, it is taken back.
func (r *Engine) charge(each int64) {
	it, c := &r.it, &r.cohort
	if it.stepped {
		c.share += each
	}
	for k, i := range it.chunkSeqs {
		s, chunk := r.seq(i), &it.chunks[k]
		again, lost := s.known(chunk.Cached, chunk.New)
		t := &s.rec.GPU
		t.Prefill += each * int64(chunk.New-again-lost)
		if again+lost > 0 {
			t.Recomputed += each * int64(again)
			t.Lost += each * int64(lost)
		}
	}
	for _, i := range it.current.firsts {
		s := r.seq(i)
		s.shared = c.share
		if s.swapped { // it decodes on where it was swapped out
			s.rec.GPU.Decode += each
		}
	}
	for _, i := range it.missed {
		r.seq(i).shared += each
	}
	for _, i := range it.current.verified {
		s := r.seq(i)
		s.rec.GPU.Decode += each * int64(s.fresh)
		s.rec.GPU.Drafts += each * int64(s.useless)
	}
}
