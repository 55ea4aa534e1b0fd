package engine

import (
	"math"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/kv"
	"clifftop/sim/sched"
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
	return a.r.space.cache.Largest(a.FreeBlocks())
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
	if !a.grow(int32(i), s, kv.Growth{Blocks: blocks, Moves: true}) {
		return false
	}
	s.grown = grown
	s.reserved = blocks
	r.space.reserves = true
	a.refile(int32(i), s)
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

// growTo gives s the blocks for n more tokens and slots in all, and reports whether there were enough. computed is the
// number of its computed tokens.
func (a *kvAllocator) growTo(i int32, s *sequence, computed, n, slots int32) bool {
	r := a.r
	g := kv.Growth{Blocks: r.cfg.blocksFor(slots), Slots: slots, Given: n, Computed: computed,
		Iteration: a.current.number}
	if r.inFlight.n > 0 {
		g.Oldest = r.inFlight.at(0).number
	}
	return a.grow(i, s, g)
}

// grow gives s, sequence i, the blocks of g in all, and reports whether there were enough.
func (a *kvAllocator) grow(i int32, s *sequence, g kv.Growth) bool {
	k := &a.r.space
	g.Held = k.held(s)
	g.Blocks = max(g.Blocks, g.Held)
	g.Free = k.free() - k.charge(g.Blocks) + s.windowed
	if !k.cache.Grow(i, g) {
		return false
	}
	left, growing := s.bookedLeft(g.Held), s.growing
	if k.mostCharged > 0 {
		k.chargeWindow(s, g.Blocks)
	}
	s.grown, s.blockCount = true, g.Blocks
	if s.booking > 0 {
		k.updateBooking(s, g.Blocks, left)
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
func (k *Space) updateBooking(s *sequence, held, before int) {
	left := s.bookedLeft(held)
	k.booked += left - before
	if !s.bookedNext {
		s.owed = left
	}
}

// The charge for the KV of sliding-window layers.

// windowNeed returns the number of blocks that windowed layers of the members take in the next step. take charges them.
func (k *Space) windowNeed(take bool) int {
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
func (k *Space) chargeWindow(s *sequence, blocks int) {
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
func (k *Space) growWindow(i int32, s *sequence, blocks int) {
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
	if r.cfg.Hybrid == nil || s.phase != prefilling {
		return n
	}
	return a.clip(kv.Text{Seq: int32(i), Request: &s.rec.Request, Known: s.target}, s.computed, n, most)
}

// ClipWaiting implements [sched.Grouping].
func (a *kvAllocator) ClipWaiting(i int, n, most int32) int32 {
	r := a.r
	w := r.queue.At(i)
	if r.cfg.Hybrid == nil || w == nil {
		return n
	}
	found := r.space.find(w).Tokens
	return a.clip(r.space.text(w), found, n, most)
}

// clip cuts a chunk of n tokens behind the first start tokens of a request.
func (a *kvAllocator) clip(t kv.Text, start, n, most int32) int32 {
	if limit := int32(min(a.r.cfg.MaxNumBatchedTokens, math.MaxInt32)); most == 0 || most > limit {
		most = limit
	}
	return a.r.cfg.Hybrid.Clip(start, n, t.Request.InputTokens, t.Known, a.r.space.cache.Junction(t), most)
}

// Needs implements [sched.Grouping].
func (a *kvAllocator) Needs(i int, n int32, whole bool) int {
	r := a.r
	a.asked = true
	w := r.queue.At(i)
	if r.cfg.Hybrid == nil || w == nil {
		return 0
	}
	text, found := r.space.text(w), r.space.find(w).Tokens
	if whole {
		return r.space.cache.Needs(text, text.Known, true)
	}
	return r.space.cache.Needs(text, r.cfg.admissionSlots(found+n), false)
}

// Need implements [kv.Batch].
func (it *batchBuilder) Need() kv.Need {
	r := it.r
	n := kv.Need{Prompts: len(it.chunks), Decodes: it.decodes, DecodeBlocks: it.stepBlocks}
	for i := range it.chunks {
		chunk := &it.chunks[i]
		n.Tokens += int(chunk.New)
		n.PromptBlocks += r.cfg.blocksFor(chunk.Cached+chunk.New) - r.cfg.blocksFor(chunk.Cached)
	}
	if !it.slow && it.preempted == 0 {
		return n
	}
	n.DecodeBlocks = 0 // stepBlocks counts blocks of members that are preempted
	if it.decodes == 0 {
		return n
	}
	for i := r.running.first; i != none; i = r.seqs.at(i).next {
		s := r.seqs.at(i)
		if s.phase == decoding && it.hasToken(s) {
			length, page := r.cohort.computed(s), r.cfg.BlockSize
			if (length-1)%page == 0 && length > int32(s.reserved)*page {
				n.DecodeBlocks++
			}
		}
	}
	return n
}

// MakeRoom implements [sched.Reservation].
func (a *kvAllocator) MakeRoom(tokens int) { a.r.space.kind.Tree.MakeRoom(tokens, &a.r.it) }
