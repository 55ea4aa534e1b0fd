package model_test

import (
	"testing"

	"clifftop/model"
)

// TestUnequalContexts computes the bound of the longest sequence by hand: 32 sequences of Qwen3-32B on B300 at TP 2 are
// 128 blocks on 148 multiprocessors, so that each sequence and key head has one. The longest has 4,000 + 2.6 · 3,900 =
// 14,140 tokens of 512 bytes, which a block reads in 61.4 µs at 118 GB/s; 64 layers take 3.927 ms.
func TestUnequalContexts(t *testing.T) {
	d := deploy(t, "qwen3-32b", "b300-sxm", model.Options{TensorParallel: 2})
	k := kernels(t, d, model.KernelOptions{PadGraphs: true})
	equal := model.Batch{Decodes: 32, Context: 128_000, Emit: 32}
	unequal := equal
	unequal.ContextDeviation = 3900
	attention := func(b *model.Batch) float64 { return k.Explain(b).Terms[0].Seconds }
	launch := 64 * d.GPU.Kernels.Decode[model.BF16].Launch
	near(t, "the longest sequence", attention(&unequal)-launch, 64*14_140*512/118e9, 1e-3)
	near(t, "in a step", step(k, unequal)-step(k, equal), attention(&unequal)-attention(&equal), 1e-3)

	// 4 sequences are 16 blocks; each gets 9 multiprocessors.
	few := model.Batch{Decodes: 4, Context: 16_000, ContextDeviation: 4000, Emit: 4}
	longest := 4000 + 4000*1.7320508 // the longest of 4 is at most √3 deviations above their mean
	near(t, "four sequences", attention(&few)-launch, 64*longest/9*512/118e9, 2e-3)

	small := equal
	small.ContextDeviation = 100 // all blocks together then take longer than one
	if step(k, small) != step(k, equal) {
		t.Error("a small deviation changes the time")
	}
	if e := kernels(t, d, model.KernelOptions{PadGraphs: true, EqualContexts: true}); step(e, unequal) != step(e, equal) {
		t.Error("EqualContexts has no effect")
	}
	h := kernels(t, deploy(t, "qwen3-32b", "h200-sxm", model.Options{TensorParallel: 2}), model.KernelOptions{})
	if step(h, unequal) != step(h, equal) {
		t.Error("Hopper's kernel balances sequences")
	}
}

// TestUnequalLatentContexts: 6 sequences in a graph of 8 leave a quarter of the blocks idle. The longest has 80,000 +
// 30,000 · √3 · 5/7 = 117,115 tokens, and the step takes as long as 8 sequences of this length.
func TestUnequalLatentContexts(t *testing.T) {
	d := deploy(t, "deepseek-r1", "b200-sxm", model.Options{TensorParallel: 8, KVDtype: model.FP8})
	k := kernels(t, d, model.KernelOptions{PadGraphs: true})
	attention := func(n int, context, deviation int64) float64 {
		b := model.Batch{Decodes: n, Context: int64(n) * context, ContextDeviation: deviation, Emit: n}
		near(t, "a step", step(k, b), k.Explain(&b).Seconds, 1e-6)
		return k.Explain(&b).Terms[0].Seconds
	}
	token := (attention(8, 160_000, 0) - attention(8, 80_000, 0)) / (8 * 80_000)
	near(t, "bytes of a token", token, 61*576/(0.85*d.GPU.HBMBytesPerSecond), 0.1) // and some arithmetic
	longer := attention(6, 80_000, 30_000) - attention(6, 80_000, 0)
	near(t, "six sequences", longer, (8*117_115-6*80_000)*token, 2e-3)
	near(t, "idle blocks", attention(6, 80_000, 1)-attention(6, 80_000, 0), 2*80_000*token, 2e-3)
}

// TestLaunches bounds steps by the host: Qwen3-32B has 64 layers of 9 + 4 kernels and, with TP 2, two all-reduces.
func TestLaunches(t *testing.T) {
	d := deploy(t, "qwen3-32b", "b300-sxm", model.Options{TensorParallel: 2})
	o := model.KernelOptions{PadGraphs: true, MaxNumSeqs: 1024, HostLaunches: true}
	prefill := func(n int32) model.Batch { return model.Batch{Chunks: []model.Chunk{{New: n}}, Emit: 1} }
	launched, free := kernels(t, d, o), kernels(t, d, model.KernelOptions{PadGraphs: true, MaxNumSeqs: 1024})
	near(t, "eager", step(launched, prefill(520)), 0.33e-3+64*15*26.5e-6, 1e-9)
	for _, n := range []int32{512, 4096} { // piecewise graphs, and a GPU that is slower than the host
		if step(launched, prefill(n)) != step(free, prefill(n)) {
			t.Errorf("%d tokens wait for the host", n)
		}
	}
	o.MaxCapture = 2048
	if k := kernels(t, d, o); step(k, prefill(528)) != step(free, prefill(528)) {
		t.Error("captured steps wait for the host")
	}
	hybrid := kernels(t, deploy(t, "qwen3.6-35b-a3b", "b300-sxm", model.Options{}), o)
	// The host is slower than the GPU in 30 recurrent layers, and does not run ahead of them.
	o.HostLaunches = false
	ahead := step(kernels(t, deploy(t, "qwen3.6-35b-a3b", "b300-sxm", model.Options{}), o), prefill(16))
	if wait := step(hybrid, prefill(16)) - ahead; wait < 2e-3 || wait > 30*240e-6 {
		t.Errorf("a piecewise step waits for %v s", wait)
	}
	o.HostLaunches = true
	decode := model.Batch{Decodes: 1024, Context: 1024, Emit: 1024}
	o.MaxCapture = 512
	if k := kernels(t, d, o); step(k, decode) < 64*15*26.5e-6 {
		t.Error("a decode beyond the graphs does not wait for the host")
	}
}
