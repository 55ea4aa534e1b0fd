package engine

import (
	"math"

	"clifftop/internal/pq"
	"clifftop/sim/delivery"
	"clifftop/sim/queue"
	"clifftop/sim/sched"
)

// cohort is the set of sequences that decode. Between changes of membership each of them gains a token in every
// iteration, so that one counter of steps stands for all. Sums over the members are kept in closed form: a step costs
// the same for one member and for a thousand.
//
// Invariants, which Engine.check asserts member by member:
//
//   - A member that joined at step j with t computed tokens has computed t+steps-j: see computed.
//   - context is the sum of the computed tokens of all members, squares that of their squares, and size their number.
//   - Every member takes one block in each round of as many steps as a block has tokens, at the steps of its residue. It is
//     counted in takes if it takes them from the pool, and in fills if it has reserved them.
//   - empty is the number of reserved blocks of members that hold nothing.
//   - Every member has an entry in ends for the step at which its last token is issued. Older entries are stale.
//   - Blocks that members took since the step settled are owed: debt is their number.
type cohort struct {
	steps   int64 // iterations in which the cohort decoded
	size    int
	share   int64           // Σ over its steps of the GPU time of a token, modulo 2⁶⁴: see Span.Share
	context int64           // Σ computed tokens over the members, at steps
	squares uint64          // Σ of their squares, modulo 2⁶⁴
	ends    pq.Queue[int32] // steps at which members issue their last token; entries may be stale

	takes    blockSchedule   // members that take new blocks from the pool: all but those in fills
	fills    blockSchedule   // members that grow into blocks that they have reserved
	empty    int             // number of reserved blocks that hold nothing, at steps
	booked   blockSchedule   // members that have booked the next block
	refiling pq.Queue[int32] // steps at which a reservation or a booking is used up; entries may be stale

	singly bool // the step is counted, and its members are being given their tokens one by one

	growing int // members whose windowed layers still take blocks; only single steps are taken then

	// With prefix caching, blocks are taken in order of step and running position, but only when Settle is called: the
	// steps below settled are done, and debt blocks are owed since.
	settled int64
	debt    int
	first   []int32 // members of each residue, in running order; kept only where they are needed
	last    []int32
	seqs    *slab
}

// decoders is the sequences that decode: a cohort or, with pipeline parallelism, several. The engine has one of them at
// a time.
type decoders struct {
	cohort  cohort
	lagging int     // members of the cohort that missed its last step
	groups  groups  // the iterations of the last tokens of the other members
	berths  *berths // the other cohorts; nil without pipeline parallelism

	seqs    *slab
	running *runningBatch
	space   *Space
	gpu     *gpu
	fair    *queue.Fair // nil without fair queueing
	line    *delivery.Line
}

// init connects the decoders with the parts of their engine.
func (d *decoders) init(r *Engine) {
	d.seqs, d.running, d.space, d.gpu, d.fair = &r.seqs, &r.running, &r.space, &r.gpu, r.queue.Fair()
	d.line, d.running.line = &r.line, &r.line
}

// init makes an empty cohort of sequences of a slab. If listed is true, the members of each residue are listed.
func (c *cohort) init(seqs *slab, blockSize int32, listed bool) {
	c.seqs = seqs
	c.takes.need = make([]int32, blockSize)
	c.fills.need = make([]int32, blockSize)
	c.booked.need = make([]int32, blockSize)
	if listed {
		c.initLists(blockSize)
	}
}

// initLists makes empty lists of the members of each residue.
func (c *cohort) initLists(blockSize int32) {
	c.first = make([]int32, blockSize)
	c.last = make([]int32, blockSize)
	for i := range c.first {
		c.first[i], c.last[i] = int32(sched.None), int32(sched.None)
	}
}

// computed returns the number of tokens that member s has computed.
func (c *cohort) computed(s *sequence) int32 { return s.target + int32(c.steps-s.joined) }

// step gives every member a token.
func (c *cohort) step() {
	if c.fills.members > 0 {
		c.empty -= c.fills.at(c.steps)
	}
	c.steps++
	c.squares += uint64(2*c.context + int64(c.size))
	c.context += int64(c.size)
}

// advance makes n steps at once.
func (c *cohort) advance(n int) {
	if c.fills.members > 0 {
		c.empty -= c.fills.over(c.steps, n)
	}
	c.steps += int64(n)
	c.squares += uint64(n) * uint64(2*c.context+int64(n)*int64(c.size))
	c.context += int64(n) * int64(c.size)
}

// square returns n².
func square(n int32) uint64 { return uint64(int64(n) * int64(n)) }

// link adds member i to the list of its residue, if there are lists.
func (c *cohort) link(i int32) {
	s := c.seqs.at(i)
	if c.first == nil {
		return
	}
	// Members are in running order; a new one is nearly always the last.
	after := c.last[s.residue]
	for after != none && c.seqs.at(after).serial > s.serial {
		after = c.seqs.at(after).prevSame
	}
	s.prevSame = after
	if after == none {
		s.nextSame = c.first[s.residue]
		c.first[s.residue] = i
	} else {
		s.nextSame = c.seqs.at(after).nextSame
		c.seqs.at(after).nextSame = i
	}
	if s.nextSame == none {
		c.last[s.residue] = i
	} else {
		c.seqs.at(s.nextSame).prevSame = i
	}
}

// unlink takes member s out of the list of its residue.
func (c *cohort) unlink(s *sequence) {
	if c.first == nil {
		return
	}
	if s.prevSame == none {
		c.first[s.residue] = s.nextSame
	} else {
		c.seqs.at(s.prevSame).nextSame = s.nextSame
	}
	if s.nextSame == none {
		c.last[s.residue] = s.prevSame
	} else {
		c.seqs.at(s.nextSame).prevSame = s.prevSame
	}
}

// nextFinish returns the step at which the next member of the cohort issues its last token. There is one.
func (c *cohort) nextFinish() int64 {
	top := c.ends.Top()
	for c.stale(top) {
		c.ends.Pop()
		top = c.ends.Top()
	}
	return top.Key
}

// stale reports whether an entry of ends stands for no member.
func (c *cohort) stale(end *pq.Item[int32]) bool {
	s := c.seqs.at(end.Value)
	return s.ends != end.Key || s.serial != end.Tie || s.phase != decoding
}

// nextRefile returns the next step at which a reservation or a booking is used up.
func (c *cohort) nextRefile() int64 {
	h := &c.refiling
	for h.Len() > 0 {
		top := h.Top()
		if s := c.seqs.at(top.Value); s.phase == decoding && s.serial == top.Tie && s.refileAt == top.Key {
			return top.Key
		}
		h.Pop()
	}
	return math.MaxInt64
}
