package engine

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/kv"
	"clifftop/workload"
)

// phase is where a sequence stands in its life on a replica.
type phase uint8

const (
	prefilling  phase = iota // running, and its known tokens are not all computed
	decoding                 // running, in the cohort: one token in each iteration
	speculating              // running, and decoding with drafts: each by itself
	finishing                // running, but its last token is on its way
	preempted                // in the queue again, its blocks lost
	departed                 // preempted when its last token was on its way
	loading                  // out of the queue, while its KV comes from elsewhere
	loaded                   // in the queue again, with blocks of its own
)

// sequence is a request that has been admitted to the running batch at least once.
//
// While it decodes nothing in it changes: what it has computed follows from the number of steps
// that the cohort made since it joined.
type sequence struct {
	// What a running sequence is asked for again and again stands in two cache lines.
	phase    phase
	lagging  bool // it decodes, but missed the last composition
	streamed bool // it counts as decoding: its first token since the last admission was delivered

	target     int32 // known tokens at the last admission
	registered int32 // leading blocks that are registered
	residue    int32 // it takes a new block at steps of this residue modulo the block size
	nextSame   int32 // neighbours among the sequences of its residue, in running order
	prevSame   int32
	slot       int32 // place of the admission among those alive, for ranks
	joined     int64 // cohort step at which it joined
	ends       int64 // cohort step at which its last token is issued
	serial     int64 // of the admission; orders the running batch
	issued     int32 // tokens produced by scheduled iterations; while decoding: when it joined the cohort
	output     int32 // tokens to produce: the request's, cut at the model's longest sequence

	blocks []int32 // with prefix caching
	prev   int32   // neighbours in the running batch
	next   int32

	rec event.Record

	firstPlace, lastPlace int32 // places of its first and last token among those of their iterations

	declared int32 // the most that the engine has to expect
	slots    int32 // tokens that it issues: one more than it produces where its end comes as a surprise
	over     bool  // its last token was delivered, but an iteration in flight still has a part of it

	computed int32 // tokens computed by scheduled iterations; while decoding: equals target
	reached  int32 // the most tokens that were ever computed
	reused   int32 // tokens found in the prefix cache at the last admission
	lostFrom int32 // those that it would have found too but for evictions
	lostTo   int32
	shared   int64          // while it decodes: the cohort's share when it joined, and what went to others only
	useless  int32          // tokens of its last iteration that were drafts of no use
	given    int32          // tokens given in the iteration being composed
	client   int32          // whose it is, where the order shares service among clients
	awaited  int32          // tokens of its answer that were in flight at the last admission, and still are
	loaded   int32          // tokens brought in from host memory or elsewhere for the last admission
	load     *load          // the last one
	lease    clock.Duration // how long its blocks are kept when it has ended
	hosted   int            // blocks in host memory
	swapped  bool           // it was swapped out while it decoded

	received int32 // tokens that its client had been sent when the link was lost

	// With speculative decoding.
	drafts   int32 // for its next iteration
	verified int32 // iterations that verified drafts, or might have
	rejected int32 // drafts of the last of them
	fresh    int32 // answer tokens of its last iteration

	joinBatch  int64      // iteration that completed its prefill
	beforeJoin int64      // iteration that issued its last token before the last admission
	chunkBatch int64      // iteration of its last prefill chunk
	lastBatch  int64      // last iteration that issued a token, when it is not decoding in step
	lastEnd    clock.Time // end of that iteration
	berth      int32      // while it decodes on a pipeline: where its cohort is

	blockCount int   // without prefix caching
	hole       int   // where its blocks begin in a contiguous pool
	windowed   int   // blocks charged for its windowed layers
	growing    bool  // it decodes, and that charge can grow
	grown      bool  // it has been given blocks in the iteration being composed
	reserved   int   // blocks that it holds ahead of need, in all; 0 for none
	covered    bool  // it decodes, and has room in them
	coverage   int   // blocks that it held when it was found to be
	booking    int   // blocks promised, in all, the charge for windowed layers included
	owed       int   // those of them that it does not hold; not kept while promising
	bookedNext bool  // it decodes, and the next block was promised
	refileAt   int64 // cohort step at which covered or promising ends
	blockHashes
	text   []workload.Segment // with a radix cache: its tokens, how many of them others may begin with,
	common int32              // and how far they are in the tree
	prefix kv.Prefix
}

// promptLeft is how many tokens of its prompt s, which runs, has not been given since its last admission.
func (s *sequence) promptLeft() int64 { return int64(max(0, s.rec.Request.InputTokens-s.computed)) }

// running reports whether s is in the running batch.
func (s *sequence) running() bool { return s.phase < preempted }

// slab keeps sequences at stable places and reuses them.
type slab struct {
	items []*sequence
	free  []int32
}

// at returns the sequence at a place.
func (s *slab) at(i int32) *sequence { return s.items[i] }

// take returns a free place.
func (s *slab) take() int32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	s.items = append(s.items, new(sequence))
	return int32(len(s.items) - 1)
}

func (s *slab) put(i int32) {
	q := s.items[i]
	blocks, keys, text := q.blocks[:0], q.keys, q.text[:0]
	*q = sequence{} // cleared in place; a literal with fields would be built elsewhere and copied
	q.blocks, q.keys, q.text = blocks, keys, text
	s.free = append(s.free, i)
}
