package model

import "fmt"

// Drafting is the step timer of speculative decoding with a drafter that runs on the GPU: an iteration of the model that
// verifies, and k forward passes of the one that drafts. The first of these goes over the same tokens as the iteration, so
// that the drafter's own KV cache is complete; each of the others is a decode of the sequences that have a token to
// go on from. N-gram lookups cost nothing, and need no Drafting.
//
// A step lasts T(b) + D(b) + (k-1)·D(e), with T and D the timers of the two, b the batch, and e a decode of
// its emitting sequences with their context. Prompts that the step completes count with the mean length of its chunks.
type Drafting struct {
	target, draft StepTimer
	passes        int64
}

var _ StepTimer = (*Drafting)(nil)

// NewDrafting returns the timer of a model that verifies k drafts, which another one makes.
func NewDrafting(target, draft StepTimer, k int) (*Drafting, error) {
	if k < 1 {
		return nil, fmt.Errorf("drafting: %d drafts (want 1 or more)", k)
	}
	return &Drafting{target, draft, int64(k)}, nil
}

// Span implements [StepTimer]. It promises single steps.
func (t *Drafting) Span(b *Batch) (first, slope int64, n int) {
	first, _, _ = t.target.Span(b)
	emitting := b.Emit - b.Drafts
	pass := *b
	pass.Emit = emitting
	drafting, _, _ := t.draft.Span(&pass)
	first = min(first+drafting, maxFemtos)
	if emitting > 0 && t.passes > 1 {
		next := Batch{Decodes: emitting, Context: b.Context + completed(b, emitting-b.Decodes), SharedTokens: b.SharedTokens, Emit: emitting}
		each, _, _ := t.draft.Span(&next)
		first = saturate(first, t.passes-1, each)
	}
	return first, 0, 1
}

// completed is about the context of so many chunks that complete their prompt.
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

// OneLayer is the deployment of a drafter that is one layer of the model, with its output layer: EAGLE's head, or a
// module for multi-token prediction. Its attention is full, and it is on one pipeline stage.
func (d *Deployment) OneLayer() *Deployment {
	one := *d
	one.LLM.Layers, one.LLM.FirstDenseLayers, one.LLM.WindowedLayers, one.LLM.SlidingWindow = 1, 0, 0, 0
	one.PipelineParallel = 1
	return &one
}
