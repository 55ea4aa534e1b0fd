package engine

// draftVerifier gives tokens and drafts to sequences that decode with speculative decoding. These are not in the
// cohort, because the number of tokens that they compute and produce differs from iteration to iteration. The policy
// visits each of them, so the cost of an iteration is proportional to their number.
type draftVerifier struct {
	*composition
	drafts    int
	accepted  int // drafts that were accepted
	discarded int // tokens that were issued past the end of an output
}

// giveDrafts gives s its next token and n-1 drafts.
func (v *draftVerifier) giveDrafts(i int32, s *sequence, n int32) {
	r := v.r
	s.given, s.grown = n, false
	s.computed += n
	v.countDrafts(s, 1)
	v.current.verified = append(v.current.verified, i)
	r.space.register(s, s.rec.Request.InputTokens+s.issued)
}

// takeBackDrafts takes back what s got in this iteration.
func (v *draftVerifier) takeBackDrafts(i int32, s *sequence) {
	if s.given == 0 {
		return
	}
	v.countDrafts(s, -1)
	s.computed -= s.given
	v.current.verified = without(v.current.verified, i)
}

// countDrafts counts the tokens given to s. With sign -1 it takes the count back.
func (v *draftVerifier) countDrafts(s *sequence, sign int) {
	v.budget -= int32(sign) * s.given
	v.decodes += sign
	v.drafts += sign * int(s.given-1)
	v.context += int64(sign) * int64(s.computed)
	v.countGaps(s.lastBatch, s.lastEnd, sign)
}

// verify draws which drafts of the iteration are accepted, and issues the tokens.
func (v *draftVerifier) verify() {
	r := v.r
	for _, i := range v.current.verified {
		s := r.seqs.at(i)
		drafts := s.given - 1
		accepted := r.drafter.accepted(s.rec.Request.ID, s.verified, drafts)
		s.verified++
		s.rejected = drafts - accepted
		s.fresh = min(1+accepted, s.output-s.issued)
		s.useless = s.given - s.fresh
		s.issued += s.fresh
		v.accepted += int(accepted)
		v.discarded += int(1 + accepted - s.fresh)
		r.fair.produced(s, s.fresh)
		if s.issued == s.output {
			s.phase = finishing
			r.running.speculating--
		}
	}
}

// speculate makes s, whose prefill is complete, decode with drafts.
func (v *draftVerifier) speculate(s *sequence) {
	s.phase = speculating
	v.r.running.speculating++
	v.propose(s)
}

// propose finds drafts for the next iteration of s.
func (v *draftVerifier) propose(s *sequence) {
	s.drafts = v.r.drafter.proposed(s.rec.Request.ID, s.verified)
}

// missingWithDrafts returns the number of tokens that s, which decodes with drafts, can be given: its next token and
// the drafts, within the maximum model length.
func (s *sequence) missingWithDrafts(maxModelLen int32) int32 {
	if s.given > 0 {
		return 0
	}
	return min(1+s.drafts, maxModelLen-1-s.computed)
}

// launched records that iteration f issues the tokens of the sequences that decode with drafts, or begin to.
func (v *draftVerifier) launched(f *iteration) {
	v.r.running.remaining -= int64(v.accepted - v.discarded)
	for _, i := range f.verified {
		s := v.r.seqs.at(i)
		s.lastBatch, s.lastEnd = f.number, f.end
		if s.phase == finishing {
			f.finishes = append(f.finishes, i)
		}
	}
	for _, i := range f.firsts {
		s := v.r.seqs.at(i)
		s.fresh, s.lastBatch, s.lastEnd = 1, f.number, f.end
	}
}

// deliverDrafts discards the KV of rejected drafts of iteration f. The blocks stay allocated for later tokens.
func (v *draftVerifier) deliverDrafts(f *iteration) {
	for _, i := range f.verified {
		s := v.r.seqs.at(i)
		s.computed -= s.rejected
		v.r.space.register(s, s.rec.Request.InputTokens+s.issued-1)
		if s.phase == speculating {
			v.propose(s)
		}
	}
}
