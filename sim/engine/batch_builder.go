package engine

import (
	"math"

	"clifftop/model"
	"clifftop/sim/sched"
)

// batchBuilder is the iteration that the policy is composing: the [sched.View] of a replica.
//
// The cohort is given its step in one of two ways. DecodeAll and DecodeFirst count it at once. When
// the policy visits decoding sequences singly, the slow way, the step is counted before the first of them,
// and the members that were left out are put back by one step at the end. An iteration that does neither
// holds the cohort.
type batchBuilder struct {
	r       *Engine
	current *iteration

	budget  int32
	blocked sched.Cause

	open    bool  // it is being composed
	asked   bool  // the policy has asked what changes when a sequence leaves
	looked  bool  // the policy has looked at the queue beyond its head
	stepped bool  // the cohort's step is counted
	slow    bool  // and its members are given their tokens one by one
	mixed   bool  // sequences in prefill stand among those that were all given their step
	serials int64 // admissions before it

	decodes, gaps       int
	drafts, accepted    int // of the decodes; accepted ones can be past the end of an answer,
	discarded           int // and so many are
	context             int64
	chunks              []model.Chunk
	chunkSeqs           []int32
	prefill, recomputed int
	lost                int     // those of prefill that the prefix cache has lost
	missed              []int32 // members of the cohort that were not given its step
	preempted           int     // sequences preempted in it
	loads               int     // requests that began to be loaded
	victims             []int64 // their requests, and those of empty compositions before
	swaps               []int64 // those of them that were swapped out
	joined              int     // sequences that joined the cohort in the end
	ordered             bool    // finishing sequences have been given their rank
	resumed             int     // sequences among flight.firsts that were swapped in and decode
	late                []lateGap

	empty, leaving int // blocks that hold nothing, and those of them that are gone in the next iteration

	padRows, padTokens int
	padContext         int64
	padTo              int32
	padded             []model.Chunk

	orderView sched.Waiting // scratch: what an order is shown
}

var _ sched.View = (*batchBuilder)(nil)

func (it *batchBuilder) begin(number int64) {
	it.r.refile()
	it.open = true
	it.current = it.r.inFlight.next()
	it.budget = int32(min(it.r.cfg.MaxNumBatchedTokens, math.MaxInt32))
	it.blocked = sched.NotBlocked
	it.asked, it.looked = false, false
	it.stepped, it.slow, it.mixed, it.ordered = false, false, false, false
	it.serials = it.r.running.serials
	it.decodes, it.gaps, it.context = 0, 0, 0
	it.drafts, it.accepted, it.discarded = 0, 0, 0
	it.prefill, it.recomputed, it.lost, it.preempted, it.loads = 0, 0, 0, 0, 0
	it.missed = it.missed[:0]
	it.chunks, it.chunkSeqs = it.chunks[:0], it.chunkSeqs[:0]
	it.late = it.late[:0]
	it.joined, it.resumed, it.padRows, it.padTokens, it.padContext, it.padTo = 0, 0, 0, 0, 0, 0
	it.current.clear()
	it.current.number = number
	if fair := it.r.queue.fair; fair != nil {
		fair.begin(it.r.cohort.steps)
		if len(fair.joining) > 0 {
			fair.lift(it.r.clients)
		}
	}
}

// plain reports whether the iteration is the cohort's step and nothing else.
func (it *batchBuilder) plain() bool {
	return !it.slow && it.decodes > 0 && len(it.chunks) == 0 && it.preempted == 0 && it.loads == 0 &&
		it.r.space.moved == 0 &&
		len(it.current.verified) == 0
}

// Missing implements [sched.View].
func (it *batchBuilder) Missing(i sched.Seq) int32 {
	switch s := it.r.seq(int32(i)); s.phase {
	case decoding:
		if it.hasToken(s) || it.r.inOtherCohort(s) {
			return 0
		}
		return 1
	case prefilling:
		return s.target - s.computed
	case speculating:
		return it.r.missingDrafts(s)
	}
	return 0
}

