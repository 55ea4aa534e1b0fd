package model

import (
	"math"
	"math/bits"
)

// Chunk is a part of one sequence's prefill that runs in an iteration.
type Chunk struct {
	New    int32 // tokens computed in this iteration
	Cached int32 // tokens of the sequence whose KV is already in the cache
	// Images is the number of images that the encoder computes in this iteration, and ImageTokens the tokens of each.
	Images, ImageTokens int32
}

// Batch aggregates one forward pass: everything that a step time depends on.
type Batch struct {
	// Decodes is the number of sequences that decode one token each.
	Decodes int
	// Context is the sum of the KV lengths of the decoding sequences in tokens, each including the token being
	// written.
	Context int64
	// ContextDeviation is the standard deviation of these KV lengths in tokens, rounded; 0 if all are equal. It stays
	// the same while each sequence gains one token per iteration. See [ContextDeviation].
	ContextDeviation int64
	// Drafts is the number of draft tokens that the decoding sequences verify in addition to the one token that
	// each decodes (speculative decoding). Context includes them. They add rows to every matrix product; attention
	// reads the KV of a sequence once for all its rows, assumed equal among sequences. A batch with drafts is timed
	// as a single step.
	Drafts int
	// SharedTokens counts the tokens of KV blocks that several running sequences reference, once per reference
	// beyond the first. They are read from HBM only once.
	SharedTokens int64
	// Chunks are the prefill chunks in batch order.
	Chunks []Chunk
	// Emit is the number of tokens for which the output layer runs: the decodes, their drafts, and the chunks that
	// complete a prompt.
	Emit int
	// GroupTokens is the number of tokens in this step of all data-parallel ranks that share the experts, with
	// padding and dummy batches. BusiestTokens is that of the rank with the most. 0 means that all ranks have as many
	// as this one.
	GroupTokens, BusiestTokens int64
}

// ReadsDeviation reports whether a step timer may read the ContextDeviation of batches.
func ReadsDeviation(t StepTimer) bool {
	k, ok := t.(*Kernels)
	return !ok || k.unequal != nil
}

// ContextDeviation returns the rounded standard deviation of n lengths from their sum and the sum of their squares. It
// returns 0 if the sum is 2³² or more, because the sum of squares may then overflow.
func ContextDeviation(n int, sum int64, squares uint64) int64 {
	if n < 2 || sum>>32 != 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), squares)
	lo, borrow := bits.Sub64(lo, uint64(sum*sum), 0)
	variance := float64(float64(hi-borrow)*(1<<64)) + float64(lo) // times n²
	return int64(math.Round(math.Sqrt(variance) / float64(n)))
}

func (b *Batch) decodeTokens() int64 { return int64(b.Decodes) + int64(b.Drafts) }

// tiles returns the number of query tiles of the given number of rows that a decoding sequence takes.
func (b *Batch) tiles(rows int64) int64 {
	if b.Drafts == 0 || b.Decodes == 0 {
		return 1
	}
	each := (b.decodeTokens() + int64(b.Decodes) - 1) / int64(b.Decodes)
	return (each + rows - 1) / rows
}

// rows scales a sum over the decoding sequences by their tokens per sequence.
func (b *Batch) rows(sum int64) int64 {
	if b.Drafts == 0 || b.Decodes == 0 {
		return sum
	}
	each := (sum + int64(b.Decodes) - 1) / int64(b.Decodes)
	return saturate(sum, int64(b.Drafts), each)
}

// StepTimer gives the time of iterations. Implementations are immutable after construction and safe for concurrent
// use. They compute in integers, so that results are the same on all platforms.
type StepTimer interface {
	// Span returns the times of consecutive iterations in which each decoding sequence gains one token per
	// iteration, so that Context grows by Decodes: iteration k < n takes first + k·slope femtoseconds. n is at
	// least 1, and 1 if the batch has chunks. first and slope are not negative.
	Span(b *Batch) (first, slope int64, n int)
}

// Padder is a [StepTimer] that knows the cost of padding.
type Padder interface {
	StepTimer
	// GraphTokens returns the size in tokens of the CUDA graph that runs a step with the given number of tokens; 0
	// if none does.
	GraphTokens(tokens int) int
	// RankTokens returns the number of tokens to which data-parallel ranks are padded if the busiest one has the given
	// number; 0 if they are not.
	RankTokens(busiest int) int
	// Padding returns the additional femtoseconds of a step that is padded from one number of tokens to another.
	// Padding tokens have no attention and no output. They do not change GroupTokens and BusiestTokens of a batch,
	// which include them.
	Padding(from, to int) int64
}
