package model_test

import (
	"math"
	"strings"
	"testing"

	"clifftop/model"
	"clifftop/model/catalog"
)

// hybrid is a small model with six layers of Gated DeltaNet and two of gated attention.
func hybrid() model.LLM {
	return model.LLM{
		Name: "hybrid", Layers: 8, Hidden: 1024, Heads: 8, KVHeads: 2, HeadDim: 128, Intermediate: 4096, Vocab: 1000,
		Mixers: []model.Mixer{
			{Kind: model.GatedDeltaNet, Layers: 6,
				State: model.Recurrence{KeyHeads: 4, ValueHeads: 8, KeyDim: 128, ValueDim: 128, Conv: 4}},
			{Layers: 2, OutputGate: true},
		},
	}
}

// TestLayerParams checks the parameters of each kind of layer against sums by hand.
func TestLayerParams(t *testing.T) {
	const h = 1024
	base := 2*1000*h + h // embedding, output head, last norm
	mlp, norm := 3*h*4096, h
	deltaNet := h*(2*4*128+8*128) + (2*4*128+8*128)*4 + h*8*128 + 2*h*8 + 8*128*h // q k v, convolution, gate, decay, output
	gated := h*(2*8*128+2*2*128) + 8*128*h                                        // queries with gates, keys and values
	attention := h*(8*128+2*2*128) + 8*128*h
	mamba := h*(2*2*64+16*64) + (2*2*64+16*64)*4 + h*(16*64+16) + 16*64*h
	kda := h*3*8*128 + 3*8*128*4 + 2*128*(h+8*128) + h*8 + 8*128*h
	for name, c := range map[string]struct {
		change func(m *model.LLM)
		want   int
	}{
		"gated deltanet": {func(*model.LLM) {}, base + 6*deltaNet + 2*gated + 8*(mlp+2*norm)},
		"shared KV": {func(m *model.LLM) {
			m.Mixers = []model.Mixer{{Layers: 8, SharedKV: 3}}
		}, base + 8*attention - 3*h*2*2*128 + 8*(mlp+2*norm)},
		"own heads": {func(m *model.LLM) {
			m.Mixers = []model.Mixer{{Layers: 6, Window: 64, KVHeads: 4, HeadDim: 64}, {Layers: 2}}
		}, base + 6*(h*(8*64+2*4*64)+8*64*h) + 2*attention + 8*(mlp+2*norm)},
		"mixer or MLP": {func(m *model.LLM) {
			m.Mixers[0] = model.Mixer{Kind: model.Mamba2, Layers: 3,
				State: model.Recurrence{KeyHeads: 2, ValueHeads: 16, KeyDim: 64, ValueDim: 64, Conv: 4}}
			m.Mixers[1] = model.Mixer{Layers: 1}
			m.MixerOnlyLayers, m.UngatedMLP = 4, true
		}, base + 3*mamba + attention + 4*norm + 4*(2*h*4096+norm)},
		"kda": {func(m *model.LLM) {
			m.Mixers[0].Kind, m.Mixers[0].State.KeyHeads = model.KimiDelta, 8
			m.Mixers[1].OutputGate = false
		}, base + 6*kda + 2*attention + 8*(mlp+2*norm)},
		"latent experts": {func(m *model.LLM) {
			m.Mixers = nil
			m.MoE = model.MoE{Experts: 4, TopK: 2, MoEIntermediate: 512, SharedIntermediate: 256, DenseLayers: 5,
				LatentDim: 128}
		}, base + 8*attention + 8*2*norm + 5*mlp + 3*(4*3*128*512+3*h*256+2*h*128+4*h)},
		"learned positions": {func(m *model.LLM) { m.Mixers, m.LearnedPositions = nil, 2050 },
			base + 2050*h + 8*(attention+mlp+2*norm)},
	} {
		m := hybrid()
		c.change(&m)
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if total, _ := m.Params(); total != float64(c.want) {
			t.Errorf("%s: %.0f parameters, want %d", name, total, c.want)
		}
	}
}