// hasToken reports whether s, which decodes, has been given a token in this iteration.
func (it *batchBuilder) hasToken(s *sequence) bool {
	return it.stepped && (s.given > 0 || !it.slow)
}

// Urgency implements [sched.View].
func (it *batchBuilder) Urgency(i sched.Seq) sched.Urgency {
	s := it.r.seq(int32(i))
	u := sched.Urgency{Arrival: int64(s.rec.Request.Arrival), Request: s.rec.Request.ID}
	if order := it.r.cfg.Order; order != nil {
		it.orderView = sched.Waiting{
			Progress: it.Progress(i), Computed: it.computed(s), Answer: it.r.OutputOf(&s.rec.Request),
			Preempted: s.rec.Preemptions > 0, Urgency: u,
		}
		it.orderView.Known = it.orderView.Prompt + it.orderView.Generated
		u.Key = order.Key(&it.orderView)
	}
	return u
}

// computed is the number of tokens that s had computed before this iteration.
func (it *batchBuilder) computed(s *sequence) int32 {
	if s.phase != decoding {
		return s.computed - s.given
	}
	n := s.target + int32(it.r.steps(s)-s.joined)
	if it.stepped && !it.r.inOtherCohort(s) {
		n--
	}
	return n
}

// DecodeAll implements [sched.View].
func (it *batchBuilder) DecodeAll() sched.Seq {
	if it.r.running.speculating > 0 {
		return it.First()
	}
	before := it.firstPrefill()
	if it.r.cohort.size == 0 {
		return before
	}
	if before != sched.None && it.decoderBehind(int32(before)) || !it.step() {
		return it.First()
	}
	return before
}

// DecodeFirst implements [sched.View].
func (it *batchBuilder) DecodeFirst() bool {
	if it.r.running.speculating > 0 {
		return false
	}
	it.mixed = len(it.r.running.prefills) > 0
	return it.r.cohort.size == 0 || it.step()
}

// step gives the cohort its step, if the pool and the budget have room for it.
func (it *batchBuilder) step() bool {
	r, c := it.r, &it.r.cohort
	need := c.takes.at(c.steps)
	if c.size > int(it.budget) || need+r.windowNeed(false) > r.free() || need > 0 && r.space.contiguous != nil {
		return false
	}
	if c.booked.members > 0 {
		r.space.booked -= c.booked.at(c.steps)
	}
	r.windowNeed(true)
	if r.space.caching {
		c.debt += need
	} else {
		r.takeCount(need)
	}
	it.countStep()
	it.countCohortGaps()
	if r.space.caching && r.depth > 1 {
		it.registerRested()
	}
	if need > 0 && r.writesBack() {
		r.Settle() // what goes for the new blocks goes now
	}
	it.decodes = c.size
	it.context = c.context
	it.budget -= int32(c.size)
	return true
}

// firstPrefill is the first running sequence in prefill.
func (it *batchBuilder) firstPrefill() sched.Seq {
	if len(it.r.running.prefills) == 0 {
		return sched.None
	}
	return sched.Seq(it.r.running.prefills[0])
}

// decoderBehind reports whether a sequence admitted after i decodes.
func (it *batchBuilder) decoderBehind(i int32) bool {
	for j := it.r.running.last; j != i; j = it.r.seq(j).prev {
		if it.r.seq(j).phase == decoding {
			return true
		}
	}
	return false
}

func (it *batchBuilder) countStep() {
	it.r.cohort.step()
	it.stepped = true
}

// goSlow counts the cohort's step for the sequences that the policy is about to visit one by one.
func (it *batchBuilder) goSlow() {
	it.slow = true
	it.r.Settle()
	it.countStep()
	it.r.cohort.settled = it.r.cohort.steps
}

