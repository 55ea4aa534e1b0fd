package engine

import "clifftop/sim/clock"

// blockSchedule counts sequences by the steps of the cohort at which they take a block: each member takes one
// in every round of as many steps as a block has tokens, at the steps of its residue.
type blockSchedule struct {
	need    []int32 // members by residue
	members int
}

// residueAt is step modulo the block size.
func (t *blockSchedule) residueAt(step int64) int { return int(step % int64(len(t.need))) }

// at is the number of members that take a block in the step.
func (t *blockSchedule) at(step int64) int { return int(t.need[t.residueAt(step)]) }

// add counts n more members of the residue.
func (t *blockSchedule) add(residue, n int32) {
	t.need[residue] += n
	t.members += int(n)
}

// over is the number of blocks that the members take in n steps from the given one on.
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

// within is the number of steps from the given one on, at most limit, for which free blocks
// suffice.
func (t *blockSchedule) within(step int64, free, limit int) int {
	if t.members == 0 {
		return limit
	}
	size := len(t.need)
	n := free / t.members // whole rounds: each member takes one block in each
	if n >= limit/size+1 {
		return limit
	}
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

// femtos integrates the referenced blocks over the iterations of p, where used is their number
// in iteration 0 and step the cohort step that iteration 1 makes.
func (t *blockSchedule) femtos(used int, p *clock.Progression, step int64) clock.Uint128 {
	var sum clock.Uint128
	size, n := len(t.need), p.N
	length, level, at := p.First, used, t.residueAt(step)
	if rounds := n / size; rounds >= 3 {
		// Iteration k·size+i has level(i)+k·members and length(i)+k·size·slope.
		var products clock.Uint128
		var levels, lengths uint64
		for range size {
			products = products.Add(clock.Mul64(uint64(level), uint64(length)))
			levels += uint64(level)
			lengths += uint64(length)
			level += int(t.need[at])
			length += p.Slope
			if at++; at == size {
				at = 0
			}
		}
		r := uint64(rounds)
		ones := r * (r - 1) / 2
		squares := (r - 1) * r * (2*r - 1) / 6
		growth := uint64(p.Slope) * uint64(size)
		linear := clock.Mul64(growth, levels).Add(clock.Mul64(uint64(t.members), lengths))
		square := clock.Mul64(uint64(t.members), growth).Mul(uint64(size))
		sum = products.Mul(r).Add(linear.Mul(ones)).Add(square.Mul(squares))
		n -= rounds * size
		level += (rounds - 1) * t.members
		length = p.First + int64(rounds*size)*p.Slope
	}
	for range n {
		sum = sum.Add(clock.Mul64(uint64(level), uint64(length)))
		level += int(t.need[at])
		length += p.Slope
		if at++; at == size {
			at = 0
		}
	}
	return sum
}
