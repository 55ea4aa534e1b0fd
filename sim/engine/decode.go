package engine

import (
	"clifftop/internal/pq"
	"clifftop/sim/sched"
)

// cohortDecoder gives tokens to the members of the cohort.
type cohortDecoder struct {
	*composition
	mixed  bool    // the members got their step at once, and sequences in prefill may be between them
	missed []int32 // members that got no token
}

// DecodeAll implements [sched.Decoding].
func (d *cohortDecoder) DecodeAll() sched.Seq {
	if d.visitsAll() {
		return d.first()
	}
	before := d.firstPrefill()
	if d.r.cohort.size == 0 {
		return before
	}
	if before != sched.None && d.decoderBehind(int32(before)) || !d.step() {
		return d.first()
	}
	return before
}

// DecodeFirst implements [sched.Decoding].
func (d *cohortDecoder) DecodeFirst() bool {
	if d.visitsAll() {
		return false
	}
	d.mixed = len(d.r.running.prefills) > 0
	return d.r.cohort.size == 0 || d.step()
}

// visitsAll reports whether each decoding sequence must be visited: it has drafts, or first frees blocks of KV cache
// groups.
func (d *cohortDecoder) visitsAll() bool {
	return d.r.running.speculating > 0 || d.r.space.kind.Singly && d.r.cohort.size > 0
}

// step makes the step of the cohort if the pool and the budget have room for all members, and reports whether it did.
func (d *cohortDecoder) step() bool {
	r, c := d.r, &d.r.cohort
	need := c.takes.at(c.steps)
	if c.size > int(d.budget) || !r.space.cache.Fits(need+r.space.windowNeed(false), r.space.free()) {
		return false
	}
	d.stepBlocks = need
	if c.booked.members > 0 {
		r.space.booked -= c.booked.at(c.steps)
	}
	r.space.windowNeed(true)
	r.space.takeForCohort(need)
	d.countStep()
	d.countCohortGaps()
	if r.space.kind.Registers && r.depth > 1 {
		d.registerRested()
	}
	if need > 0 && r.space.writesBack {
		r.space.Settle() // evictions for the new blocks happen now
	}
	d.decodes = c.size
	d.context, d.squares = c.context, c.squares
	d.budget -= int32(c.size)
	return true
}

// firstPrefill returns the first running sequence in prefill.
func (d *cohortDecoder) firstPrefill() sched.Seq {
	if len(d.r.running.prefills) == 0 {
		return sched.None
	}
	return sched.Seq(d.r.running.prefills[0])
}

// decoderBehind reports whether a sequence after i decodes.
func (d *cohortDecoder) decoderBehind(i int32) bool { return d.r.decoderBehind(i) }

// decoderBehind reports whether a sequence after i decodes.
func (d *decoders) decoderBehind(i int32) bool {
	for j := d.running.last; j != i; j = d.seqs.at(j).prev {
		if d.seqs.at(j).phase == decoding {
			return true
		}
	}
	return false
}

// countStep counts the step of the cohort.
func (d *cohortDecoder) countStep() {
	d.r.cohort.step()
	d.stepped = true
}

// goSlow counts the step of the cohort before the policy visits decoding sequences one by one.
func (d *cohortDecoder) goSlow() {
	d.slow, d.r.cohort.singly = true, true
	d.r.space.Settle()
	d.countStep()
	d.r.cohort.settled = d.r.cohort.steps
}

// countCohortGaps counts the inter-token gaps that end with the step of the cohort.
func (d *cohortDecoder) countCohortGaps() {
	r := d.r
	for i := r.running.first; i != none && r.lagging > 0; i = r.seqs.at(i).next {
		if s := r.seqs.at(i); s.lagging {
			d.countGaps(s.lastBatch, s.lastEnd, 1)
		}
	}
	switch {
	case r.berths != nil:
		if _, end := r.berths.lastToken(); r.cohort.size > r.lagging {
			d.countLate(end, r.cohort.size-r.lagging)
		}
		return
	case len(r.groups) == 0:
		d.gaps += r.cohort.size - r.lagging
		return
	}
	for k := range r.groups {
		g := &r.groups[k]
		d.countGaps(g.number, g.end, g.size)
	}
}

// registerRested registers the blocks that the step of the cohort fills, for members that have no token in flight
// because they were held: all tokens of these blocks are known.
func (d *cohortDecoder) registerRested() {
	r, c := d.r, &d.r.cohort
	if ahead := r.inFlight.n > 0 && r.inFlight.at(0).stepped; ahead && r.lagging == 0 {
		return
	}
	r.space.Settle()
	for i := c.first[c.takes.residueAt(c.steps)]; i != none; i = r.seqs.at(i).nextSame {
		if r.inFlight.tokensInFlight(i) == 0 {
			s := r.seqs.at(i)
			r.space.cache.Register(i, c.computed(s))
		}
	}
}

// giveDecode gives member s its token.
func (d *cohortDecoder) giveDecode(i int32, s *sequence) {
	r := d.r
	s.given, s.grown = 1, false
	d.budget--
	d.decodes++
	length := r.cohort.computed(s)
	d.context += int64(length)
	d.squares += square(length)
	number, end := r.lastToken(s)
	d.countGaps(number, end, 1)
	if r.space.kind.Registers {
		known := s.rec.Request.InputTokens + s.issued + int32(r.cohort.steps-s.joined) - 1 - r.inFlight.tokensInFlight(i)
		r.space.cache.Register(i, min(length, known))
	}
}

// takeBackDecode takes member s out of the cohort, and takes back the token that it got in this iteration, or the step
// that was counted before the visit of s.
func (d *cohortDecoder) takeBackDecode(i int32, s *sequence) {
	if d.r.inOtherCohort(s) {
		d.r.leaveCohort(i)
		return
	}
	hasToken := d.hasToken(s)
	d.r.leaveCohort(i)
	if d.stepped {
		d.r.fair.Produced(s.client, -1)
	}
	if hasToken {
		d.takeBackToken(s)
	} else if d.stepped {
		s.computed--
		s.issued--
	}
}

// putBack puts the members that got no token back by one step.
func (d *cohortDecoder) putBack() {
	r, c := d.r, &d.r.cohort
	for i := r.running.first; i != none; i = r.seqs.at(i).next {
		s := r.seqs.at(i)
		if s.phase != decoding || r.inOtherCohort(s) {
			continue
		}
		if d.hasToken(s) {
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
		d.missed = append(d.missed, i)
		r.space.leaveSchedule(i)
		c.squares -= uint64(2*int64(c.computed(s)) - 1)
		s.joined++
		s.ends++
		r.fair.Missed(s.client)
		c.context--
		r.space.enterSchedule(i)
		c.ends.Push(pq.Item[int32]{Key: s.ends, Tie: s.serial, Value: i})
		d.current.partial = true
	}
}
