package engine

import (
	"clifftop/sim/sched"
)

// Blocks that sequences hold or are promised ahead of need.

// Reserve implements [sched.View].
func (it *batchBuilder) Reserve(i sched.Seq, tokens int32) bool {
	r := it.r
	s := r.seq(int32(i))
	r.Settle()
	blocks := r.blocksFor(tokens)
	if blocks <= r.held(s) {
		return true
	}
	grown := s.grown
	if ok := it.holdAll(int32(i), s, blocks); !ok {
		return false
	}
	s.grown = grown
	s.reserved = blocks
	r.space.reserves = true
	it.refile(int32(i), s)
	return true
}

// holdAll makes s hold so many blocks, which are more than it holds. In a contiguous pool it leaves its hole for
// another one first, and takes it again where there is none.
func (it *batchBuilder) holdAll(i int32, s *sequence, blocks int) bool {
	r := it.r
	if r.space.contiguous == nil {
		return it.grow(i, s, blocks)
	}
	held := s.blockCount
	left := s.bookedLeft(held)
	r.space.contiguous.Put(s.hole, held)
	r.putCount(held)
	s.blockCount = 0
	r.updateBooking(s, 0, left)
	if !it.grow(i, s, blocks) {
		it.grow(i, s, held)
		return false
	}
	return true
}

// Book implements [sched.View].
func (it *batchBuilder) Book(i sched.Seq, tokens int32) {
	r := it.r
	s := r.seq(int32(i))
	r.Settle()
	held := r.held(s)
	left := s.bookedLeft(held)
	s.booking = r.pagesFor(tokens)
	r.updateBooking(s, held, left)
	it.refile(int32(i), s)
}

// Booked implements [sched.View].
func (it *batchBuilder) Booked() int {
	it.asked = true
	return it.r.space.booked
}

// emptyBlocks is the number of blocks that hold nothing after the iteration that is being launched, and how many of
// them belong to sequences that leave before the next.
func (it *batchBuilder) emptyBlocks() (all, leaving int) {
	r := it.r
	if !r.space.reserves {
		return 0, 0
	}
	all = r.cohort.empty
	for _, i := range r.running.prefills {
		all += r.emptyOf(r.seq(i))
	}
	for _, i := range it.current.firsts {
		if s := r.seq(i); s.phase == finishing {
			all += r.emptyOf(s)
		}
	}
	if r.inFlight.n == 0 {
		return all, 0
	}
	for _, i := range r.inFlight.at(0).finishes {
		if s := r.seq(i); s.phase == finishing && s.joinBatch != it.current.number {
			leaving += r.emptyOf(s)
		}
	}
	return all + leaving, leaving
}

// emptyOf is that of s, which runs and is in no cohort.
func (r *Engine) emptyOf(s *sequence) int { return max(0, s.reserved-r.blocksFor(s.computed)) }

// refile counts s anew, if it is in the cohort.
func (it *batchBuilder) refile(i int32, s *sequence) {
	if s.phase == decoding {
		it.r.delist(s)
		it.r.enlist(s, i)
	}
}

// held is the number of blocks that s holds. The cohort's are settled.
func (r *Engine) held(s *sequence) int {
	if r.space.caching {
		return len(s.blocks)
	}
	if s.phase != decoding {
		return s.blockCount
	}
	computed := r.cohort.computed(s)
	if it := &r.it; it.open && it.slow && s.given == 0 && !s.grown && !r.inOtherCohort(s) {
		computed-- // the step is counted, but it has not got its token yet
	}
	return max(s.reserved, r.blocksFor(computed))
}

// bookedLeft is what is left of the promise to s, which holds so many blocks.
func (s *sequence) bookedLeft(held int) int { return max(0, s.booking-held-s.windowed) }

// updateBooking notes that s holds so many blocks now, or was promised more, when so many promised ones were
// left before.
func (r *Engine) updateBooking(s *sequence, held, before int) {
	left := s.bookedLeft(held)
	r.space.booked += left - before
	if !s.bookedNext {
		s.owed = left
	}
}

// The charge for the KV of sliding-window layers.

// windowNeed is what the windowed layers of the members take in the next step. With take it is charged.
func (r *Engine) windowNeed(take bool) int {
	c, sum := &r.cohort, 0
	if c.growing == 0 {
		return 0
	}
	for i := c.first[c.takes.residueAt(c.steps)]; i != none; i = r.seq(i).nextSame {
		s := r.seq(i)
		if !s.growing {
			continue
		}
		blocks := r.blocksFor(c.computed(s)) + 1
		sum += r.cfg.Window.Extra(blocks) - s.windowed
		if take {
			r.growWindow(i, s, blocks)
		}
	}
	return sum
}

// chargeWindow charges s for the windowed layers of so many blocks.
func (r *Engine) chargeWindow(s *sequence, blocks int) {
	charge := r.cfg.Window.Extra(blocks)
	r.space.windowed += charge - s.windowed
	s.windowed = charge
	if s.growing && blocks >= r.cfg.Window.Blocks {
		s.growing = false
		r.cohort.growing--
	}
}

// growWindow charges s, which decodes and takes the last of so many blocks.
func (r *Engine) growWindow(i int32, s *sequence, blocks int) {
	before := s.bookedLeft(blocks - 1)
	r.chargeWindow(s, blocks)
	if s.booking == 0 {
		return
	}
	s.owed = s.bookedLeft(blocks)
	r.space.booked += s.owed - before
	if !s.growing { // what was promised falls steadily from now on
		r.delist(s)
		r.enlist(s, i)
	}
}
