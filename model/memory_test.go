package model_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"clifftop/model"
	"clifftop/model/catalog"
)

// deploy returns a catalog model on a catalog GPU.
func deploy(t testing.TB, llm, gpu string, o model.Options) *model.Deployment {
	t.Helper()
	m, err := catalog.LLM(llm)
	if err != nil {
		t.Fatal(err)
	}
	g, err := catalog.GPU(gpu)
	if err != nil {
		t.Fatal(err)
	}
	d, err := model.NewDeployment(m, g, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s: %.7g, want %.7g (%+.2g)", what, got, want, got/want-1)
	}
}

// TestKVBlocksMeasured compares with the block counts that vLLM logged.
func TestKVBlocksMeasured(t *testing.T) {
	for _, c := range []struct {
		llm, gpu          string
		tp, seqs          int
		measured, formula int
	}{
		{"llama-2-7b", "h100", 1, 128, 7463, 7405},
		{"llama-2-70b", "h100", 4, 128, 31357, 30916},
		{"mixtral-8x7b", "h100", 2, 128, 27511, 27040},
		{"codellama-34b", "h100", 2, 128, 26603, 26206},
		{"llama-3.1-8b", "rtx-4090", 1, 256, 2588, 2618},
	} {
		k := model.DefaultMemoryKnobs()
		k.Utilization, k.MaxNumBatchedTokens, k.MaxNumSeqs, k.CountGraphs = 0.9, 2048, c.seqs, false
		b, err := deploy(t, c.llm, c.gpu, model.Options{TensorParallel: c.tp}).KVBlocks(k)
		if err != nil {
			t.Fatal(err)
		}
		near(t, c.llm+" formula", float64(b.Blocks), float64(c.formula), 0.001)
		near(t, c.llm+" measured", float64(b.Blocks), float64(c.measured), 0.018)
		sum := b.Weights + b.Runtime + b.Activations + b.Sampler + b.Graphs + b.KVCache
		near(t, c.llm+" terms", sum, b.Requested, 1e-12)
	}
}

// TestKVBlocksArithmetic takes the memory of the pool as given, as an engine's log shows it.
func TestKVBlocksArithmetic(t *testing.T) {
	d := deploy(t, "llama-3.1-8b", "h100", model.Options{})
	if got := d.KVBytesPerToken(); got != 131072 {
		t.Errorf("%d bytes per token", got)
	}
	k := model.DefaultMemoryKnobs()
	for gib, want := range map[float64]int{54.840: 28078, 55.824: 28581} {
		k.Pool = func(*model.Deployment, *model.KVBudget) float64 { return gib * (1 << 30) }
		b, err := d.KVBlocks(k)
		if err != nil {
			t.Fatal(err)
		}
		if b.BlockBytes != 2<<20 || b.Blocks != want {
			t.Errorf("%v GiB: %d blocks of %d bytes, want %d", gib, b.Blocks, b.BlockBytes, want)
		}
	}
	// The formula's own terms come close to the logged ones.
	k = model.DefaultMemoryKnobs()
	b, err := d.KVBlocks(k)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "defaults", float64(b.Blocks), 28581, 0.015)
	k.BlocksOverride = 100
	if b, err = d.KVBlocks(k); err != nil || b.Blocks != 100 || b.UsableTokens != 99*16 {
		t.Errorf("override: %+v, %v", b, err)
	}
}

func TestPages(t *testing.T) {
	d := deploy(t, "gpt-oss-120b", "h100", model.Options{TensorParallel: 2})
	// 18 full and 18 windowed layers of 128 tokens: a windowed page is charged like a full one.
	for tokens, want := range map[int]int{0: 0, 1: 2, 16: 2, 17: 4, 128: 16, 144: 18, 160: 19, 1024: 73} {
		if got := d.Pages(tokens, 16); got != want {
			t.Errorf("%d tokens: %d pages, want %d", tokens, got, want)
		}
	}
	// 10 full and 52 windowed layers of 1,024 tokens.
	d = deploy(t, "gemma-3-27b", "h100", model.Options{})
	for tokens, want := range map[int]int{16: 1 + 6, 32: 2 + 11, 4096: 256 + 338} {
		if got := d.Pages(tokens, 16); got != want {
			t.Errorf("%d tokens: %d pages, want %d", tokens, got, want)
		}
	}
	if got := deploy(t, "llama-3.1-8b", "h100", model.Options{}).Pages(100, 16); got != 7 {
		t.Errorf("%d pages", got)
	}
}

