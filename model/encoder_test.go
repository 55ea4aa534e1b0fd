package model_test

import (
	"math"
	"testing"

	"clifftop/model"
	"clifftop/model/catalog"
)

// TestEncoder computes the encoder's time of two images of 1,024 tokens by hand: 27 layers of width 1,152 with four
// patches per token.
func TestEncoder(t *testing.T) {
	llm, err := catalog.LLM("qwen3.5-27b")
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := catalog.GPU("h100")
	if err != nil {
		t.Fatal(err)
	}
	time := func(tp int, images int32) float64 {
		d, err := model.NewDeployment(llm, gpu, model.Options{TensorParallel: tp})
		if err != nil {
			t.Fatal(err)
		}
		k, err := model.NewKernels(d, model.KernelOptions{})
		if err != nil {
			t.Fatal(err)
		}
		b := &model.Batch{Chunks: []model.Chunk{{New: 4096, Images: images, ImageTokens: 1024}}}
		first, _, n := k.Span(b)
		if n != 1 {
			t.Errorf("%d iterations with images", n)
		}
		if e := k.Explain(b); math.Abs(e.Seconds/(float64(first)/1e15)-1) > 1e-6 {
			t.Errorf("explained %v s, want %v s", e.Seconds, float64(first)/1e15)
		}
		return float64(first) / 1e15
	}
	const patches, peak = 4096, 989.5e12
	products := 2 * llm.Encoder.Params * patches / (peak * gpu.Kernels.GEMM[model.BF16].Compute)
	attention := 4 * 27 * 1152.0 * patches * patches / (peak * gpu.Kernels.Prefill.Compute)
	want := 27*12*5e-6 + 2*(products+attention)
	if got := time(1, 2) - time(1, 0); math.Abs(got/want-1) > 1e-3 {
		t.Errorf("two images take %v s, want %v s", got, want)
	}
	if one, two := time(1, 1)-time(1, 0), time(1, 2)-time(1, 0); two >= 2*one || two <= one {
		t.Errorf("one image takes %v s, two take %v s", one, two)
	}
	if four := time(4, 2) - time(4, 0); four >= want || four <= want/4 {
		t.Errorf("on four GPUs %v s, on one %v s", four, want)
	}
	llm.Encoder = model.Encoder{}
	if got := time(1, 2) - time(1, 0); got != 0 {
		t.Errorf("without an encoder images take %v s", got)
	}
}
