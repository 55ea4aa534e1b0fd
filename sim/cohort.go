package sim

import (
	"clifftop/sim/clock"
	"clifftop/sim/sched"
)

// cohort is the set of sequences that decode. Between changes of membership every one of them gains
// a token in each iteration, so that a single counter of steps stands for all of them: a sequence
// that joined at step s having computed c tokens has computed c+t-s at step t. All sums over the
// members are kept in closed form; nothing here loops over them.
type cohort struct {
	steps   int64 // iterations in which the cohort decoded
	size    int
	context int64   // Σ computed tokens over the members, at steps
	need    []int32 // members by residue of the step at which they take a new block
	ends    heap    // steps at which members issue their last token; entries may be stale

	growing int // members whose windowed layers still take blocks; only single steps are taken then

	// With prefix caching blocks are taken in order of (step, running position), but only when
	// somebody looks: the steps below settled are done, and debt blocks are owed since.
	settled int64
	debt    int
	first   []int32 // members of each residue, in running order; kept only where they are needed
	last    []int32
}

func (c *cohort) init(blockSize int32, listed bool) {
	c.need = make([]int32, blockSize)
	if listed {
		c.first = make([]int32, blockSize)
		c.last = make([]int32, blockSize)
		for i := range c.first {
			c.first[i], c.last[i] = int32(sched.None), int32(sched.None)
		}
	}
}

// residueAt is step modulo the block size.
func (c *cohort) residueAt(step int64) int { return int(step % int64(len(c.need))) }

// blocksOver is the number of blocks that the members take in n steps from the given one on.
func (c *cohort) blocksOver(step int64, n int) int {
	size := len(c.need)
	total := n / size * c.size
	at := c.residueAt(step)
	for i := n % size; i > 0; i-- {
		total += int(c.need[at])
		if at++; at == size {
			at = 0
		}
	}
	return total
}

// stepsWithin is the number of steps from the given one on, at most limit, for which free blocks
// suffice.
func (c *cohort) stepsWithin(step int64, free, limit int) int {
	if c.size == 0 {
		return limit
	}
	size := len(c.need)
	n := free / c.size // whole rounds: each member takes one block in each
	if n >= limit/size+1 {
		return limit
	}
	left := free - n*c.size
	n *= size
	for at := c.residueAt(step); n < limit; n++ {
		if left -= int(c.need[at]); left < 0 {
			break
		}
		if at++; at == size {
			at = 0
		}
	}
	return n
}

// blockFemtos integrates the referenced blocks over the iterations of p, where used is their number
// in iteration 0 and step the cohort step that iteration 1 makes.
func (c *cohort) blockFemtos(used int, p *clock.Progression, step int64) Uint128 {
	var sum Uint128
	size, n := len(c.need), p.N
	length, level, at := p.First, used, c.residueAt(step)
	if rounds := n / size; rounds >= 3 {
		// Iteration k·size+i has level(i)+k·members and length(i)+k·size·slope.
		var products Uint128
		var levels, lengths uint64
		for range size {
			products = products.Add(Mul64(uint64(level), uint64(length)))
			levels += uint64(level)
			lengths += uint64(length)
			level += int(c.need[at])
			length += p.Slope
			if at++; at == size {
				at = 0
			}
		}
		r := uint64(rounds)
		ones := r * (r - 1) / 2
		squares := (r - 1) * r * (2*r - 1) / 6
		growth := uint64(p.Slope) * uint64(size)
		linear := Mul64(growth, levels).Add(Mul64(uint64(c.size), lengths))
		square := Mul64(uint64(c.size), growth).Mul(uint64(size))
		sum = products.Mul(r).Add(linear.Mul(ones)).Add(square.Mul(squares))
		n -= rounds * size
		level += (rounds - 1) * c.size
		length = p.First + int64(rounds*size)*p.Slope
	}
	for range n {
		sum = sum.Add(Mul64(uint64(level), uint64(length)))
		level += int(c.need[at])
		length += p.Slope
		if at++; at == size {
			at = 0
		}
	}
	return sum
}
