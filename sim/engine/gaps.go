package engine

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// group is a set of members of the cohort whose last tokens came from the same iteration.
type group struct {
	number int64      // of the iteration
	end    clock.Time // its end
	size   int
}

// groups divides the members of a held cohort by the iteration that produced their last token: sequences that join the
// cohort while it is held have newer tokens than the other members. The groups are ordered by time. The list is empty
// if all members produced a token in the last iteration, hence after each step of the cohort. Lagging members are in no
// group.
type groups []group

// hold updates the groups after iteration f, which gave no tokens to the cohort. The cohort has this number of members,
// of which joined have just joined. number and end are the number and the end of the iteration before f.
func (g *groups) hold(f *iteration, members, joined int, number int64, end clock.Time) {
	if len(*g) == 0 && members > joined {
		*g = append(*g, group{number, end, members - joined})
	}
	if joined > 0 {
		*g = append(*g, group{f.number, f.end, joined})
	}
}

// size returns the number of members in the groups.
func (g groups) size() int {
	n := 0
	for k := range g {
		n += g[k].size
	}
	return n
}

// of returns the group of member s. The list must not be empty.
func (g groups) of(s *sequence) *group {
	for k := len(g) - 1; k > 0; k-- {
		if g[k].number == s.joinBatch {
			return &g[k]
		}
	}
	return &g[0]
}

// lastToken returns the number and end of the iteration that produced the last token of s, which decodes. The iteration
// that is being composed does not count.
func (d *decoders) lastToken(s *sequence) (number int64, end clock.Time) {
	switch {
	case s.lagging:
		return s.lastBatch, s.lastEnd
	case len(d.groups) > 0:
		g := d.groups.of(s)
		return g.number, g.end
	case d.berths != nil:
		return d.berths.lastToken()
	}
	return d.gpu.batches, d.gpu.free
}

// leaveStep makes member s keep the iteration of its last token in its own fields.
func (d *decoders) leaveStep(s *sequence) {
	s.lastBatch, s.lastEnd = d.lastToken(s)
	if !s.lagging && len(d.groups) > 0 {
		d.groups.of(s).size--
	}
}

// tokenGaps counts the inter-token gaps that end with the iteration that is being composed.
type tokenGaps struct {
	last int64     // number of the previous iteration, or noIteration
	gaps int       // gaps that began with the end of the previous iteration
	late []lateGap // all others
}

// noIteration is a number that no iteration has. With pipeline parallelism every gap is late.
const noIteration = -1

// lateGap is n gaps that began at the same instant.
type lateGap struct {
	from clock.Time
	n    int
}

// countGaps counts the gaps of n sequences that get a token in this iteration. Their last tokens came from the
// iteration with the given number and end. A negative n takes the count back.
func (g *tokenGaps) countGaps(number int64, end clock.Time, n int) {
	if number == g.last {
		g.gaps += n
		return
	}
	g.countLate(end, n)
}

// countLate counts n gaps that began at an instant and are reported apart from the span.
func (g *tokenGaps) countLate(from clock.Time, n int) {
	for k := range g.late {
		if g.late[k].from == from {
			g.late[k].n += n
			return
		}
	}
	g.late = append(g.late, lateGap{from, n})
}

// reportGaps reports the late gaps to the observers. end is the end of the iteration.
func (g *tokenGaps) reportGaps(obs *event.Fanout, end clock.Time) {
	for _, late := range g.late {
		if late.n > 0 {
			obs.Gap(end, end.Sub(late.from), late.n)
		}
	}
}