// TestOverrideNeedsRoomForWeights: a number of blocks that is given does not help if the weights do not fit.
func TestOverrideNeedsRoomForWeights(t *testing.T) {
	k := model.DefaultMemoryKnobs()
	k.BlocksOverride = 100
	var fit *model.FitError
	if _, err := deploy(t, "llama-3.1-70b", "h100", model.Options{}).KVBlocks(k); !errors.As(err, &fit) {
		t.Errorf("140 GB of weights on a GPU of 80 GB: %v", err)
	}
	if b, err := deploy(t, "llama-3.1-70b", "h100", model.Options{TensorParallel: 2}).KVBlocks(k); err != nil ||
		b.Blocks != 100 {
		t.Errorf("on two: %d blocks, %v", b.Blocks, err)
	}
}

func TestFitError(t *testing.T) {
	for _, c := range []struct {
		llm, gpu string
		o        model.Options
		want     string
	}{
		{"llama-3.1-70b", "h100", model.Options{},
			"llama-3.1-70b bf16 on 1 × h100-sxm does not fit: 66.9 GB too much per GPU (fits with tensor_parallel_size 2, or " +
				"with dtype fp8)"},
		{"llama-3.1-8b", "rtx-4090", model.Options{}, ""},
		{"llama-3.1-405b", "l4", model.Options{},
			"does not fit: 796.0 GB too much per GPU (fits with tensor_parallel_size 64)"},
		{"llama-3.1-405b", "gh200", model.Options{},
			"does not fit: 724.6 GB too much per GPU (no tensor_parallel_size up to 64 and no smaller dtype fits)"},
		{"mixtral-8x7b", "a100-40gb-sxm", model.Options{}, "(fits with tensor_parallel_size 4, or with dtype int4)"},
	} {
		_, err := deploy(t, c.llm, c.gpu, c.o).KVBlocks(model.DefaultMemoryKnobs())
		var fit *model.FitError
		if c.want == "" {
			if err != nil {
				t.Errorf("%s on %s: %v", c.llm, c.gpu, err)
			}
			continue
		}
		if !errors.As(err, &fit) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s on %s:\n got %v\nwant %s", c.llm, c.gpu, err, c.want)
		}
	}
}

func TestMemoryKnobs(t *testing.T) {
	d := deploy(t, "llama-3.1-8b", "h100", model.Options{})
	for want, change := range map[string]func(*model.MemoryKnobs){
		"gpu_memory_utilization is 1.2": func(k *model.MemoryKnobs) { k.Utilization = 1.2 },
		"gpu_memory_utilization is NaN": func(k *model.MemoryKnobs) { k.Utilization = math.NaN() },
		"block_size is 0":               func(k *model.MemoryKnobs) { k.BlockSize = 0 },
		"max_num_seqs is -1":            func(k *model.MemoryKnobs) { k.MaxNumSeqs = -1 },
		"num_gpu_blocks_override is -5": func(k *model.MemoryKnobs) { k.BlocksOverride = -5 },
	} {
		k := model.DefaultMemoryKnobs()
		change(&k)
		if _, err := d.KVBlocks(k); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestExpertPadding: MXFP4 experts of gpt-oss-120b are stored as 3,072 by 2,944 instead of 2,880 by 2,880 on Hopper, and
// as 3,072 by 3,072 on Blackwell. 36 layers of 128 experts have three matrices each, at 0.53125 bytes a number. Over 8
// GPUs the width is 360, stored as 384.
func TestExpertPadding(t *testing.T) {
	for _, c := range []struct {
		llm, gpu string
		tp       int
		want     float64
	}{
		{"gpt-oss-120b", "h200", 1, 36 * 128 * 3 * (3072*2944 - 2880*2880) * 0.53125},
		{"gpt-oss-120b", "b200", 1, 36 * 128 * 3 * (3072*3072 - 2880*2880) * 0.53125},
		{"gpt-oss-120b", "h200", 8, 36 * 128 * 3 * (3072*384 - 2880*360) * 0.53125},
		{"mixtral-8x7b", "h200", 2, 0},
	} {
		d := deploy(t, c.llm, c.gpu, model.Options{TensorParallel: c.tp})
		b, err := d.KVBlocks(model.DefaultMemoryKnobs())
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Weights - d.WeightBytesPerRank(); math.Abs(got-c.want) > 1 {
			t.Errorf("%v: %v bytes of padding, want %v", d, got, c.want)
		}
	}
}

// TestGraphMemory: 51 sizes are captured up to 512 tokens, 147 up to 2,048, and 35 up to 256.
func TestGraphMemory(t *testing.T) {
	d := deploy(t, "llama-3.1-8b", "h100", model.Options{})
	for limit, sizes := range map[int]float64{0: 51, 512: 51, 2048: 147, 256: 35, 1: 1} {
		k := model.DefaultMemoryKnobs()
		k.MaxCapture = limit
		b, err := d.KVBlocks(k)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "graphs", b.Graphs, 0.6e9*sizes/51, 1e-9)
	}
}
