package model_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/model"
	"clifftop/sim/clock"
)

// TestStageLayers divides layers as vLLM does: the last stage gets fewer layers first, then the first stage.
func TestStageLayers(t *testing.T) {
	for _, c := range []struct {
		layers int
		want   []int
	}{
		{32, []int{32}}, {32, []int{16, 16}}, {33, []int{17, 16}}, {80, []int{20, 20, 20, 20}},
		{81, []int{20, 20, 21, 20}}, {82, []int{20, 21, 21, 20}}, {83, []int{21, 21, 21, 20}}, {61, []int{20, 21, 20}},
		{5, []int{1, 1, 1, 1, 1}},
	} {
		llm := deploy(t, "llama-3.1-8b", "h100", model.Options{}).LLM
		llm.Layers = c.layers
		d, err := model.NewDeployment(llm, deploy(t, "llama-3.1-8b", "h100", model.Options{}).GPU,
			model.Options{PipelineParallel: len(c.want)})
		if err != nil {
			t.Fatal(err)
		}
		if got := d.StageLayers(); !slices.Equal(got, c.want) {
			t.Errorf("%d layers on %d stages: %v, want %v", c.layers, len(c.want), got, c.want)
		}
	}
}

// TestStagesAddUp: the times of stages and hops add up to the time of the step, to the femtosecond, for any batch.
func TestStagesAddUp(t *testing.T) {
	timers := make(map[int][]model.StepTimer)
	for _, pp := range []int{2, 3, 4} {
		d := deploy(t, "llama-3.1-70b", "h100", model.Options{PipelineParallel: pp})
		r, err := model.NewRoofline(d, model.DefaultRooflineOptions())
		if err != nil {
			t.Fatal(err)
		}
		timers[pp] = []model.StepTimer{kernels(t, d, model.KernelOptions{PadGraphs: true}), r,
			model.NewLinear(clock.Millisecond+1, 7)}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := model.Batch{Decodes: rapid.IntRange(0, 300).Draw(t, "decodes")}
		b.Context = int64(b.Decodes) * int64(rapid.IntRange(1, 9000).Draw(t, "context"))
		for range rapid.IntRange(0, 3).Draw(t, "chunks") {
			b.Chunks = append(b.Chunks, model.Chunk{New: int32(rapid.IntRange(1, 8192).Draw(t, "new")),
				Cached: int32(rapid.IntRange(0, 8192).Draw(t, "cached"))})
		}
		b.Emit = b.Decodes + rapid.IntRange(0, len(b.Chunks)).Draw(t, "emit")
		if b.Decodes+len(b.Chunks) == 0 {
			t.Skip("empty")
		}
		pp := rapid.SampledFrom([]int{2, 3, 4}).Draw(t, "stages")
		for _, timer := range timers[pp] {
			total, _, _ := timer.Span(&b)
			to := make([]int64, pp)
			hop := model.DivideStages(timer, &b, total, to)
			sum := int64(pp-1) * hop
			for _, stage := range to {
				sum += stage
				if stage < 0 || hop < 0 {
					t.Fatalf("%T: stages %v, hops of %d", timer, to, hop)
				}
			}
			if sum != total {
				t.Fatalf("%T: stages %v and hops of %d are %d, the step %d", timer, to, hop, sum, total)
			}
		}
	})
}

// TestStagesOfKernels checks a division by hand: 80 layers in four stages, a head on the last one.
func TestStagesOfKernels(t *testing.T) {
	d := deploy(t, "llama-3.1-70b", "h100", model.Options{PipelineParallel: 4})
	k := kernels(t, d, model.KernelOptions{})
	b := model.Batch{Decodes: 64, Context: 64000, Emit: 64}
	total, _, _ := k.Span(&b)
	to := make([]int64, 4)
	hop := k.Stages(&b, total, to)
	if to[0] != to[1] && to[0] != to[1]-1 || to[1] != to[2] && to[1] != to[2]-1 && to[1] != to[2]+1 {
		t.Errorf("stages without head are not alike: %v", to)
	}
	// The head alone: 128,256 × 8,192 weights of 2 bytes take at least 0.63 ms at 3.35 TB/s.
	if head := to[3] - to[0]; head < 627e9 || head > 2e12 {
		t.Errorf("the head takes %d fs", head)
	}
	// 10 µs, and 64 tokens of 8,192 numbers of 2 bytes at 0.6 of the link's speed.
	want := 10e-6 + 64*8192*2/(0.6*d.GPU.ScaleUpBytesPerSecond)
	if got := float64(hop) * 1e-15; got < want*(1-1e-6) || got > want*(1+1e-6) {
		t.Errorf("a hop takes %v s, want %v", got, want)
	}
}
