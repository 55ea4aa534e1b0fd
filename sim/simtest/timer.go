package simtest

import (
	"slices"
	"strconv"

	"clifftop/model"
)

// Affine is a step timer that is linear in what the batch holds. The coefficients are in femtoseconds.
type Affine struct {
	Base       int64 // of any iteration
	PerSeq     int64 // for each decode and each chunk
	PerEmit    int64 // for each token produced
	PerToken   int64 // for each token of a chunk
	PerPair    int64 // for each pair of a chunk's token and a token cached before the chunk
	PerContext int64 // for each token of the decodes' context that is not shared
	PerSpread  int64 // for each token of the contexts' standard deviation
	PerImage   int64 // for each image that is encoded, and for each of its tokens
}

var (
	_ model.StepTimer = Affine{}
	_ model.StepTimer = Bumpy{}
)

// Span implements [model.StepTimer].
func (a Affine) Span(b *model.Batch) (first, slope int64, n int) {
	first = a.Base + a.PerSeq*int64(b.Decodes+len(b.Chunks)) + a.PerEmit*int64(b.Emit)
	for _, c := range b.Chunks {
		first += a.PerToken*int64(c.New) + a.PerPair*int64(c.New)*int64(c.Cached)
		first += a.PerImage * int64(c.Images) * int64(1+c.ImageTokens)
	}
	first += a.PerContext*max(0, b.Context-b.SharedTokens) + a.PerSpread*b.ContextDeviation
	if len(b.Chunks) > 0 || b.Decodes == 0 || b.Context < b.SharedTokens {
		return first, 0, 1
	}
	return first, a.PerContext * int64(b.Decodes), 1 << 20
}

// Bumpy is a step timer with breakpoints: the context is split into pieces of equal length, and the time of an
// iteration is linear within a piece and jumps between them. The number of decodes is padded to a multiple. A longer
// context can take less time.
type Bumpy struct {
	Affine
	// Piece is the number of tokens of context in a piece.
	Piece int64
	// Pieces repeat: piece number k is like k modulo their number.
	Pieces []Bump
	// Padding is the number of decodes that are padded to a multiple of; at least 1.
	Padding int
}

// Bump is one piece of the context.
type Bump struct {
	Base       int64 // added to the length, femtoseconds
	PerContext int64 // for each token of context beyond the beginning of the piece
	Single     bool  // spans have one iteration
}

// Span implements [model.StepTimer].
func (t Bumpy) Span(b *model.Batch) (first, slope int64, n int) {
	padded := *b
	padded.Decodes = (b.Decodes + t.Padding - 1) / t.Padding * t.Padding
	first, _, n = t.Affine.Span(&padded)
	piece, offset := b.Context/t.Piece, b.Context%t.Piece
	bump := t.Pieces[piece%int64(len(t.Pieces))]
	first += bump.Base + bump.PerContext*offset
	if n == 1 || bump.Single {
		return first, 0, 1
	}
	// The last iteration of the span is the last that begins in the piece.
	n = min(n, int((t.Piece-1-offset)/int64(b.Decodes))+1)
	return first, (t.PerContext + bump.PerContext) * int64(b.Decodes), n
}

// Staged is a timer that splits a step by weights, one for each stage of a pipeline.
type Staged struct {
	model.StepTimer
	Weights []int64
	Hop     int64 // femtoseconds from a stage to the next, as far as the step is long enough
}

// Stages implements [model.StageTimer].
func (t Staged) Stages(b *model.Batch, total int64, to []int64) (hop int64) {
	hops := int64(len(to) - 1)
	hop = min(t.Hop, total/hops)
	total -= hops * hop
	sum := int64(0)
	for _, w := range t.Weights {
		sum += w
	}
	rest := total
	for i := range to {
		to[i] = total / sum * t.Weights[i]
		rest -= to[i]
	}
	to[len(to)-1] += rest
	return hop
}

// staged reads how a pipeline splits the steps of a timer.
func staged(args *arguments, stages int, timer model.StepTimer, hop int64) model.StepTimer {
	weights := args.values("weights")
	if weights == nil && hop == 0 {
		return timer
	}
	s := Staged{StepTimer: timer, Hop: hop}
	for _, text := range weights {
		w, err := strconv.ParseInt(text, 10, 64)
		if err != nil || w < 1 {
			args.fault("weights: %q is not one", text)
		}
		s.Weights = append(s.Weights, w)
	}
	if weights == nil {
		s.Weights = slices.Repeat([]int64{1}, stages)
	}
	if len(s.Weights) != stages {
		args.fault("weights: %d of %d stages", len(s.Weights), stages)
	}
	return s
}
