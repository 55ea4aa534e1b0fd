package engine

import "slices"

// draftVerifier gives tokens and drafts to sequences that decode with speculative decoding. These are not in the
// cohort, because the number of tokens that they compute and produce differs from iteration to iteration. The policy
// visits each of them, so the cost of an iteration is proportional to their number.
//
// With asynchronous scheduling an iteration is composed before the results of the one before are known. As in vLLM,
// drafts in flight then count as accepted: the next iteration continues behind them, and the counters are corrected
// when an iteration is processed.
type draftVerifier struct {
	*composition
	drafts    int
	accepted  int // drafts that were accepted
	discarded int // tokens that were issued past the end of an output
	surplus   int // tokens issued beyond one for each sequence that decodes
	behind    int // sequences that issue none: a threshold below the number of drafts has left tokens behind
}

// draftRow is the part of a sequence that decodes with drafts in an iteration.
type draftRow struct {
	seq    int32
	serial int64 // of its admission
	drafts int32 // drafts to verify
	fresh  int32 // tokens that it issues
	// rejected is the number of drafts that are rejected, unseen that of the tokens that it was scheduled to issue and
	// does not.
	rejected, unseen int32
	useless          int32 // tokens that it computes without issuing one for each
}

// rowOf returns the row of sequence i in iteration f, or nil.
func (f *iteration) rowOf(i int32) *draftRow {
	k := slices.IndexFunc(f.verified, func(row draftRow) bool { return row.seq == i })
	if k < 0 {
		return nil
	}
	return &f.verified[k]
}

// removeRow removes the row of sequence i from iteration f.
func (f *iteration) removeRow(i int32) {
	f.verified = slices.DeleteFunc(f.verified, func(row draftRow) bool { return row.seq == i })
}

// expected returns the number of known tokens of s if all drafts in flight are accepted.
func (s *sequence) expected() int32 { return s.rec.Request.InputTokens + s.issued + s.unseen }

// giveDrafts gives s the n next tokens: those that it misses, then drafts.
func (v *draftVerifier) giveDrafts(i int32, s *sequence, n int32) {
	r := v.r
	s.given, s.grown = n, false
	v.compute(s, n)
	v.countDrafts(s, 1)
	v.current.verified = append(v.current.verified, draftRow{seq: i, serial: s.serial})
	r.space.cache.Register(i, min(s.computed, s.rec.Request.InputTokens+s.issued-s.undelivered))
}

// takeBackDrafts takes back what s got in this iteration.
func (v *draftVerifier) takeBackDrafts(i int32, s *sequence) {
	if s.given == 0 {
		return
	}
	v.countDrafts(s, -1)
	v.compute(s, -s.given)
	v.current.removeRow(i)
}

// compute counts n more computed tokens of s, or fewer. Rejected dummy drafts may have left prompt tokens to compute.
func (v *draftVerifier) compute(s *sequence, n int32) {
	left := s.promptLeft()
	s.computed += n
	v.r.uncomputed += s.promptLeft() - left
}

// countDrafts counts the tokens given to s. With sign -1 it takes the count back.
func (v *draftVerifier) countDrafts(s *sequence, sign int) {
	v.budget -= int32(sign) * (s.given + v.r.cfg.Speculative.Slots)
	if s.computed < s.expected() {
		v.behind += sign
		v.drafts += sign * int(s.given)
		return
	}
	v.decodes += sign
	v.drafts += sign * int(s.given-1)
	v.context += int64(sign) * int64(s.computed)
	v.squares += uint64(sign) * square(s.computed)
	v.countGaps(s.lastBatch, s.lastEnd, sign)
}

// pad gives s, which the iteration admits with its last known token, dummy drafts. n of them are computed; the
// scheduler counts all, and takes all back when the iteration is processed. In vLLM the counter of computed tokens then
// becomes negative if a threshold below the number of drafts cuts those of a very short prompt; here it is at least 0.
func (v *draftVerifier) pad(s *sequence, n, all int32) {
	s.given += n
	s.computed += n
	s.dummies, s.padding = n, min(all, s.computed)
	v.budget -= n
	v.drafts += int(n)
}

// takeBackPadding takes the dummy drafts of s back.
func (v *draftVerifier) takeBackPadding(s *sequence) {
	s.given -= s.dummies
	s.computed -= s.dummies
	v.budget += s.dummies
	v.drafts -= int(s.dummies)
	s.dummies, s.padding = 0, 0
}

