package event

import (
	"clifftop/sim/clock"
)

// Span is a run of like iterations on one replica: the same sequences decode in each. Iterations with prefill chunks
// are reported one at a time.
type Span struct {
	clock.Progression
	// Plain means that RecomputedTokens, LostTokens, Drafts, Accepted, Discarded, the padding, SwappedBlocks,
	// SwapFemtos, Shared, EmptyBlocks and EmptyFemtos are 0, and that there are no Passages.
	Plain bool
	// Replica is the number of the replica in its fleet.
	Replica int
	// Wait is how long the GPU was idle between the previous iteration and iteration 0. The first inter-token gap is
	// longer by it.
	Wait clock.Duration
	// Decodes is the number of sequences that decode in each iteration. Each gains one token, or several with
	// speculative decoding, at the iteration's end, and the gap since its previous one is as long as the iteration. In
	// iteration 0 that holds for Gaps of them; the others are reported through Gap.
	Decodes, Gaps int
	// Delivery says when the clients get the output.
	Delivery Delivery
	// FirstTokens is the number of tokens produced at the iteration's end by sequences that completed a
	// prefill: first tokens, and the next tokens of those resumed after a preemption.
	FirstTokens int
	// PrefillTokens are prompt tokens computed for the first time in each iteration;
	// RecomputedTokens had been computed before a preemption.
	PrefillTokens, RecomputedTokens int
	// LostTokens are those of PrefillTokens that the prefix cache had evicted. See
	// [clifftop/sim/kv.RememberedEvictions] and, for a radix cache, [clifftop/sim/kv.RememberedLeaves].
	LostTokens int
	// Drafts are the draft tokens that each iteration verified with speculative decoding, in addition to those of the
	// decodes. Accepted are those that were right. They are produced too, except Discarded ones past the end of an
	// output.
	Drafts, Accepted, Discarded int
	// PaddedRows are padding rows that each iteration computed, with a context of PaddedContext
	// tokens in iteration 0 that grows by PaddedRows; PaddedTokens are the tokens by which chunks
	// were padded, and dummy tokens of a rank that iterates in lock step with others. They
	// cost time and are in no other count.
	PaddedRows, PaddedTokens int
	PaddedContext            int64
	// SwappedBlocks is the number of KV blocks copied to and from host memory, and SwapFemtos the part of
	// each iteration that the copies take, in femtoseconds.
	SwappedBlocks int
	SwapFemtos    int64
	// HostFemtos is the part of iteration 0 in which the GPU waits for the host, in femtoseconds. It grows by HostSlope
	// from each iteration to the next. HostSlope is negative if iterations grow longer than the host's work.
	HostFemtos, HostSlope int64
	// Carry is the remainder, in femtoseconds, of the time of the iterations before: see Share.
	Carry int64
	// Context and Shared are those of [clifftop/model.Batch] for iteration 0; Context grows by
	// Decodes from each iteration to the next.
	Context, Shared int64
	// UsedBlocks is the number of referenced KV blocks after scheduling the last iteration, and MostBlocks the largest
	// one of an iteration: blocks are released while iteration 0 runs.
	UsedBlocks, MostBlocks int
	// BlockFemtos is the integral of referenced KV blocks over the iterations, in
	// block-femtoseconds.
	BlockFemtos clock.Uint128
	// EmptyBlocks are those of UsedBlocks that are reserved and hold nothing yet, and EmptyFemtos is their integral.
	EmptyBlocks int
	EmptyFemtos clock.Uint128
	// Passages are the passages through the stages of a pipeline, in order; nil without a pipeline. The iteration is
	// then reported from the end of the one before it, or from its composition, to its own end, so that spans do not
	// overlap, and each span has one iteration. The passages begin earlier if others were in flight.
	Passages []Passage
}

// Delivery is the gaps between the chunks that clients get, at the ends of the iterations of a span. A chunk is what
// the front end sends at once. Each gap is counted with the iteration whose output brings its last chunk into the front
// end's queue.
type Delivery struct {
	// First gaps in iteration 0, and Later ones in each further iteration, are as long as the iteration. Others are the
	// other gaps in iteration 0.
	First, Later int
	Others       []ChunkGaps
	// Cycle, if it is not 0, says that the front end is never idle: it takes Each for a chunk, and Cycle to come back
	// to the same request. It has begun with a chunk at the instant Turn.
	Cycle, Each clock.Duration
	Turn        clock.Time
}

// ChunkGaps is N gaps between chunks of this length.
type ChunkGaps struct {
	Length clock.Duration
	N      int
}

// Cycles returns the number of gaps as long as Delivery.Cycle: the number of chunks with which the front end has begun
// between the end of the iteration before the span and the end of its last one.
func (s *Span) Cycles() uint64 {
	d := &s.Delivery
	if d.Cycle == 0 {
		return 0
	}
	return uint64(d.begun(s.End(s.N)) - d.begun(s.Start.Add(-s.Wait)))
}

// begun returns the number of chunks with which the front end begins before an instant, from Turn on. It is negative
// for earlier instants.
func (d *Delivery) begun(at clock.Time) int64 {
	n := int64(at-d.Turn) / int64(d.Each)
	if d.Turn+clock.Time(n*int64(d.Each)) < at {
		n++
	}
	return n
}

// Passage is an iteration in a stage of a pipeline, which works for Femtos femtoseconds from Enter and a remainder of
// femtoseconds on.
type Passage struct {
	Enter             clock.Time
	Remainder, Femtos int64
}

// Leave is the end of the passage.
func (p *Passage) Leave() clock.Time {
	return p.Enter + clock.Time((p.Remainder+p.Femtos)/clock.FemtosPerPico)
}

// passing is the time of all passages.
func (s *Span) passing() (femtos int64) {
	for i := range s.Passages {
		femtos += s.Passages[i].Femtos
	}
	return femtos
}

// Output is the number of output tokens that an iteration produces.
func (s *Span) Output() int { return s.Decodes + s.FirstTokens + s.Accepted - s.Discarded }

// Computed is the number of tokens that an iteration computes, without padding.
func (s *Span) Computed() int {
	return s.Decodes + s.Drafts + s.PrefillTokens + s.RecomputedTokens
}

// Rejected is the number of rejected drafts among them.
func (s *Span) Rejected() int { return s.Drafts - s.Accepted + s.Discarded }
