package engine

import (
	"math"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/sched"
)

// batchBuilder builds the next iteration: it is the [sched.View] that the policy sees and acts through. Each part of it
// implements one or two of the interfaces of the view, or one way of giving tokens, and has the state for that. All
// parts add to one composition.
type batchBuilder struct {
	composition
	padding
	prefiller
	batchView
	queueView
	kvAllocator
	cohortDecoder
	draftVerifier

	preempted int     // sequences preempted in it
	victims   []int64 // their requests, and those of empty compositions before it
	swaps     []int64 // the requests among them that were swapped out
	loads     int     // requests for which loading began
	joined    int     // sequences that joined the cohort at its end
	walked    bool    // the sequences with output were listed one by one
}

var _ sched.View = (*batchBuilder)(nil)

// init connects the parts with the engine.
func (it *batchBuilder) init(r *Engine) {
	c := &it.composition
	c.r = r
	it.prefiller.composition, it.batchView.composition, it.queueView.composition = c, c, c
	it.kvAllocator.composition, it.cohortDecoder.composition, it.draftVerifier.composition = c, c, c
}

// begin begins an empty composition of the iteration with a number.
func (it *batchBuilder) begin(number int64) {
	it.r.queue.Restore()
	it.r.space.refile()
	it.r.space.cache.Compose()
	it.composition.begin(number)
	it.padRows, it.padTokens, it.padContext, it.padTo = 0, 0, 0, 0
	it.chunks, it.chunkSeqs = it.chunks[:0], it.chunkSeqs[:0]
	it.prefill, it.recomputed, it.lost = 0, 0, 0
	it.looked, it.blocked = false, sched.NotBlocked
	it.mixed, it.missed = false, it.missed[:0]
	it.drafts, it.accepted, it.discarded, it.surplus, it.behind = 0, 0, 0, 0, 0
	it.preempted, it.loads, it.joined, it.walked = 0, 0, 0, false
	if it.r.fair != nil {
		it.r.fair.Begin(it.r.cohort.steps, it.r.running.clients)
	}
}

// plain reports whether the iteration consists of the step of the cohort and nothing else.
func (it *batchBuilder) plain() bool {
	return !it.slow && it.decodes > 0 && len(it.chunks) == 0 && it.preempted == 0 && it.loads == 0 &&
		it.r.space.moved == 0 && len(it.current.verified) == 0
}

// Now implements [sched.Iteration].
func (it *batchBuilder) Now() clock.Time { return it.r.now }

// Budget implements [sched.Iteration].
func (it *batchBuilder) Budget() int32 { return max(0, it.budget-it.r.cfg.Speculative.Slots) }

// DecodeSteps implements [sched.Iteration].
func (it *batchBuilder) DecodeSteps() int64 { return it.r.gpu.decodeSteps }

// Grow implements [sched.Decoding].
func (it *batchBuilder) Grow(i sched.Seq, n int32) bool {
	r := it.r
	s := r.seqs.at(int32(i))
	r.space.Settle()
	computed := s.computed
	if s.phase == decoding {
		if !it.stepped {
			it.goSlow()
		}
		// The step is counted, but the token is not given yet.
		computed = r.cohort.computed(s) - 1
	}
	return it.growTo(int32(i), s, computed, n, r.cfg.slots(computed+n))
}

// Give implements [sched.Decoding].
func (it *batchBuilder) Give(i sched.Seq, n int32) {
	s := it.r.seqs.at(int32(i))
	switch s.phase {
	case decoding:
		it.giveDecode(int32(i), s)
	case speculating:
		it.giveDrafts(int32(i), s, n)
	default:
		it.givePrefill(int32(i), s, n)
	}
}

// composition is the iteration that is being composed: its sums, and how the cohort takes part in it.
type composition struct {
	r       *Engine
	current *iteration
	serials int64 // admissions before it

	asked   bool // the policy has asked for something that changes when a sequence leaves
	stepped bool // the step of the cohort is counted
	slow    bool // and its members are given their tokens one by one

	stepBlocks int // blocks that the step takes

	budget  int32  // tokens that it can still take
	decodes int    // sequences that decode
	resumed int    // sequences that decode again after a swap; they are in current.firsts
	context int64  // computed tokens of the sequences that decode
	squares uint64 // Σ of their squares, modulo 2⁶⁴
	tokenGaps
}

// begin empties the composition.
func (c *composition) begin(number int64) {
	r := c.r
	c.current = r.inFlight.next()
	c.current.clear()
	c.current.number = number
	c.serials = r.running.serials
	c.asked, c.stepped, c.slow, c.stepBlocks = false, false, false, 0
	c.budget = int32(min(r.cfg.MaxNumBatchedTokens, math.MaxInt32))
	c.decodes, c.resumed, c.context, c.squares = 0, 0, 0, 0
	c.gaps, c.late, c.last = 0, c.late[:0], number-1
	if r.pipe != nil {
		c.last = noIteration
	}
}

