package engine

import (
	"clifftop/internal/pq"
	"clifftop/sim/sched"
)

// cohort is the set of sequences that decode. Between changes of membership every one of them gains
// a token in each iteration, so that a single counter of steps stands for all of them: a sequence
// that joined at step s having computed c tokens has computed c+t-s at step t. All sums over the
// members are kept in closed form; nothing here loops over them.
type cohort struct {
	steps   int64 // iterations in which the cohort decoded
	size    int
	share   int64           // Σ over its steps of the GPU time of a token, modulo 2⁶⁴: see Span.Share
	context int64           // Σ computed tokens over the members, at steps
	ends    pq.Queue[int32] // steps at which members issue their last token; entries may be stale

	takes    blockSchedule   // members that take new blocks as they grow: all but those that have a reservation left
	fills    blockSchedule   // members that grow into blocks that they have reserved
	empty    int             // how many of these hold nothing, at steps
	booked   blockSchedule   // those of them who were promised the next block
	refiling pq.Queue[int32] // steps at which a reservation or a promise is used up; entries may be stale

	growing int // members whose windowed layers still take blocks; only single steps are taken then

	// With prefix caching blocks are taken in order of (step, running position), but only when
	// somebody looks: the steps below settled are done, and debt blocks are owed since.
	settled int64
	debt    int
	first   []int32 // members of each residue, in running order; kept only where they are needed
	last    []int32
}

func (c *cohort) init(blockSize int32, listed bool) {
	c.takes.need = make([]int32, blockSize)
	c.fills.need = make([]int32, blockSize)
	c.booked.need = make([]int32, blockSize)
	if listed {
		c.first = make([]int32, blockSize)
		c.last = make([]int32, blockSize)
		for i := range c.first {
			c.first[i], c.last[i] = int32(sched.None), int32(sched.None)
		}
	}
}
