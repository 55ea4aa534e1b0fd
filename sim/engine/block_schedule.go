package engine

import (
	"clifftop/internal/pq"
	"clifftop/sim/clock"
)

// blockSchedule counts sequences by the cohort steps at which they take a block. A block holds as many tokens as there
// are residues. In that many steps each member takes one block, at the step of its residue.
type blockSchedule struct {
	need    []int32 // members by residue
	members int
}

// residueAt is step modulo the block size.
func (t *blockSchedule) residueAt(step int64) int { return int(uint64(step) % uint64(len(t.need))) }

// at returns the number of members that take a block in the step.
func (t *blockSchedule) at(step int64) int { return int(t.need[t.residueAt(step)]) }

// add counts n more members of the residue.
func (t *blockSchedule) add(residue, n int32) {
	t.need[residue] += n
	t.members += int(n)
}

// over returns the number of blocks that the members take in n steps, beginning with the given one.
func (t *blockSchedule) over(step int64, n int) int {
	size := len(t.need)
	total := n / size * t.members
	at := t.residueAt(step)
	for i := n % size; i > 0; i-- {
		total += int(t.need[at])
		if at++; at == size {
			at = 0
		}
	}
	return total
}

// plenty reports whether the free blocks suffice for n steps, beginning with any.
func (t *blockSchedule) plenty(free, n int) bool { return (n/len(t.need)+1)*t.members <= free }

// within returns for how many steps, beginning with the given one and at most limit, the free blocks suffice.
func (t *blockSchedule) within(step int64, free, limit int) int {
	if t.plenty(free, limit) {
		return limit
	}
	size := len(t.need)
	n := free / t.members // whole rounds: each member takes one block in each
	left := free - n*t.members
	n *= size
	for at := t.residueAt(step); n < limit; n++ {
		if left -= int(t.need[at]); left < 0 {
			break
		}
		if at++; at == size {
			at = 0
		}
	}
	return n
}

// femtos returns the integral of the referenced blocks over the iterations of p, in block-femtoseconds, and their
// number in the last one. used is their number in iteration 0, and step the cohort step that iteration 1 makes.
func (t *blockSchedule) femtos(used int, p *clock.Progression, step int64) (sum clock.Uint128, last int) {
	size, n, first := len(t.need), p.N, p.First
	if n > 3*size {
		// Iteration k·size+i has level(i)+k·members and length(i)+k·size·slope.
		levels, moment, _ := t.walk(used, size, step)
		rounds := (n - 1) / size
		lengths := uint64(int64(size)*first + int64(size*(size-1)/2)*p.Slope)
		r := uint64(rounds)
		ones := r * (r - 1) / 2
		squares := (r - 1) * r * (2*r - 1) / 6
		growth := uint64(p.Slope) * uint64(size)
		products := clock.Mul64(levels, uint64(first)).Add(clock.Mul64(moment, uint64(p.Slope)))
		linear := clock.Mul64(growth, levels).Add(clock.Mul64(uint64(t.members), lengths))
		square := clock.Mul64(uint64(t.members), growth).Mul(uint64(size))
		sum = products.Mul(r).Add(linear.Mul(ones)).Add(square.Mul(squares))
		n -= rounds * size
		used += rounds * t.members
		first += int64(rounds*size) * p.Slope
	}
	levels, moment, last := t.walk(used, n, step)
	return sum.Add(clock.Mul64(levels, uint64(first))).Add(clock.Mul64(moment, uint64(p.Slope))), last
}

// walk returns the sum of the referenced blocks over n iterations, at most three rounds of residues, the sum of their
// products with the number of the iteration, and their number in the last one. level is the number in iteration 0, and
// step the cohort step that iteration 1 makes.
func (t *blockSchedule) walk(level, n int, step int64) (levels, moment uint64, last int) {
	levels = uint64(level)
	for k, at := 1, t.residueAt(step); k < n; k++ {
		level += int(t.need[at])
		levels += uint64(level)
		moment += uint64(k) * uint64(level)
		if at++; at == len(t.need) {
			at = 0
		}
	}
	return levels, moment, level
}

// The members of the cohort in the block schedules, by the steps at which they take a new block.

// enterSchedule files sequence i under the residue of the steps at which it takes a new block.
func (k *Space) enterSchedule(i int32) {
	s, c := k.seqs.at(i), k.members
	size := int64(k.cfg.BlockSize)
	s.residue = int32(((s.joined-int64(s.target))%size + size) % size)
	k.enlist(s, i)
	c.link(i)
}

// leaveSchedule is the inverse of enterSchedule.
func (k *Space) leaveSchedule(i int32) {
	s, c := k.seqs.at(i), k.members
	k.delist(s)
	c.unlink(s)
}

// enlist counts member s in the schedules of members that take blocks, fill reserved ones or have booked the next one,
// until its reservation or its booking is used up.
func (k *Space) enlist(s *sequence, i int32) {
	c := k.members
	if s.reserved == 0 && s.booking == 0 && k.mostCharged == 0 {
		c.takes.add(s.residue, 1)
		return
	}
	size := int64(k.cfg.BlockSize)
	computed := int64(s.target) + c.steps - s.joined
	until := c.steps + int64(s.reserved)*size - computed // the step at which its reserved blocks are full
	s.covered = until > c.steps
	if s.covered {
		s.coverage = s.reserved
		c.empty += s.reserved - k.cfg.blocksFor(int32(computed))
		c.fills.add(s.residue, 1)
	} else {
		c.takes.add(s.residue, 1)
		until = 0
		if held := max(s.reserved, k.cfg.blocksFor(int32(computed))); held < k.mostCharged {
			s.growing = true
			c.growing++
		} else if s.booking > held+s.windowed {
			s.bookedNext = true
			c.booked.add(s.residue, 1)
			until = c.steps + int64(s.booking-s.windowed)*size - computed
		}
	}
	s.refileAt = until
	if until > 0 && until <= s.ends {
		c.refiling.Push(pq.Item[int32]{Key: until, Tie: s.serial, Value: i})
	}
}

// delist is the inverse of enlist.
func (k *Space) delist(s *sequence) {
	c := k.members
	if s.covered {
		c.empty -= s.coverage - k.cfg.blocksFor(c.computed(s))
		c.fills.add(s.residue, -1)
	} else {
		c.takes.add(s.residue, -1)
	}
	if s.bookedNext {
		s.owed = s.bookedLeft(k.held(s))
		c.booked.add(s.residue, -1)
	}
	if s.growing {
		c.growing--
	}
	s.covered, s.bookedNext, s.growing = false, false, false
}

// refile updates the schedules for members whose reservation or booking is used up.
func (k *Space) refile() {
	c := k.members
	for c.refiling.Len() > 0 && c.refiling.Top().Key <= c.steps {
		e := c.refiling.Pop()
		if s := k.seqs.at(e.Value); s.phase == decoding && s.serial == e.Tie && s.refileAt == e.Key {
			k.Settle()
			k.delist(s)
			k.enlist(s, e.Value)
		}
	}
}