// Grow implements [sched.View].
func (it *batchBuilder) Grow(i sched.Seq, n int32) bool {
	r := it.r
	s := r.seq(int32(i))
	r.Settle()
	computed := s.computed
	if s.phase == decoding {
		if !it.stepped {
			it.goSlow()
		}
		// The step is counted, but the token is not given yet.
		computed = r.cohort.computed(s) - 1
	}
	return it.grow(int32(i), s, r.blocksFor(r.cfg.slots(computed+n)))
}

// grow makes s hold so many blocks in all, if it holds less and the pool has them.
func (it *batchBuilder) grow(i int32, s *sequence, blocks int) bool {
	r := it.r
	held := r.held(s)
	blocks = max(blocks, held)
	if blocks-held+r.cfg.Window.Extra(blocks)-s.windowed > r.free() {
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
	if r.cfg.Window.Layers > 0 {
		r.chargeWindow(s, blocks)
	}
	s.grown = true
	if r.space.caching {
		s.blocks = r.space.pool.Pop(s.blocks, blocks-held)
	} else {
		r.takeCount(blocks - held)
		s.blockCount = blocks
	}
	if s.booking > 0 {
		r.updateBooking(s, blocks, left)
	}
	if s.booking > 0 && growing && !s.growing {
		it.refile(i, s)
	}
	return true
}

// Give implements [sched.View].
func (it *batchBuilder) Give(i sched.Seq, n int32) {
	s := it.r.seq(int32(i))
	switch s.phase {
	case decoding:
		it.giveDecode(int32(i), s)
	case speculating:
		it.giveDrafts(int32(i), s, n)
	default:
		it.givePrefill(int32(i), s, n)
	}
}

func (it *batchBuilder) givePrefill(i int32, s *sequence, n int32) {
	r := it.r
	s.given, s.grown = n, false
	it.budget -= n
	it.chunks = append(it.chunks, model.Chunk{New: n, Cached: s.computed})
	it.chunkSeqs = append(it.chunkSeqs, i)
	it.countPrefill(s, n, 1)
	s.computed += n
	s.chunkBatch = it.current.number
	if r.space.caching {
		r.register(s, min(s.computed, s.target-s.awaited)/r.cfg.BlockSize)
	}
	if r.space.radix != nil {
		it.current.computed = append(it.current.computed, computedChunk{i, s.computed, s.serial})
	}
	if s.computed < s.target {
		return
	}
	s.joinBatch = it.current.number
	if s.issued > 0 {
		it.countLate(s.lastEnd, 1)
	}
	s.issued++
	r.running.prefills = without(r.running.prefills, i)
	it.current.firsts = append(it.current.firsts, i)
}

// countPrefill counts n tokens of s as new or recomputed, from its computed ones on; sign -1 takes them back.
func (it *batchBuilder) countPrefill(s *sequence, n int32, sign int) {
	again, lost := s.known(s.computed, n)
	it.recomputed += sign * int(again)
	it.prefill += sign * int(n-again)
	it.lost += sign * int(lost)
	s.rec.RecomputedTokens += int32(sign) * again
	s.rec.LostTokens += int32(sign) * lost
	prompt := min(max(s.rec.Request.InputTokens-s.computed, 0), n)
	it.r.uncomputed -= int64(sign) * int64(prompt)
}

func (it *batchBuilder) giveDecode(i int32, s *sequence) {
	r := it.r
	s.given, s.grown = 1, false
	it.budget--
	it.decodes++
	length := r.cohort.computed(s)
	it.context += int64(length)
	number, end := r.lastToken(s)
	it.countGaps(number, end, 1)
	if r.space.caching {
		known := s.rec.Request.InputTokens + s.issued + int32(r.cohort.steps-s.joined) - 1 - r.tokensInFlight(i)
		r.register(s, min(length, known)/r.cfg.BlockSize)
	}
}

// Blocked implements [sched.View].
func (it *batchBuilder) Blocked(why sched.Cause) {
	if it.r.queue.len() == 0 {
		return
	}
	if it.blocked = why; it.r.pipe != nil && it.r.pipe.holds(it.r.queue.head()) {
		it.blocked = sched.HeldByPolicy
	}
}
