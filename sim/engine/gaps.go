package engine

import "clifftop/sim/clock"

// group is decoding sequences whose last token came from the same iteration.
type group struct {
	number int64      // of the iteration
	end    clock.Time // its end
	size   int
}

// groups tells when the members of the cohort produced their last tokens, while that was not for all of
// them in the last iteration: the cohort is held, and those who join it meanwhile have produced
// tokens since. They stand in order of time. The next step of the cohort makes them one again,
// and the list is empty. Lagging members are in no group.
type groups []group

// hold notes that the members, of whom so many have joined just now, were given nothing in the
// iteration f; the previous one was number, which ended at the instant end.
func (g *groups) hold(f *iteration, members, joined int, number int64, end clock.Time) {
	if len(*g) == 0 && members > joined {
		*g = append(*g, group{number, end, members - joined})
	}
	if joined > 0 {
		*g = append(*g, group{f.number, f.end, joined})
	}
}

// size is the number of members in the groups.
func (g groups) size() int {
	n := 0
	for k := range g {
		n += g[k].size
	}
	return n
}

// of is the group of member s. The list is not empty.
func (g groups) of(s *sequence) *group {
	for k := len(g) - 1; k > 0; k-- {
		if g[k].number == s.joinBatch {
			return &g[k]
		}
	}
	return &g[0]
}

// lastToken is the iteration that gave the last token of s, which decodes, and its end. That of
// the iteration being composed does not count.
func (r *Engine) lastToken(s *sequence) (number int64, end clock.Time) {
	switch {
	case s.lagging:
		return s.lastBatch, s.lastEnd
	case len(r.groups) > 0:
		g := r.groups.of(s)
		return g.number, g.end
	case r.pipe != nil:
		return r.pipe.lastToken()
	}
	return r.gpu.batches, r.gpu.free
}

// leaveStep makes s, which decodes, keep its last token for itself.
func (r *Engine) leaveStep(s *sequence) {
	s.lastBatch, s.lastEnd = r.lastToken(s)
	if !s.lagging && len(r.groups) > 0 {
		r.groups.of(s).size--
	}
}

// lateGap is inter-token gaps that are not an iteration's length: the tokens before them came from
// an earlier iteration than the previous one.
type lateGap struct {
	from clock.Time
	n    int
}

// countGaps counts the gaps that end when n sequences, whose last tokens came from the given
// iteration, produce another in the one being composed; a negative n takes them back.
func (it *batchBuilder) countGaps(number int64, end clock.Time, n int) {
	if number == it.r.gpu.batches && it.r.pipe == nil {
		it.gaps += n
		return
	}
	it.countLate(end, n)
}

// countLate counts gaps that no span carries, however long the previous iteration is ago.
func (it *batchBuilder) countLate(from clock.Time, n int) {
	for k := range it.late {
		if it.late[k].from == from {
			it.late[k].n += n
			return
		}
	}
	it.late = append(it.late, lateGap{from, n})
}

// countCohortGaps counts the gaps that end with the cohort's step.
func (it *batchBuilder) countCohortGaps() {
	r := it.r
	for i := r.running.first; i != none && r.lagging > 0; i = r.seq(i).next {
		if s := r.seq(i); s.lagging {
			it.countGaps(s.lastBatch, s.lastEnd, 1)
		}
	}
	switch {
	case r.pipe != nil:
		if _, end := r.pipe.lastToken(); r.cohort.size > r.lagging {
			it.countLate(end, r.cohort.size-r.lagging)
		}
		return
	case len(r.groups) == 0:
		it.gaps += r.cohort.size - r.lagging
		return
	}
	for k := range r.groups {
		g := &r.groups[k]
		it.countGaps(g.number, g.end, g.size)
	}
}

// reportGaps tells the observer of the inter-token gaps that end with the iteration and are not its
// length.
func (it *batchBuilder) reportGaps(end clock.Time) {
	for _, g := range it.late {
		if g.n > 0 {
			it.r.obs.Gap(end, end.Sub(g.from), g.n)
		}
	}
}
