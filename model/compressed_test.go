package model_test

import (
	"fmt"
	"testing"

	"clifftop/model"
)

// term returns the seconds of a part of a step.
func term(t *testing.T, k *model.Kernels, b *model.Batch, name string) float64 {
	t.Helper()
	e := k.Explain(b)
	for _, x := range e.Terms {
		if x.Name == name {
			return x.Seconds
		}
	}
	t.Fatalf("no part %q in %+v", name, e.Terms)
	return 0
}

// TestCompressedSteps computes the attention of DeepSeek-V4-Flash by hand: 2 layers with a window of 128 tokens alone,
// 21 with an entry for 4 tokens and an indexer of 512 entries, and 20 with an entry for 128 tokens. A rank has 16 heads
// of 512 numbers, which the kernel pads to 64.
func TestCompressedSteps(t *testing.T) {
	d := deploy(t, "deepseek-v4-flash", "h200", model.Options{TensorParallel: 4})
	c, k := &d.GPU.Kernels.Compressed, kernels(t, d, model.KernelOptions{})
	pair := 2 * 64 * 2 * 512. / 989e12
	decode := func(n, context float64) float64 {
		layer := func(launch, entries float64) float64 { return launch + n*(c.Sequence+entries*pair/c.Decode) }
		window := min(context, 128)
		index := context / 4 * 132 / (c.Index * 4.8e12)
		selection := min(1, context/2048) * c.Selection
		return 2*layer(c.Launch, window) + 20*layer(c.Launch, window+context/128) +
			21*(layer(c.IndexedLaunch, window+min(context/4, 512))+n*index+selection)
	}
	for _, context := range []int64{64, 1000, 4096, 100_000} {
		b := model.Batch{Decodes: 64, Context: 64 * context, Emit: 64}
		near(t, "decode", term(t, k, &b, "decode attention"), decode(64, float64(context)), 1e-3)
	}

	// New tokens 4,097 to 8,192 see the whole window and 512 entries of 4 tokens. A token's selection takes as long as
	// its scores, one for 4 tokens of its context.
	b := model.Batch{Chunks: []model.Chunk{{New: 4096, Cached: 4096}}}
	mean := 4096 + 2048.
	row := mean / 4 * (2 * 64 * 128 / (c.PrefillIndex * 1979e12))
	indexed := 4096*((128+512)*pair/c.Prefill+row) + 4096*mean/4*c.EntryRow/132
	heavy := 4096 * (128 + mean/128) * pair / c.Prefill
	want := 43*(c.PrefillLaunch+4096*c.PrefillToken) + 2*4096*128*pair/c.Prefill + 20*heavy + 21*indexed
	near(t, "prefill", term(t, k, &b, "prefill attention"), want, 1e-3)

	// One token with a long context waits for its selection.
	one := model.Batch{Chunks: []model.Chunk{{New: 1, Cached: 99_999}}}
	entries := 2*128 + 21*(128+512) + 20*(128+100_000./128)
	want = 43*(c.PrefillLaunch+c.PrefillToken) + entries*pair/c.Prefill +
		21*(c.LongRowLatency+25_000*2*64*128/(c.PrefillIndex*1979e12))
	near(t, "long row", term(t, k, &one, "prefill attention"), want, 1e-3)
}

// TestResidualStreams computes the kernels before and after each of 86 mixers and expert layers by hand: 4 streams of
// 4,096 numbers of 16 bits are read and one is written, and then 5 are read and 4 written.
func TestResidualStreams(t *testing.T) {
	d := deploy(t, "deepseek-v4-flash", "b200", model.Options{TensorParallel: 8})
	k := kernels(t, d, model.KernelOptions{})
	s := &d.GPU.Kernels.Streams
	b := model.Batch{Chunks: []model.Chunk{{New: 100_000}}}
	traffic := 100_000 * 4096 * 2 / d.GPU.HBMBytesPerSecond
	want := 86 * traffic * (5/s.Pre.Memory + 9/s.Post.Memory)
	near(t, "streams", term(t, k, &b, "residual streams"), want, 0.03) // the latencies remain
	e := kernels(t, d, model.KernelOptions{PlainLayers: true}).Explain(&b)
	for _, x := range e.Terms {
		if x.Name == "residual streams" {
			t.Errorf("plain layers have residual streams of %v s", x.Seconds)
		}
	}
}

