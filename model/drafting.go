package model

import (
	"fmt"
	"math"
	"math/bits"
)

// Drafting is the step timer of speculative decoding with a draft model on the GPU: one iteration of the target
// model, which verifies, and k forward passes of the draft model. The first pass processes the same tokens as the
// iteration, so that the draft model's KV cache is complete; each of the others decodes one token per emitting
// sequence. N-gram lookup costs nothing and needs no Drafting.
//
// A step takes T(b) + D(b) + (k-1)·D(e), where T and D are the two timers, b the batch, and e a decode of its
// emitting sequences with their context. Prompts that the step completes count with the mean length of its chunks.
type Drafting struct {
	target, draft StepTimer
	passes        int64
}

var _ StepTimer = (*Drafting)(nil)

// NewDrafting returns the timer of a target model that verifies k drafts of a draft model. k must be at least 1.
func NewDrafting(target, draft StepTimer, k int) (*Drafting, error) {
	if k < 1 {
		return nil, fmt.Errorf("drafting: %d drafts (want 1 or more)", k)
	}
	return &Drafting{target, draft, int64(k)}, nil
}

// Span implements [StepTimer]. It returns single steps.
func (t *Drafting) Span(b *Batch) (first, slope int64, n int) {
	first, _, _ = t.target.Span(b)
	emitting := b.Emit - b.Drafts
	pass := *b
	pass.Emit = emitting
	drafting, _, _ := t.draft.Span(&pass)
	first = min(first+drafting, maxFemtos)
	if emitting > 0 && t.passes > 1 {
		next := Batch{Decodes: emitting, Context: b.Context + completed(b, emitting-b.Decodes),
			ContextDeviation: b.ContextDeviation, SharedTokens: b.SharedTokens, Emit: emitting}
		each, _, _ := t.draft.Span(&next)
		first = saturate(first, t.passes-1, each)
	}
	return first, 0, 1
}

// MeanDrafting is the step timer of speculative decoding in the mean, for engines that give every decoding sequence
// one token in an iteration. A step stands for the part of a drafted iteration that yields one token per sequence: with
// Y tokens per sequence and iteration, decodes take (T + D)/Y, where T + D is the time of [Drafting]. Prompts in the
// step take their whole time on top of that: a chunk is computed once, whatever the drafts.
//
// Sums over a run agree with those of single drafts. The variation of the yield, and the gaps between the chunks of
// accepted tokens, are not there.
type MeanDrafting struct {
	drafting *Drafting
	drafts   int
	yield    fraction // in 2^-fractionBits tokens
}

var _ StepTimer = (*MeanDrafting)(nil)

// NewMeanDrafting returns the timer of a target model that verifies k drafts of a draft model, of which
// [ExpectedYield] tells the yield. k must be at least 1.
func NewMeanDrafting(target, draft StepTimer, k int, acceptance []float64) (*MeanDrafting, error) {
	d, err := NewDrafting(target, draft, k)
	if err != nil {
		return nil, err
	}
	yield := ExpectedYield(k, acceptance)
	if !(yield >= 1 && yield <= float64(k+1)) {
		return nil, fmt.Errorf("drafting: acceptance %v is not allowed (want probabilities)", acceptance)
	}
	return &MeanDrafting{d, k, fraction(math.Round(yield * (1 << fractionBits)))}, nil
}

// ExpectedYield returns the mean number of tokens of an iteration with k drafts: 1 + a1 + a1·a2 + …, where a_i is the
// probability that draft i is accepted if those before it were. The last of acceptance stands for the drafts beyond.
func ExpectedYield(k int, acceptance []float64) float64 {
	yield, all := 1.0, 1.0
	for i := 0; i < k && len(acceptance) > 0; i++ {
		all = float64(all * acceptance[min(i, len(acceptance)-1)])
		yield += all
	}
	return yield
}

// Span implements [StepTimer]. It returns single steps.
func (t *MeanDrafting) Span(b *Batch) (first, slope int64, n int) {
	if b.Decodes == 0 {
		return t.drafting.Span(b)
	}
	decodes := *b
	decodes.Chunks, decodes.Drafts = nil, t.drafts*b.Decodes
	decodes.Context += int64(decodes.Drafts)
	decodes.Emit = b.Decodes + decodes.Drafts
	decodes.ofGroup(b)
	alone, _, _ := t.drafting.Span(&decodes)
	first = t.perToken(alone)
	if len(b.Chunks) > 0 {
		mixed := decodes
		mixed.Chunks, mixed.Emit = b.Chunks, b.Emit+decodes.Drafts
		mixed.ofGroup(b)
		whole, _, _ := t.drafting.Span(&mixed)
		first = min(first+max(0, whole-alone), maxFemtos)
	}
	return first, 0, 1
}

// ofGroup scales the tokens of the ranks of a batch to those of b, from which it was made: other ranks have as many
// times the tokens of this one as before.
func (b *Batch) ofGroup(from *Batch) {
	own := from.tokens()
	if from.GroupTokens == 0 || own == 0 {
		return
	}
	b.GroupTokens = portion(from.GroupTokens, int(b.tokens()), int(own))
	b.BusiestTokens = portion(from.BusiestTokens, int(b.tokens()), int(own))
}

// perToken divides a time by the yield.
func (t *MeanDrafting) perToken(femtos int64) int64 {
	hi, lo := bits.Mul64(uint64(femtos), 1<<fractionBits)
	q, _ := bits.Div64(hi, lo, uint64(t.yield))
	return max(1, int64(q))
}

// completed estimates the summed context of the given number of chunks that complete their prompt.
func completed(b *Batch, chunks int) int64 {
	if len(b.Chunks) == 0 {
		return 0
	}
	sum := int64(0)
	for _, c := range b.Chunks {
		sum += int64(c.New) + int64(c.Cached)
	}
	return sum / int64(len(b.Chunks)) * int64(chunks)
}

// DrafterMemory is the memory of a drafter on one GPU, in bytes. Each block of the KV pool holds its KV too.
type DrafterMemory struct {
	Weights    float64
	KVPerToken int64
}

// AsDrafter returns the memory that the deployment takes as a draft model.
func (d *Deployment) AsDrafter() DrafterMemory {
	return DrafterMemory{d.WeightBytesPerRank(), d.KVGroups().PoolBytesPerToken()}
}

// LayerAsDrafter returns the memory of one more layer: an EAGLE head or a multi-token prediction module in the model's
// format, which shares the embedding and the output layer with the model.
func (d *Deployment) LayerAsDrafter() DrafterMemory {
	all := *d
	all.PipelineParallel = 1
	one := all.OneLayer()
	weights := one.mixerBytes() + 4*float64(all.LLM.Hidden) // and two norms
	if all.LLM.Experts > 0 {
		weights += all.moeLayerBytes()
	} else {
		weights += all.denseLayerBytes()
	}
	return DrafterMemory{weights, one.KVGroups().PoolBytesPerToken()}
}

// OneLayer returns the deployment of a draft model with one layer and the output layer of the model: an EAGLE head
// or a multi-token prediction module. It has full attention and one pipeline stage.
func (d *Deployment) OneLayer() *Deployment {
	one := *d
	one.LLM.Layers, one.LLM.DenseLayers, one.LLM.MixerOnlyLayers, one.LLM.Mixers = 1, 0, 0, nil
	for _, x := range d.LLM.Mixers {
		if x.Kind == Attention && x.Window == 0 {
			x.Layers, x.SharedKV = 1, 0
			one.LLM.Mixers = []Mixer{x}
			break
		}
	}
	one.PipelineParallel = 1
	return &one
}
