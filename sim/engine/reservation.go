package engine

import (
	"math"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/kv"
	"clifftop/sim/queue"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// kvAllocator is the KV pool as a policy sees it. It allocates blocks to running sequences, for the tokens of the
// iteration or ahead of need.
type kvAllocator struct {
	*composition
	empty   int // reserved blocks that are empty in the iterations that are being committed
	leaving int // empty blocks of sequences that leave before the second iteration
}

// Blocks implements [sched.KVSpace].
func (a *kvAllocator) Blocks() int { return a.r.cfg.NumGPUBlocks }

// FreeBlocks implements [sched.KVSpace].
func (a *kvAllocator) FreeBlocks() int {
	a.asked = true
	return a.r.space.free()
}

// LargestFree implements [sched.KVSpace].
func (a *kvAllocator) LargestFree() int {
	if h := a.r.space.contiguous; h != nil {
		return min(h.Largest(), a.FreeBlocks())
	}
	return a.FreeBlocks()
}

// BlocksFor implements [sched.KVSpace].
func (a *kvAllocator) BlocksFor(tokens int32) int { return a.r.cfg.PagesFor(tokens) }

// Slots implements [sched.KVSpace].
func (a *kvAllocator) Slots(tokens int32) int32 { return a.r.cfg.admissionSlots(tokens) }

// Reserve implements [sched.Reservation].
func (a *kvAllocator) Reserve(i sched.Seq, tokens int32) bool {
	r := a.r
	s := r.seqs.at(int32(i))
	r.space.Settle()
	blocks := r.cfg.blocksFor(tokens)
	if blocks <= r.space.held(s) {
		return true
	}
	grown := s.grown
	if !a.holdAll(int32(i), s, blocks) {
		return false
	}
	s.grown = grown
	s.reserved = blocks
	r.space.reserves = true
	a.refile(int32(i), s)
	return true
}

// holdAll allocates blocks for s up to this total, which is more than it holds, and reports whether there were enough.
// In a contiguous pool s first frees its range. If no range is large enough, it takes the old one again.
func (a *kvAllocator) holdAll(i int32, s *sequence, blocks int) bool {
	r := a.r
	if r.space.contiguous == nil {
		return a.grow(i, s, blocks)
	}
	held := s.blockCount
	left := s.bookedLeft(held)
	r.space.contiguous.Put(s.hole, held)
	r.space.putCount(held)
	s.blockCount = 0
	r.space.updateBooking(s, 0, left)
	if !a.grow(i, s, blocks) {
		a.grow(i, s, held)
		return false
	}
	return true
}

// Book implements [sched.Reservation].
func (a *kvAllocator) Book(i sched.Seq, tokens int32) {
	r := a.r
	s := r.seqs.at(int32(i))
	r.space.Settle()
	held := r.space.held(s)
	left := s.bookedLeft(held)
	s.booking = r.cfg.PagesFor(tokens)
	r.space.updateBooking(s, held, left)
	a.refile(int32(i), s)
}

// Booked implements [sched.Reservation].
func (a *kvAllocator) Booked() int {
	a.asked = true
	return a.r.space.booked
}

// grow allocates blocks for s up to this total, and reports whether there were enough.
func (a *kvAllocator) grow(i int32, s *sequence, blocks int) bool {
	r := a.r
	held := r.space.held(s)
	blocks = max(blocks, held)
	if blocks-held+r.space.charge(blocks)-s.windowed > r.space.free() {
		return false
	}
	if r.space.contiguous != nil && blocks > held {
		start, ok := 0, false
		if held == 0 {
			start, ok = r.space.contiguous.Take(blocks)
		}
		if !ok {
			return false
		}
		s.hole = start
	}
	left, growing := s.bookedLeft(held), s.growing
	if r.space.mostCharged > 0 {
		r.space.chargeWindow(s, blocks)
	}
	s.grown = true
	if r.space.caching {
		s.blocks = r.space.pool.Pop(s.blocks, blocks-held)
	} else {
		r.space.takeCount(blocks - held)
		s.blockCount = blocks
	}
	if s.booking > 0 {
		r.space.updateBooking(s, blocks, left)
	}
	if s.booking > 0 && growing && !s.growing {
		a.refile(i, s)
	}
	return true
}

// refile updates what the cohort counts for s, if s is a member.
func (a *kvAllocator) refile(i int32, s *sequence) {
	if s.phase == decoding {
		a.r.space.delist(s)
		a.r.space.enlist(s, i)
	}
}

// emptyBlocks returns the number of blocks that are empty after the iteration that is being launched, and how many of
// them belong to sequences that leave before the next one.
func (a *kvAllocator) emptyBlocks() (all, leaving int) {
	r := a.r
	if !r.space.reserves {
		return 0, 0
	}
	all = r.cohort.empty
	for _, i := range r.running.prefills {
		all += r.space.emptyOf(r.seqs.at(i))
	}
	for _, i := range a.current.firsts {
		if s := r.seqs.at(i); s.phase == finishing {
			all += r.space.emptyOf(s)
		}
	}
	if r.inFlight.n == 0 {
		return all, 0
	}
	for _, i := range r.inFlight.at(0).finishes {
		if s := r.seqs.at(i); s.phase == finishing && s.joinBatch != a.current.number {
			leaving += r.space.emptyOf(s)
		}
	}
	return all + leaving, leaving
}

// reportEmpty sets the empty blocks of span s. Iteration 1 of the span makes the given step of the cohort.
func (a *kvAllocator) reportEmpty(s *event.Span, step int64) {
	c := &a.r.cohort
	s.EmptyBlocks, s.EmptyFemtos = a.empty, clock.Uint128{}
	if a.empty == 0 {
		return
	}
	s.EmptyFemtos = clock.Mul64(uint64(a.empty), uint64(s.Femtos(s.N)))
	if s.N > 1 && c.fills.members > 0 {
		filled, n := c.fills.femtos(0, &s.Progression, step)
		s.EmptyFemtos = s.EmptyFemtos.Sub(filled)
		a.empty -= n
	}
	s.EmptyBlocks = a.empty
}

// bookedLeft returns the number of booked blocks that s has not taken. held is the number of blocks that it holds.
func (s *sequence) bookedLeft(held int) int { return max(0, s.booking-held-s.windowed) }

// updateBooking updates the sum of booked blocks after a change of s, which now holds this number of blocks. before is
// the value of bookedLeft before the change.
func (k *space) updateBooking(s *sequence, held, before int) {
	left := s.bookedLeft(held)
	k.booked += left - before
	if !s.bookedNext {
		s.owed = left
	}
}

// The charge for the KV of sliding-window layers.

// windowNeed returns the number of blocks that windowed layers of the members take in the next step. take charges them.
func (k *space) windowNeed(take bool) int {
	c, sum := k.members, 0
	if c.growing == 0 {
		return 0
	}
	for i := c.first[c.takes.residueAt(c.steps)]; i != none; i = k.seqs.at(i).nextSame {
		s := k.seqs.at(i)
		if !s.growing {
			continue
		}
		blocks := k.cfg.blocksFor(c.computed(s)) + 1
		sum += k.charge(blocks) - s.windowed
		if take {
			k.growWindow(i, s, blocks)
		}
	}
	return sum
}

// chargeWindow charges s for the windowed layers of this many blocks.
func (k *space) chargeWindow(s *sequence, blocks int) {
	charge := k.charge(blocks)
	k.windowed += charge - s.windowed
	s.windowed = charge
	if s.growing && blocks >= k.mostCharged {
		s.growing = false
		k.members.growing--
	}
}

// growWindow charges member s for its windowed layers. blocks is its number of blocks, of which it takes the last one
// now.
func (k *space) growWindow(i int32, s *sequence, blocks int) {
	before := s.bookedLeft(blocks - 1)
	k.chargeWindow(s, blocks)
	if s.booking == 0 {
		return
	}
	s.owed = s.bookedLeft(blocks)
	k.booked += s.owed - before
	if !s.growing { // from now on one booked block is used in each round
		k.delist(s)
		k.enlist(s, i)
	}
}

// KV cache groups with block tables of their own.

// Clip implements [sched.Grouping].
func (a *kvAllocator) Clip(i sched.Seq, n, most int32) int32 {
	r := a.r
	s := r.seqs.at(int32(i))
	if r.space.groups == nil || s.phase != prefilling {
		return n
	}
	return a.clip(&s.rec.Request, s.tables, s.target, s.computed, n, most)
}

// ClipWaiting implements [sched.Grouping].
func (a *kvAllocator) ClipWaiting(i int, n, most int32) int32 {
	r := a.r
	w := r.queue.At(i)
	if r.space.groups == nil || w == nil {
		return n
	}
	known := r.seqs.known(w)
	found := r.space.findGrouped(w, known)
	return a.clip(&w.Request, r.space.tablesOf(w), known, found, n, most)
}

// clip cuts a chunk of n tokens behind the first start tokens of a request.
func (a *kvAllocator) clip(q *workload.Request, t *kv.GroupTables, known, start, n, most int32) int32 {
	if limit := int32(min(a.r.cfg.MaxNumBatchedTokens, math.MaxInt32)); most == 0 || most > limit {
		most = limit
	}
	return a.r.cfg.Hybrid.Clip(start, n, q.InputTokens, known, t.Junction, most)
}

// Needs implements [sched.Grouping].
func (a *kvAllocator) Needs(i int, n int32, whole bool) int {
	r := a.r
	a.asked = true
	w := r.queue.At(i)
	if r.space.groups == nil || w == nil {
		return 0
	}
	known := r.seqs.known(w)
	found := r.space.findGrouped(w, known)
	if whole {
		return r.space.groups.Needs(r.space.tablesOf(w), known, true)
	}
	return r.space.groups.Needs(r.space.tablesOf(w), r.cfg.admissionSlots(found+n), false)
}

// growGrouped gives s the blocks of so many slots in all, for n more tokens, and reports whether there were enough.
// computed is the number of its computed tokens.
func (a *kvAllocator) growGrouped(s *sequence, computed, n, slots int32) bool {
	r := a.r
	processed := computed
	if r.inFlight.n > 0 && s.in == r.inFlight.at(0).number {
		processed -= s.scheduled
	}
	if !r.space.groups.Grow(s.tables, slots, processed) {
		return false
	}
	s.grown, s.scheduled, s.in = true, n, a.current.number
	return true
}

// findGrouped returns how many leading tokens of a waiting request the groups have in the prefix cache. At least one of
// its known tokens remains to be computed.
func (k *space) findGrouped(w *queue.Waiting, known int32) int32 {
	return k.groups.Find(k.tablesOf(w), known-1)
}

// tablesOf returns the block tables of a waiting request, which are empty.
func (k *space) tablesOf(w *queue.Waiting) *kv.GroupTables {
	if w.Seq != none {
		return k.seqs.at(w.Seq).tables
	}
	l := &k.look
	if !l.begun || l.request != w.Request.ID {
		if l.tables == nil {
			l.tables = new(kv.GroupTables)
		}
		k.groups.Start(l.tables, &w.Request)
		l.begun, l.request = true, w.Request.ID
	}
	return l.tables
}

// startGrouped gives s, the sequence of a request that is admitted, its block tables.
func (k *space) startGrouped(s *sequence, q *workload.Request) {
	if l := &k.look; l.begun && l.request == q.ID {
		s.tables, l.tables, l.begun = l.tables, s.tables, false
		return
	}
	if s.tables == nil {
		s.tables = new(kv.GroupTables)
	}
	k.groups.Start(s.tables, q)
}

// registerDelivered registers what is known of the sequences that iteration f, which is being processed, gave a token.
// With drafts, [draftVerifier] does.
func (e *Engine) registerDelivered(f *iteration) {
	for i := e.running.first; i != none && e.depth > 1 && !e.drafter.async; i = e.seqs.at(i).next {
		s := e.seqs.at(i)
		if !e.inFlight.emits(f, i) {
			continue
		}
		computed := s.computed
		if s.phase == decoding {
			computed = e.cohort.computed(s)
		}
		e.space.register(s, computed-(e.inFlight.tokensInFlight(i)-1))
	}
}