// plainDifference returns how much longer a step is than without the recurrence or the selection of its layers.
func plainDifference(t *testing.T, d *model.Deployment, o model.KernelOptions, b model.Batch) float64 {
	t.Helper()
	with, _, _ := kernels(t, d, o).Span(&b)
	o.PlainLayers = true
	without, _, _ := kernels(t, d, o).Span(&b)
	return float64(with-without) / 1e15
}

// TestRecurrentSteps computes the recurrence by hand: its decode is a launch and the traffic of the states, its prefill
// a chain per head or, with many sequences, the arithmetic of all heads.
func TestRecurrentSteps(t *testing.T) {
	g, err := catalog.GPU("b200")
	if err != nil {
		t.Fatal(err)
	}
	d, err := model.NewDeployment(hybrid(), g, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := &g.Kernels.Recurrent[model.GatedDeltaNet]
	state := 2 * (8*128*128*4 + 3*2048*2.) / (c.DecodeMemory * g.HBMBytesPerSecond)
	decode := model.Batch{Decodes: 100, Context: 200_000, Emit: 100}
	near(t, "decode", plainDifference(t, d, model.KernelOptions{}, decode), 6*(c.DecodeLaunch+100*state), 1e-3)

	conv := 2048 * 4 / (c.ConvMemory * g.HBMBytesPerSecond)
	one := model.Batch{Chunks: []model.Chunk{{New: 4000}}}
	chain := c.Prefill.Launch + c.ConvLaunch + 4000*(c.Prefill.Chain+conv) + state
	near(t, "one chunk", plainDifference(t, d, model.KernelOptions{}, one), 6*chain, 1e-3)
	many := model.Batch{}
	for range 200 {
		many.Chunks = append(many.Chunks, model.Chunk{New: 20})
	}
	token := 6 * 8 * 128 * 128 / (c.Triton.Compute * g.BF16FLOPs)
	all := c.Triton.Launch + c.ConvLaunch + 4000*conv + 200*state + (4000+200*c.Triton.Padding)*token
	near(t, "many chunks", plainDifference(t, d, model.KernelOptions{TritonRecurrence: true}, many), 6*all, 1e-3)
}

// TestSparseSteps checks that a decode of sparse attention grows by the indexer alone beyond the tokens that it selects,
// and that a long prefill is cheaper than a dense one.
func TestSparseSteps(t *testing.T) {
	d := deploy(t, "glm-5", "h200", model.Options{TensorParallel: 8, Dtype: model.FP8})
	k := kernels(t, d, model.KernelOptions{})
	s := &d.GPU.Kernels.Sparse
	at := func(context int64) float64 {
		first, _, _ := k.Span(&model.Batch{Decodes: 64, Context: 64 * context, Emit: 64})
		return float64(first) / 1e15
	}
	index := 78 * (64*132/(s.IndexMemory*4.8e12) + s.TopKLatency) // per token of every sequence
	near(t, "10,000 tokens more", at(30_000)-at(20_000), 10_000*index, 1e-3)
	if below := at(2000) - at(1000); below < 3*(at(4000)-at(3000)) {
		t.Errorf("1,000 tokens cost %.3g ms below the limit and %.3g ms above", below*1e3, (at(4000)-at(3000))*1e3)
	}
	// The indexer's 32 heads are on every rank: with 8 heads of attention on each, selection saves nothing.
	long := model.Batch{Chunks: []model.Chunk{{New: 8192, Cached: 120_000}}}
	two := deploy(t, "glm-5", "h200", model.Options{TensorParallel: 2, Dtype: model.FP8})
	if more := plainDifference(t, two, model.KernelOptions{}, long); more > 0 {
		t.Errorf("a chunk at 120,000 tokens takes %.3g ms more than dense attention", more*1e3)
	}
	short := model.Batch{Chunks: []model.Chunk{{New: 2000}}}
	dense := plainDifference(t, d, model.KernelOptions{DenseShortPrefill: true}, short)
	if sparse := plainDifference(t, d, model.KernelOptions{}, short); dense > sparse/4 {
		t.Errorf("the selection of a short prompt takes %.3g ms, as dense attention %.3g ms", sparse*1e3, dense*1e3)
	}
}

// TestSparseUnderVLLM: vLLM's decode layers take 155 µs more with KV in 16 bits and 90 µs with 8 bits, and the host
// launches 60 kernels and an all-reduce for each layer's attention in an eager prefill.
func TestSparseUnderVLLM(t *testing.T) {
	b := model.Batch{Decodes: 4, Context: 16_000, Emit: 4}
	for dtype, more := range map[model.Precision]float64{model.BF16: 155e-6, model.FP8: 90e-6} {
		d := deploy(t, "glm-5", "h200", model.Options{TensorParallel: 8, Dtype: model.FP8, KVDtype: dtype})
		fused, unfused := kernels(t, d, model.KernelOptions{}), kernels(t, d, model.KernelOptions{UnfusedSparse: true})
		near(t, string(dtype), step(unfused, b)-step(fused, b), 78*more, 1e-6)
	}
	d := deploy(t, "glm-5", "h200", model.Options{TensorParallel: 8, Dtype: model.FP8})
	k := kernels(t, d, model.KernelOptions{PadGraphs: true, MaxNumSeqs: 1024, HostLaunches: true})
	prompt := model.Batch{Chunks: []model.Chunk{{New: 600}}, Emit: 1}
	near(t, "a prompt", step(k, prompt), 0.33e-3+26.5e-6*(78*61+3*5+75*17), 1e-2)
}

// TestStatesInBlocks checks block sizes against vLLM's log lines and the charge of a state by hand.
func TestStatesInBlocks(t *testing.T) {
	// "Setting attention block size to 544 tokens": a state of 1,097,728 bytes in pages of 2,048 bytes a token.
	if got := deploy(t, "qwen3-next-80b-a3b", "b200", model.Options{}).BlockSize(16); got != 544 {
		t.Errorf("blocks of Qwen3-Next have %d tokens, want 544", got)
	}
	d := deploy(t, "qwen3.6-35b-a3b", "b200", model.Options{})
	groups := d.CacheGroups(16)
	if len(groups.Groups) != 4 || groups.Groups[0].BlockSize != 1056 || groups.PageBytes != 1056*2048 {
		t.Errorf("groups %+v, want 3 of states and 1 of attention with blocks of 1,056 tokens", groups)
	}
	// 30 states of 2,146,304 bytes take 3,144 tokens of 10 layers: 197 blocks of 16 tokens.
	if got := d.KVGroups().Charge(1, 16); got != 197 {
		t.Errorf("a sequence is charged %d blocks, want 197", got)
	}
	if got := d.Pages(1000, 16); got != 63+197 {
		t.Errorf("a sequence of 1,000 tokens takes %d blocks, want 260", got)
	}
	half := deploy(t, "qwen3.6-35b-a3b", "b200", model.Options{StateBytes: 2})
	if got := half.KVGroups()[0].StateBytes; got != 32*128*128*2+8192*3*2 {
		t.Errorf("a state in 16 bits has %d bytes, want 1,097,728", got)
	}
	b200, _ := catalog.GPU("b200")
	if _, err := model.NewDeployment(hybrid(), b200, model.Options{StateBytes: 3}); err == nil {
		t.Error("states of 3 bytes per number are no fault")
	}
	shared := hybrid()
	shared.Mixers = []model.Mixer{{Layers: 8, SharedKV: 3}}
	h100, _ := catalog.GPU("h100")
	one, err := model.NewDeployment(shared, h100, model.Options{})
	if err != nil || one.KVBytesPerToken() != 5*2*2*128*2 {
		t.Errorf("%d bytes per token (want those of 5 layers), %v", one.KVBytesPerToken(), err)
	}
}

// TestMixerFaults checks the messages about impossible layers.
func TestMixerFaults(t *testing.T) {
	for want, change := range map[string]func(m *model.LLM){
		"mixers have 9 layers (want at most the 8 of the model)": func(m *model.LLM) { m.Mixers[1].Layers = 3 },
		"mixer 1: gated-deltanet has 0 layers (want 1 to the 8 of the model)": func(m *model.LLM) {
			m.Mixers[0].Layers = 0
		},
		"gated-deltanet: value_heads 8 is not a multiple of key_heads 3": func(m *model.LLM) {
			m.Mixers[0].State.KeyHeads = 3
		},
		"gated-deltanet: conv is 0 (want 1 to 1024)":     func(m *model.LLM) { m.Mixers[0].State.Conv = 0 },
		"gated-deltanet: state_bytes is 3 (want 2 or 4)": func(m *model.LLM) { m.Mixers[0].State.StateBytes = 3 },
		"mixer 1: unknown kind":                          func(m *model.LLM) { m.Mixers[0].Kind = 99 },
		"models without attention layers are not modelled": func(m *model.LLM) {
			m.Mixers = m.Mixers[:1]
			m.Mixers[0].Layers = 8
		},
		"attention: shared_kv is 2 (want 0 to 1: less than the layers)": func(m *model.LLM) { m.Mixers[1].SharedKV = 2 },
		"attention: heads 8 is not a multiple of kv_heads 3":            func(m *model.LLM) { m.Mixers[1].KVHeads = 3 },
		"attention: chunked layers without a window":                    func(m *model.LLM) { m.Mixers[1].Chunked = true },
		"an indexer is modelled with multi-head latent attention and compressed attention only": func(m *model.LLM) {
			m.Mixers[1].Indexer = model.Indexer{Heads: 1, Dim: 128, TopK: 16}
		},
		"compression: ratio is 5 (want a divisor of 256)": func(m *model.LLM) {
			m.Mixers[1] = model.Mixer{Layers: 2, Window: 128,
				Compression: model.Compression{Ratio: 5, QRank: 64, OutRank: 64, OutGroups: 1}}
		},
		"compression: compressed attention has no window": func(m *model.LLM) {
			m.Mixers[1] = model.Mixer{Layers: 2, Compression: model.Compression{QRank: 64, OutRank: 64, OutGroups: 1}}
		},
		"mixer_only_layers is 9 (want 0 to the 8 layers with a mixer)": func(m *model.LLM) { m.MixerOnlyLayers = 9 },
	} {
		m := hybrid()
		change(&m)
		if err := m.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v (want %s)", err, want)
		}
	}
	g, _ := catalog.GPU("h100")
	if _, err := model.NewDeployment(hybrid(), g, model.Options{TensorParallel: 8}); err != nil {
		t.Error(err) // key heads are replicated
	}
	m := hybrid()
	m.Mixers[0].State.ValueHeads, m.Mixers[0].State.KeyHeads = 6, 6
	if _, err := model.NewDeployment(m, g, model.Options{TensorParallel: 4}); err == nil ||
		!strings.Contains(err.Error(), "does not divide the 6 heads (6 key heads) of the gated-deltanet layers") {
		t.Error(err)
	}
}

// TestHybridMemory checks that a model with states needs a pool that no context fills, and that its work counts them.
func TestHybridMemory(t *testing.T) {
	g, _ := catalog.GPU("h100")
	d, err := model.NewDeployment(hybrid(), g, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := d.Work()
	few, many := model.Batch{Decodes: 1, Context: 100}, model.Batch{Decodes: 2, Context: 100}
	near(t, "bytes of a state", w.Bytes(&many)-w.Bytes(&few), 6*2*8*128*128*4, 1e-9)
	if f := w.Floor(&many); !(f > 0) || math.IsInf(f, 0) {
		t.Errorf("floor %v", f)
	}
}