// hasToken reports whether s, which decodes, gets a token in this iteration.
func (c *composition) hasToken(s *sequence) bool { return c.stepped && (s.given > 0 || !c.slow) }

// computed returns the number of computed tokens of s before this iteration.
func (c *composition) computed(s *sequence) int32 {
	if s.phase != decoding {
		return s.computed - s.given
	}
	n := s.target + int32(c.r.cohortOf(s).steps-s.joined)
	if c.stepped && !c.r.inOtherCohort(s) {
		n--
	}
	return n
}

// generated returns the number of output tokens of s before this iteration.
func (c *composition) generated(s *sequence) int32 {
	n := s.issued + s.unseen
	switch {
	case s.phase == decoding && s.joinBatch < c.current.number:
		n += int32(c.r.cohortOf(s).steps - s.joined)
		if c.stepped && !c.r.inOtherCohort(s) {
			n--
		}
	case s.joinBatch == c.current.number:
		n--
	}
	return n
}

// first returns the first running sequence, and notes that the policy depends on it.
func (c *composition) first() sched.Seq {
	c.asked = true
	return sched.Seq(c.r.running.first)
}

// takeBackFirst removes s from the sequences that produce their first token since their admission.
func (c *composition) takeBackFirst(i int32, s *sequence) {
	c.current.firsts = without(c.current.firsts, i)
	s.joinBatch = math.MaxInt64
}

// takeBackToken takes back the token of s, which left the cohort or was resumed in this iteration.
func (c *composition) takeBackToken(s *sequence) {
	c.budget++
	c.decodes--
	c.context -= int64(s.computed)
	c.squares -= square(s.computed)
	c.countGaps(s.lastBatch, s.lastEnd, -1)
	s.computed--
	s.issued--
}

// prefiller gives tokens to sequences in prefill.
type prefiller struct {
	*composition
	chunks     []model.Chunk
	chunkSeqs  []int32 // their sequences
	prefill    int     // tokens that are computed for the first time since the request arrived
	recomputed int     // tokens that were computed before
	lost       int     // tokens of prefill that were evicted from the prefix cache
}

// givePrefill gives s, which is in prefill, n tokens.
func (p *prefiller) givePrefill(i int32, s *sequence, n int32) {
	r := p.r
	s.given, s.grown = n, false
	p.budget -= n + p.r.cfg.Speculative.Slots
	x := &s.rec.Request.Images
	p.chunks = append(p.chunks, model.Chunk{New: n, Cached: s.computed, Images: x.In(s.computed, n),
		ImageTokens: x.Tokens})
	p.chunkSeqs = append(p.chunkSeqs, i)
	p.countPrefill(s, n, 1)
	s.computed += n
	s.chunkBefore, s.chunkBatch = s.chunkBatch, p.current.number
	r.space.cache.Register(i, min(s.computed, s.target-s.awaited))
	r.space.kind.Tree.Gave(&p.current.chunks, i, s.computed, s.computed == s.target)
	if s.computed < s.target {
		return
	}
	s.joinBatch = p.current.number
	if s.issued > 0 {
		p.countLate(s.lastEnd, 1)
	}
	s.issued++
	r.running.prefills = without(r.running.prefills, i)
	p.current.firsts = append(p.current.firsts, i)
}

// takeBackChunk takes back the chunk that s got in this iteration.
func (p *prefiller) takeBackChunk(i int32, s *sequence) {
	for k, j := range p.chunkSeqs {
		if j == i {
			p.chunks = append(p.chunks[:k], p.chunks[k+1:]...)
			p.chunkSeqs = append(p.chunkSeqs[:k], p.chunkSeqs[k+1:]...)
			break
		}
	}
	p.budget += s.given + p.r.cfg.Speculative.Slots
	if s.computed == s.target {
		p.takeBackFirst(i, s)
		if s.issued--; s.issued > 0 {
			p.countLate(s.lastEnd, -1)
		}
	}
	s.computed -= s.given
	s.chunkBatch = s.chunkBefore
	p.countPrefill(s, s.given, -1)
}

// countPrefill counts n tokens of s, after its computed ones, as new or recomputed. With sign -1 it takes the count
// back.
func (p *prefiller) countPrefill(s *sequence, n int32, sign int) {
	again, lost := s.known(s.computed, n)
	p.recomputed += sign * int(again)
	p.prefill += sign * int(n-again)
	p.lost += sign * int(lost)
	s.rec.RecomputedTokens += int32(sign) * again
	s.rec.LostTokens += int32(sign) * lost
	prompt := min(max(s.rec.Request.InputTokens-s.computed, 0), n)
	p.r.uncomputed -= int64(sign) * int64(prompt)
}
