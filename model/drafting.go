package model

import "fmt"

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
			SharedTokens: b.SharedTokens, Emit: emitting}
		each, _, _ := t.draft.Span(&next)
		first = saturate(first, t.passes-1, each)
	}
	return first, 0, 1
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
