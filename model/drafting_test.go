package model_test

import (
	"math"
	"testing"

	"clifftop/model"
)

// TestDrafts compares the cost of a verified token with few and with many sequences. With few, an iteration is bound by
// reading the weights, and drafts cost almost nothing. With many it is bound by compute.
func TestDrafts(t *testing.T) {
	d := deploy(t, "llama-3.1-8b", "h100-sxm", model.Options{})
	k, err := model.NewKernels(d, model.KernelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const drafts, context = 3, 500
	length := func(timer model.StepTimer, sequences, drafts int) float64 {
		first, slope, n := timer.Span(&model.Batch{
			Decodes: sequences, Drafts: sequences * drafts, Context: int64(sequences * (context + drafts)),
			Emit: sequences * (1 + drafts),
		})
		if drafts > 0 && (slope != 0 || n != 1) {
			t.Errorf("%d iterations with drafts are promised", n)
		}
		return float64(first) / 1e12
	}
	few := length(k, 1, drafts) / length(k, 1, 0)
	many := length(k, 256, drafts) / length(k, 256, 0)
	t.Logf("an iteration with %d drafts is %.3f times as long with 1 sequence, %.3f times with 256", drafts, few, many)
	if few > 1.05 || many < 1.3 || many > 1+drafts {
		t.Errorf("an iteration with %d drafts is %.3f times as long with 1 sequence, %.3f times with 256", drafts, few,
			many)
	}

	one, err := model.NewKernels(d.OneLayer(), model.KernelOptions{Overheads: &model.Overheads{}})
	if err != nil {
		t.Fatal(err)
	}
	drafting, err := model.NewDrafting(k, one, drafts)
	if err != nil {
		t.Fatal(err)
	}
	// A layer of 32 and the output layer, thrice.
	plain := length(k, 1, drafts)
	extra := length(drafting, 1, drafts) - plain
	t.Logf("%.3f ms for an iteration that verifies, %.3f ms for %d passes of one layer", plain, extra, drafts)
	if extra < 3*length(k, 1, 0)/32 || extra > plain/2 {
		t.Errorf("%.3f ms for an iteration that verifies, %.3f ms for %d passes of one layer", plain, extra, drafts)
	}
	if _, err := model.NewDrafting(k, one, 0); err == nil {
		t.Error("no drafts at all are accepted")
	}
}

// TestDrafterMemory: an EAGLE head of Llama-3.1-8B is one layer in bf16: 2·(2·4096² + 2·4096·1024 + 3·4096·14336) bytes
// for its matrices, 2·2·4096 for its norms, and 2·2·1024 for the KV of a token. All of it comes out of the pool.
func TestDrafterMemory(t *testing.T) {
	d := deploy(t, "llama-3.1-8b", "h100-sxm", model.Options{})
	head := d.LayerAsDrafter()
	if want := (model.DrafterMemory{Weights: 436_224_000, KVPerToken: 4096}); head != want {
		t.Errorf("the head has %+v, want %+v", head, want)
	}
	knobs := model.DefaultMemoryKnobs()
	alone, err := d.KVBlocks(knobs)
	if err != nil {
		t.Fatal(err)
	}
	knobs.Drafter = head
	with, err := d.KVBlocks(knobs)
	if err != nil {
		t.Fatal(err)
	}
	// A block has 33 layers of 4096 bytes for each of its 16 tokens.
	if want := int((alone.KVCache - head.Weights) / (33 * 4096 * 16)); with.Blocks != want || with.Blocks >= alone.Blocks {
		t.Errorf("%d blocks with the head and %d without, want %d", with.Blocks, alone.Blocks, want)
	}
	if small := deploy(t, "llama-3.2-1b", "h100-sxm", model.Options{}).AsDrafter(); small.Weights < 2e9 ||
		small.Weights > 3e9 || small.KVPerToken != 16*2*2*512 {
		t.Errorf("Llama-3.2-1B as a draft model has %+v", small)
	}
}

// TestMeanDrafts: three drafts, of which the first is accepted with 0.8 and each further one with 0.5, yield
// 1 + 0.8 + 0.4 + 0.2 = 2.4 tokens. A step of the mean is the drafted iteration over 2.4; a prompt in it takes as much
// more as in a drafted iteration.
func TestMeanDrafts(t *testing.T) {
	acceptance := []float64{0.8, 0.5}
	if got := model.ExpectedYield(3, acceptance); math.Abs(got-2.4) > 1e-12 {
		t.Errorf("%v tokens (want 2.4)", got)
	}
	d := deploy(t, "llama-3.1-8b", "h100-sxm", model.Options{})
	target, err := model.NewKernels(d, model.KernelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one, err := model.NewKernels(d.OneLayer(), model.KernelOptions{Overheads: &model.Overheads{}})
	if err != nil {
		t.Fatal(err)
	}
	mean, err := model.NewMeanDrafting(target, one, 3, acceptance)
	if err != nil {
		t.Fatal(err)
	}
	each, err := model.NewDrafting(target, one, 3)
	if err != nil {
		t.Fatal(err)
	}
	chunk := []model.Chunk{{New: 512}}
	drafted := model.Batch{Decodes: 8, Drafts: 24, Context: 8*500 + 24, Emit: 32}
	whole, _, _ := each.Span(&drafted)
	step, slope, n := mean.Span(&model.Batch{Decodes: 8, Context: 8 * 500, Emit: 8})
	if math.Abs(float64(step)*2.4/float64(whole)-1) > 1e-6 || slope != 0 || n != 1 {
		t.Errorf("a step takes %d fs, an iteration %d (want its part of 2.4)", step, whole)
	}
	drafted.Chunks, drafted.Emit = chunk, 33
	mixed, _, _ := each.Span(&drafted)
	withPrompt, _, _ := mean.Span(&model.Batch{Decodes: 8, Context: 8 * 500, Emit: 9, Chunks: chunk})
	if withPrompt-step != mixed-whole {
		t.Errorf("a prompt adds %d fs to a step (want %d)", withPrompt-step, mixed-whole)
	}
	prompt := model.Batch{Chunks: chunk, Emit: 1}
	alone, _, _ := each.Span(&prompt)
	if got, _, _ := mean.Span(&prompt); got != alone {
		t.Errorf("a prompt alone takes %d fs (want %d)", got, alone)
	}
	if _, err := model.NewMeanDrafting(target, one, 3, []float64{2}); err == nil {
		t.Error("an acceptance of 2 is taken")
	}
}
