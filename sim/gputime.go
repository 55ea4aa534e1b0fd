package sim

import "clifftop/sim/clock"

// GPU time is shared out by tokens. What copies of KV and waits for the host leave of an iteration's time goes in equal
// parts, whole femtoseconds, to the tokens that it computes, those of padding among them. What is left over is carried to
// the next iteration if this computes as many tokens, and is nobody's otherwise: less than a femtosecond a token each
// time that the number changes. So a token of each of many like iterations takes a sum that one division tells, and
// that does not depend on how they are taken together.

// GPUTime is the GPU time that one attempt took, in femtoseconds: at most 2.5 hours each. What an iteration in flight
// computes for a client who leaves counts.
type GPUTime struct {
	Prefill    int64 // tokens of the prompt, for the first time
	Lost       int64 // those of them that the prefix cache had lost
	Recomputed int64 // tokens computed again after preemptions
	Decode     int64 // tokens of the answer
	Drafts     int64 // drafts of no use
}

// Total is the sum.
func (t *GPUTime) Total() int64 { return t.Prefill + t.Lost + t.Recomputed + t.Decode + t.Drafts }

// add adds the time of another attempt.
func (t *GPUTime) add(u *GPUTime) {
	t.Prefill += u.Prefill
	t.Lost += u.Lost
	t.Recomputed += u.Recomputed
	t.Decode += u.Decode
	t.Drafts += u.Drafts
}

// Sharers is the number of tokens among which the time of an iteration is shared out.
func (s *Span) Sharers() int64 { return int64(s.Computed() + s.PaddedRows + s.PaddedTokens) }

// computing is the time of the first n iterations that is shared out, with what was carried to them.
func (s *Span) computing(n int) int64 {
	if s.Passages != nil {
		return s.Carry + int64(n)*s.passing()
	}
	femtos := s.Carry + s.Femtos(n)
	if s.SwapFemtos|s.HostFemtos|s.HostSlope != 0 {
		k := int64(n)
		femtos -= k*(s.SwapFemtos+s.HostFemtos) + k*(k-1)/2*s.HostSlope
	}
	return femtos
}

// Share is the time of one token of each of the first n iterations, in femtoseconds.
func (s *Span) Share(n int) int64 { return s.computing(n) / s.Sharers() }

// CarryAfter is what is left over after the first n iterations, in femtoseconds.
func (s *Span) CarryAfter(n int) int64 {
	if tokens := s.Sharers(); tokens > 0 {
		return s.computing(n) % tokens
	}
	return 0
}

// shareOut shares out the time of the iterations that are committed, and returns that of one token of each.
func (r *Replica) shareOut(p *clock.Progression) (each int64) {
	it, s := &r.it, &r.span
	tokens := int64(it.decodes + it.drafts + it.prefill + it.recomputed + it.padRows + it.padTokens)
	if tokens != r.sharers {
		r.sharers, r.carry = tokens, 0
	}
	s.Progression, s.Carry = *p, r.carry
	femtos := s.computing(p.N)
	each = femtos / tokens
	r.carry = femtos - each*tokens
	if r.cfg.Check {
		r.given += each * (tokens - int64(it.padRows+it.padTokens))
	}
	return each
}

// checkGPUTime asserts that the sequences alive and those that have ended took what was shared out to them.
func (r *Replica) checkGPUTime() error {
	took := r.took
	for i, s := range r.seqs.items {
		if s.serial == 0 {
			continue
		}
		t := s.rec.GPU
		if s.phase == decoding {
			t.Decode += r.cohortOf(s).share - s.shared
		}
		if took += t.Total(); t.Prefill|t.Lost|t.Recomputed|t.Decode|t.Drafts < 0 {
			return r.broken("request %d, sequence %d, took %+v of GPU time", s.rec.Request.ID, i, t)
		}
	}
	if took != r.given {
		return r.broken("%d fs of GPU time were given to requests, and %d taken", r.given, took)
	}
	return nil
}

// charge charges those who had a part of the iterations just committed, for each token of an iteration so much. The
// cohort's members are charged as one; of those who joined it, or were left out, it is taken back.
func (r *Replica) charge(each int64) {
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
	for _, i := range it.flight.firsts {
		s := r.seq(i)
		s.shared = c.share
		if s.swapped { // it decodes on where it was swapped out
			s.rec.GPU.Decode += each
		}
	}
	for _, i := range it.missed {
		r.seq(i).shared += each
	}
	for _, i := range it.flight.verified {
		s := r.seq(i)
		s.rec.GPU.Decode += each * int64(s.fresh)
		s.rec.GPU.Drafts += each * int64(s.useless)
	}
}