// verify draws which drafts of the iteration are accepted, and issues the tokens. An iteration after the last token of
// an output issues one that is dropped.
func (v *draftVerifier) verify() {
	r := v.r
	if !r.cfg.Speculative.On() {
		return
	}
	for k := range v.current.verified {
		row := &v.current.verified[k]
		s := r.seqs.at(row.seq)
		if row.drafts = s.computed - s.expected(); row.drafts >= 0 {
			v.issue(row, s)
			v.surplus += int(row.fresh) - 1
		}
		s.fresh, row.useless = row.fresh, s.given-row.fresh
		if !r.drafter.async && s.issued == s.output {
			s.phase = finishing
			r.running.speculating--
		}
	}
	for _, i := range v.current.firsts {
		s := r.seqs.at(i)
		s.undelivered++
		s.unseen += s.padding
		s.rejecting += s.padding
	}
}

// issue issues the tokens of a row of s.
func (v *draftVerifier) issue(row *draftRow, s *sequence) {
	accepted := v.r.drafter.accepted(s.rec.Request.ID, s.verified, row.drafts)
	s.verified++
	row.rejected = row.drafts - accepted
	row.fresh = max(1, min(1+accepted, s.output-s.issued))
	row.unseen = 1 + row.drafts - row.fresh
	if s.issued < s.output && s.issued+row.fresh == s.output {
		v.current.finishes = append(v.current.finishes, row.seq)
		if s.slots != s.output {
			v.current.lasts = append(v.current.lasts, row.seq)
		}
	}
	s.issued += row.fresh
	s.undelivered += row.fresh
	s.unseen += row.unseen
	s.rejecting += row.rejected
	v.accepted += int(accepted)
	v.discarded += int(1 + accepted - row.fresh)
	v.r.fair.Produced(s.client, row.fresh)
}

// speculate makes s, whose prefill is complete, decode with drafts.
func (v *draftVerifier) speculate(s *sequence) {
	s.phase = speculating
	v.r.running.speculating++
	v.propose(s)
}

// propose finds drafts for the next iteration of s. If that is composed before they are known, there are always as
// many.
func (v *draftVerifier) propose(s *sequence) {
	if s.drafts = v.r.cfg.Speculative.Tokens; !v.r.drafter.async {
		s.drafts = v.r.drafter.proposed(s.rec.Request.ID, s.verified)
	}
}

// missingWithDrafts returns the number of tokens that s, which decodes with drafts, can be given: those that it misses
// and the drafts, within the maximum model length. It is 0 if the iteration in flight surely issues its last token.
func (v *draftVerifier) missingWithDrafts(s *sequence) int32 {
	if s.given > 0 || v.r.drafter.async && s.lastInFlight() {
		return 0
	}
	return min(s.expected()+s.drafts-s.computed, v.r.cfg.MaxModelLen-1-s.computed)
}

// lastInFlight reports whether the iteration in flight completes the longest output of s, even if all drafts are
// rejected.
func (s *sequence) lastInFlight() bool {
	return s.undelivered > 0 && s.issued-s.undelivered+1 >= s.declared
}

// launched records that iteration f issues the tokens of the sequences that decode with drafts, or begin to.
func (v *draftVerifier) launched(f *iteration) {
	v.r.running.remaining -= int64(v.surplus)
	for k := range f.verified {
		if s := v.r.seqs.at(f.verified[k].seq); f.verified[k].fresh > 0 {
			s.lastBatch, s.lastEnd = f.number, f.end
		}
	}
	for _, i := range f.firsts {
		s := v.r.seqs.at(i)
		s.lastBatch, s.lastEnd = f.number, f.end
	}
}

// deliverDrafts corrects the counters of sequences by what iteration f has not issued. The KV of rejected drafts is
// discarded, but the blocks stay allocated for later tokens. A sequence that was preempted since keeps its counters.
func (v *draftVerifier) deliverDrafts(f *iteration) {
	r := v.r
	if !r.cfg.Speculative.On() {
		return
	}
	for _, i := range f.firsts {
		s := r.seqs.at(i)
		s.undelivered--
		if s.padding > 0 && s.joinBatch == f.number {
			s.reached = max(s.reached, s.target)
			v.correct(s, s.padding, s.padding)
			s.padding, s.dummies = 0, 0
		}
	}
	for k := range f.verified {
		row := &f.verified[k]
		s := r.seqs.at(row.seq)
		s.undelivered -= row.fresh
		if !s.running() || s.serial != row.serial {
			continue
		}
		v.correct(s, row.rejected, row.unseen)
		if r.drafter.async {
			known := s.rec.Request.InputTokens + s.issued - s.undelivered - 1
			r.space.cache.Register(row.seq, min(s.computed-s.undelivered-s.unseen, known))
		} else if s.phase == speculating {
			v.propose(s)
		}
	}
}

// correct takes back what s was scheduled to compute and to issue in vain.
func (v *draftVerifier) correct(s *sequence, rejected, unseen int32) {
	v.compute(s, -rejected)
	s.rejecting -= rejected
	s.unseen -= unseen
}
