package model

// Chunk is a piece of one sequence's prefill that runs in an iteration.
type Chunk struct {
	New    int32 // tokens computed in this iteration
	Cached int32 // tokens of the sequence whose KV is already in the cache
}

// Batch is one forward pass in aggregate: what a step time depends on.
type Batch struct {
	// Decodes is the number of sequences that decode one token each.
	Decodes int
	// Context is the sum of the KV lengths of the decoding sequences, in tokens, each
	// including the token being written.
	Context int64
	// Drafts is the number of draft tokens that the decoding sequences verify beside the one token that
	// each decodes, in speculative decoding. Context includes them. They add rows to every product; attention
	// reads the KV of a sequence once for all its rows, which share it evenly. A batch with drafts is timed singly.
	Drafts int
	// SharedTokens counts the tokens of KV blocks that several running sequences reference, once
	// for each reference beyond the first. They are read from HBM only once.
	SharedTokens int64
	// Chunks are the prefill pieces, in batch order.
	Chunks []Chunk
	// Emit is the number of tokens that the output layer is evaluated for: the decodes, their drafts, and the chunks
	// that complete their prompt.
	Emit int
}

// decodeTokens is the number of tokens of the decoding sequences.
func (b *Batch) decodeTokens() int64 { return int64(b.Decodes) + int64(b.Drafts) }

// tiles is the number of query tiles of so many rows that a decoding sequence takes.
func (b *Batch) tiles(rows int64) int64 {
	if b.Drafts == 0 {
		return 1
	}
	each := (b.decodeTokens() + int64(b.Decodes) - 1) / int64(b.Decodes)
	return (each + rows - 1) / rows
}

// rows is a sum over the decoding sequences counted once for each of their tokens.
func (b *Batch) rows(sum int64) int64 {
	if b.Drafts == 0 || b.Decodes == 0 {
		return sum
	}
	each := (sum + int64(b.Decodes) - 1) / int64(b.Decodes)
	return saturate(sum, int64(b.Drafts), each)
}

// StepTimer gives the length of iterations. Implementations are immutable after construction
// and safe for concurrent use; they compute in integers, so that results are the same on every
// platform.
type StepTimer interface {
	// Span answers for a run of like iterations in which every decoding sequence gains one token
	// each time, so that Context grows by Decodes: iteration k < n takes first + k·slope
	// femtoseconds. n is at least 1, and 1 when the batch has chunks. first and slope are not
	// negative.
	Span(b *Batch) (first, slope int64, n int)
}

// Padder is a [StepTimer] that can tell what padding costs.
type Padder interface {
	StepTimer
	// GraphTokens is the size of the CUDA graph that runs a step of so many tokens; 0 where none does.
	GraphTokens(tokens int) int
	// Padding is how much longer a step takes, in femtoseconds, that is padded from so many tokens to so many, by
	// tokens that attend to nothing and issue nothing.
	Padding(from, to int) int64
}
