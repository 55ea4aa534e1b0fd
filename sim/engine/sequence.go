package engine

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/queue"
)

// phase is the state of a sequence in the engine.
type phase uint8

const (
	prefilling  phase = iota // running; some of its known tokens are not computed
	decoding                 // running, in the cohort: one token in each iteration
	speculating              // running, decoding with drafts: outside the cohort
	finishing                // running; its last token is in flight
	preempted                // back in the queue without blocks
	departed                 // preempted while its last token was in flight
	loading                  // outside the queue while its KV is being loaded
	loaded                   // back in the queue with loaded blocks
)

// sequence is a request that has been admitted to the running batch at least once.
//
// Nothing in it changes while it decodes: its computed tokens follow from the number of steps that the cohort has made
// since the sequence joined. The fields that the hot path reads come first and fill two cache lines.
type sequence struct {
	phase   phase
	lagging bool // it decodes, but missed the last step of the cohort
	number  int32

	computedTokens
	outputTokens
	membership
	batchPlace
	heldBlocks

	rec event.Record
	iterationNumbers
	scheduledPart
	reservation
	prefixMatch
	draftState
	externalKV

	shared int64 // while it decodes: the cohort's share when it joined, plus the share of steps that it had no part in
	client int32 // index of its client in the fair queue

	received int32 // tokens that the client had received when the link was lost
	returned int64 // when it last went to the tail of the queue; 0 is never
}

// computedTokens counts the tokens of a sequence whose KV is computed.
type computedTokens struct {
	target   int32 // known tokens at the last admission
	computed int32 // tokens computed by scheduled iterations; while decoding: equals target
	reached  int32 // the largest value of computed so far
	awaited  int32 // output tokens that were in flight at the last admission and still are
}

// outputTokens counts the output tokens of a sequence. Which of them are in flight is not stored: it follows from the
// iterations in flight, see [iterationRing.emits].
type outputTokens struct {
	issued   int32 // tokens produced by scheduled iterations; while decoding: their number when it joined the cohort
	output   int32 // tokens to produce: the request's output, limited by the maximum model length
	declared int32 // the maximum that the engine has to expect
	slots    int32 // tokens to issue: one more than output where the engine cannot predict the end
}

// membership is the place of a sequence in a cohort while it decodes.
type membership struct {
	joined   int64 // cohort step at which it joined
	ends     int64 // cohort step at which its last token is issued
	residue  int32 // it takes a new block at steps of this residue modulo the block size
	nextSame int32 // neighbours among the members of the same residue, in running order
	prevSame int32
	berth    int32 // with pipeline parallelism: the berth of its cohort
}

// batchPlace is the place of a sequence in the running batch.
type batchPlace struct {
	serial   int64 // number of its last admission; orders the running batch
	prev     int32 // neighbours in the running batch
	next     int32
	streamed bool // it counts as decoding: its first token since the last admission was delivered
}

// heldBlocks is a number of KV blocks that a sequence holds.
type heldBlocks struct {
	blockCount int // without names, while it does not decode
	windowed   int // charged for sliding-window layers
}

// iterationNumbers are the numbers of the iterations that computed or issued tokens of a sequence.
type iterationNumbers struct {
	joinBatch   int64      // iteration that completed its prefill
	beforeJoin  int64      // iteration that issued its last token before the last admission
	chunkBatch  int64      // iteration of its last prefill chunk
	chunkBefore int64      // iteration of the prefill chunk before
	lastBatch   int64      // last iteration that issued a token; not kept while it decodes in step with the cohort
	lastEnd     clock.Time // end of that iteration
}

// scheduledPart is the part of a sequence in the iteration that is being composed.
type scheduledPart struct {
	given int32 // tokens
	grown bool  // blocks were allocated for tokens that were not given yet
}

// reservation is the KV blocks that a sequence holds or has booked ahead of need, and how the cohort counts them.
type reservation struct {
	reserved   int   // blocks held ahead of need, in all; 0 for none
	coverage   int   // value of reserved when covered was set
	booking    int   // blocks booked in all, the charge for sliding-window layers included
	owed       int   // booked blocks that it does not hold; not kept while bookedNext
	refileAt   int64 // cohort step at which covered or bookedNext ends
	covered    bool  // it decodes, and the next token fits into its reserved blocks
	bookedNext bool  // it decodes, and the next block is booked
	growing    bool  // it decodes, and the charge for sliding-window layers can still grow
}

// prefixMatch is the result of the prefix cache lookup at the last admission of a sequence.
type prefixMatch struct {
	reused           int32 // cached tokens
	lostFrom, lostTo int32 // range of tokens that would have been cached too but for evictions
}

// draftState is the progress of a sequence that decodes with drafts.
type draftState struct {
	drafts      int32 // drafts for its next iteration
	verified    int32 // iterations in which drafts were verified, those without a proposed draft included
	fresh       int32 // tokens that its last iteration issues
	padding     int32 // dummy drafts in the iteration that admitted it, which has not been processed
	dummies     int32 // those of them that are computed
	undelivered int32 // tokens that iterations in flight issue
	unseen      int32 // tokens that iterations in flight were scheduled to issue and do not
	rejecting   int32 // drafts that iterations in flight reject
}

// externalKV is the KV of a sequence outside the pool, or on its way there.
type externalKV struct {
	load    int64 // the number of the last one, or 0
	hosted  int   // blocks in host memory
	loaded  int32 // tokens brought in from host memory, a tier or another engine for the last admission
	pulled  bool  // another engine had what the last load brought
	swapped bool  // it was swapped out while it decoded
}

// promptLeft returns the number of prompt tokens of s, which runs, that it was not given since its last admission.
func (s *sequence) promptLeft() int64 { return int64(max(0, s.rec.Request.InputTokens-s.computed)) }

// running reports whether s is in the running batch.
func (s *sequence) running() bool { return s.phase < preempted }

// known returns how many of n tokens, beginning with token from, were computed before, and how many of the other ones
// were evicted from the prefix cache.
func (s *sequence) known(from, n int32) (again, lost int32) {
	again = min(max(s.reached-from, 0), n)
	if s.lostTo > 0 {
		lost = max(0, min(from+n, s.lostTo)-max(from+again, s.lostFrom))
	}
	return again, lost
}

// slab stores sequences at stable indices and reuses them.
type slab struct {
	items []*sequence
	free  []int32
}

// at returns the sequence with an index.
func (s *slab) at(i int32) *sequence { return s.items[i] }

// take returns a free index.
func (s *slab) take() int32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	i := int32(len(s.items))
	s.items = append(s.items, &sequence{number: i})
	return i
}

// put frees an index.
func (s *slab) put(i int32) {
	q := s.items[i]
	*q = sequence{} // cleared in place; a literal with fields would be built elsewhere and copied
	q.number = i
	s.free = append(s.free, i)
}

// sortBySerial brings a list of sequences into running order.
func (s *slab) sortBySerial(list []int32) {
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && s.at(list[j]).serial < s.at(list[j-1]).serial; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

// known returns the number of known tokens of a request in the queue: its prompt and the output so far.
func (s *slab) known(w *queue.Waiting) int32 {
	if w.Seq == none {
		return w.Request.InputTokens
	}
	return w.Request.InputTokens + s.at(w.Seq).issued
}