// TestCompressedCache counts the KV of DeepSeek-V4-Flash as vLLM lays it out, in pages of 576 bytes. 64 entries of 584
// bytes take 65 pages and 64 of 132 bytes in the indexer 15: 46,080 bytes for 256 tokens, or 180 a token. 2 entries take
// 3 pages, or 7 bytes a token. 64 tokens in the window take 65 pages, 585 bytes a token.
func TestCompressedCache(t *testing.T) {
	d := deploy(t, "deepseek-v4-flash", "h200", model.Options{TensorParallel: 4})
	window := model.KVGroup{Kind: model.SlidingWindow, Window: 128, TokenBytes: 585}
	sliding := func(layers int) model.KVGroup { window.Layers = layers; return window }
	// Compressors keep 3 blocks of 4 tokens with 2,048 and 512 numbers of 4 bytes (57 and 15 pages), and 17 blocks of 8
	// tokens with 1,024 numbers (57 pages).
	want := model.KVGroups{sliding(2),
		{Kind: model.LatentAttention, Layers: 21, TokenBytes: 180}, sliding(21),
		{Kind: model.CompressorState, Layers: 21, StateBytes: 3 * (57 + 15) * 576},
		{Kind: model.LatentAttention, Layers: 20, TokenBytes: 7}, sliding(20),
		{Kind: model.CompressorState, Layers: 20, StateBytes: 17 * 57 * 576}}
	got := d.KVGroups()
	if len(got) != len(want) {
		t.Fatalf("groups %+v, want %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("group %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if err := got.Validate(); err != nil || got.PoolBytesPerToken() != 21*180+20*7 || d.KVBytesPerToken() != 3920 {
		t.Errorf("%d bytes of a token in the pool, %d in all, %v (want 3,920)", got.PoolBytesPerToken(), d.KVBytesPerToken(),
			err)
	}
	// Blocks of 16 tokens have 62,720 bytes. 9 blocks of the window: 9·585/3920 of a block for each layer, so 3, 29 and
	// 27. States: 2,612,736 and 11,162,880 bytes are 42 and 178 blocks.
	if charge := got.Charge(100, 16); charge != 3+29+27+42+178 {
		t.Errorf("a sequence is charged %d blocks, want 279", charge)
	}
}

// TestCompressedGroups checks vLLM's groups against messages that it logged for V4-Flash on two GPUs with 8,192 tokens per
// iteration and asynchronous scheduling: a sequence of 30,000 tokens needs 6.66 GiB, and 5.44 GiB hold 13,528 tokens
// (issue 44376 of vLLM).
func TestCompressedGroups(t *testing.T) {
	gs := deploy(t, "deepseek-v4-flash", "h200", model.Options{TensorParallel: 2}).CacheGroups(16)
	const want = "[{multi-head latent attention 21 0 256 0} {sliding window 22 128 64 0} {sliding window 21 128 64 0} " +
		"{sliding window 21 8 4 0} {sliding window 20 128 8 0}]"
	if got := fmt.Sprint(gs.Groups); got != want {
		t.Errorf("groups %s, want %s", got, want)
	}
	// 22 times the pages of 64 entries, of the indexer's 64 and of 2 entries: 65, 15 and 3 times 576 bytes.
	if got := gs.BlockBytes(); got != 22*83*576 {
		t.Errorf("a block has %d bytes, want 1,051,776", got)
	}
	const gib, inFlight = 1 << 30, 2 * 8192
	if got := fmt.Sprintf("%.2f", float64(int64(gs.MostBlocks(30_000, inFlight))*gs.BlockBytes())/gib); got != "6.66" {
		t.Errorf("30,000 tokens need %s GiB, want 6.66", got)
	}
	if got := gs.Longest(int(5.44*gib/float64(gs.BlockBytes())), inFlight); got < 13_510 || got > 13_546 {
		t.Errorf("5.44 GiB hold %d tokens, want 13,528 to two digits of the memory", got)
	}
	if got := deploy(t, "deepseek-v4-flash", "h200", model.Options{TensorParallel: 2}).BlockSize(16); got != 4 {
		t.Errorf("the smallest blocks have %d tokens, want 4", got)
	}
}
