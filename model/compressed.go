package model

import (
	"math"
	"slices"

	"clifftop/internal/faults"
)

// Compressed attention (DeepSeek-V4) stores one entry for every Ratio tokens and attends to entries and to a short
// window of tokens. Layers with an indexer choose the best TopK entries; the others read all of them. Keys and values
// are the same vector, which all heads share, in 8 bits with a positional part in 16 bits, whatever the format of the
// KV cache is (vLLM, models/deepseek_v4).

// Compression has the dimensions of compressed attention. The zero value means other attention.
type Compression struct {
	Ratio     int // tokens of an entry; 0 in layers that attend to the window alone
	QRank     int // rank of the query projection
	OutRank   int // rank of the output projection, for each group of heads
	OutGroups int // groups of heads of the output projection
}

// Layout of the KV of compressed attention in vLLM.
const (
	compressedBlock   = 256 // tokens of a block of entries
	compressedWindow  = 64  // tokens of a block of the window
	compressedPage    = 576 // bytes; pages are multiples
	compressedRope    = 64  // numbers of an entry in 16 bits; the others have 8
	compressedScales  = 8   // bytes of an entry
	compressorNumbers = 4   // bytes of a number of the compressor's state
)

// compressed reports whether the layers have compressed attention.
func (x *Mixer) compressed() bool { return x.Compression.QRank > 0 }

// compressed reports whether the model has compressed attention.
func (m *LLM) compressed() bool {
	for i := range m.Mixers {
		if m.Mixers[i].compressed() {
			return true
		}
	}
	return false
}

// validate checks the dimensions of compressed attention.
func (c *Compression) validate(f *faults.List, m *LLM, x *Mixer) {
	dimension(f, "compression q_rank", c.QRank)
	dimension(f, "compression out_rank", c.OutRank)
	dimension(f, "compression out_groups", c.OutGroups)
	faults.Within(f, "compression ratio", c.Ratio, 0, compressedBlock)
	f.Check(c.Ratio <= 0 || compressedBlock%c.Ratio == 0, "compression: ratio is %d (want a divisor of %d)", c.Ratio,
		compressedBlock)
	f.Check(c.Ratio > 0 || x.Indexer == (Indexer{}), "compression: an indexer has no entries (want a ratio)")
	f.Check(x.Window > 0 && !x.Chunked, "compression: compressed attention has no window (want its tokens)")
	f.Check(!m.UsesMLA(), "compression: compressed attention is not multi-head latent attention (want no mla)")
	f.Check(x.SharedKV == 0 && !x.OutputGate, "compression: shared_kv and output_gate are not modelled with it")
}

// compressorWidth returns how many numbers a layer's compressor makes of a token: keys and scores, twice if entries
// overlap, which those with an indexer do; and how many that of its indexer makes.
func (x *Mixer) compressorWidth() (attention, index int) {
	switch {
	case x.Compression.Ratio == 0:
		return 0, 0
	case x.Indexer.TopK > 0:
		return 4 * x.HeadDim, 4 * x.Indexer.Dim
	}
	return 2 * x.HeadDim, 0
}

// entryBytes returns the bytes of an entry, and of a token in the window.
func (x *Mixer) entryBytes() int { return x.HeadDim + compressedRope + compressedScales }

// compressedParams returns the number of weights of a layer on one of tp ranks, and how many of them have 16 bits in
// any format: those of compressors and of the indexer's weights of heads. Compressors, the down-projections and the
// indexer are replicated.
func (m *LLM) compressedParams(x *Mixer, tp int) (params, wide float64) {
	c, h, hd := &x.Compression, float64(m.Hidden), float64(x.HeadDim)
	heads, groups := float64(x.Heads)/float64(tp), float64(c.OutGroups)/float64(tp)
	q, out := float64(c.QRank), float64(c.OutRank)
	attention, index := x.compressorWidth()
	wide = h * float64(attention+index+x.Indexer.Heads)
	params = h*(q+hd) + q*heads*hd + heads*hd*out + groups*out*h + q*float64(x.Indexer.Heads*x.Indexer.Dim)
	return params + wide, wide
}

// wideBytes returns the bytes that compressed attention takes on one rank beyond those of the format of attention.
func (d *Deployment) wideBytes() (sum float64) {
	for _, x := range d.LLM.mixers() {
		if x.compressed() {
			_, wide := d.LLM.compressedParams(&x, d.TensorParallel)
			sum += float64(x.Layers) * wide * (2 - min(2, d.AttentionDtype.WeightBytes()))
		}
	}
	return sum
}

// pages returns the bytes of a block with a number of vectors.
func pages(vectors, bytes int) int64 {
	return int64(ceilDiv(vectors*bytes, compressedPage)) * compressedPage
}

// page returns the bytes of a block of entries, with those of the indexer.
func (x *Mixer) page() int64 {
	if x.Compression.Ratio == 0 {
		return 0
	}
	entries := compressedBlock / x.Compression.Ratio
	page := pages(entries, x.entryBytes())
	if x.Indexer.TopK > 0 {
		page += pages(entries, int(x.Indexer.indexBytes()))
	}
	return page
}

// compressorBlock returns the tokens of a compressor's window and of a block of its inputs. vLLM keeps them in small
// blocks: of four tokens for overlapping entries, otherwise of eight.
func (x *Mixer) compressorBlock() (window, block int) {
	if x.Indexer.TopK > 0 {
		return 2 * x.Compression.Ratio, 4
	}
	return x.Compression.Ratio, 8
}

// compressedCache returns vLLM's KV cache groups of a model with compressed attention (kv_cache_utils.py,
// _get_kv_cache_groups_uniform_groups). The entries of all layers are one group. Those of windows and of compressors'
// inputs are as large, to which a group is divided. A block of the pool has a page of each kind of entries for every
// layer of the largest group, whichever group it belongs to.
func (d *Deployment) compressedCache() CacheGroups {
	var gs CacheGroups
	var counts []int
	full, windows := CacheGroup{Kind: LatentAttention, BlockSize: compressedBlock}, CacheGroup{}
	var states []CacheGroup
	for _, x := range d.LLM.mixers() {
		layers := ceilDiv(x.Layers*d.stageLayers(), d.LLM.Layers)
		windows = CacheGroup{Kind: SlidingWindow, Layers: windows.Layers + layers, Window: x.Window,
			BlockSize: compressedWindow}
		if x.Compression.Ratio == 0 {
			continue
		}
		gs.PageBytes += x.page()
		full.Layers = max(full.Layers, layers)
		window, block := x.compressorBlock()
		states = append(states, CacheGroup{Kind: SlidingWindow, Layers: layers, Window: window, BlockSize: block})
	}
	counts = append(counts, full.Layers, windows.Layers)
	for i := range states {
		counts = append(counts, states[i].Layers)
	}
	size := leastPadding(counts)
	for _, g := range append([]CacheGroup{full, windows}, states...) {
		all, parts := g.Layers, ceilDiv(g.Layers, size)
		for p := range parts {
			g.Layers = (all - p + parts - 1) / parts
			gs.Groups = append(gs.Groups, g)
		}
	}
	return gs
}

// leastPadding returns the size, at least the first count, to whose multiples the counts can be rounded up with the
// least padding; the larger one of several.
func leastPadding(counts []int) (best int) {
	least := math.MaxInt
	for size := max(1, counts[0]); size <= slices.Max(counts); size++ {
		padding := 0
		for _, n := range counts {
			padding += ceilDiv(n, size)*size - n
		}
		if padding <= least {
			best, least = size, padding
		}
	}
	return best
}

// compressedGroups returns the KV cache groups of a number of layers with compressed attention: the entries with those
// of the indexer, the window, and the inputs of the compressors that are not in an entry.
func (x *Mixer) compressedGroups(layers int) (gs KVGroups) {
	perToken := func(page int64, tokens int) int64 { return (page + int64(tokens) - 1) / int64(tokens) }
	if page := x.page(); page > 0 {
		gs = append(gs, KVGroup{Kind: LatentAttention, Layers: layers, TokenBytes: perToken(page, compressedBlock)})
	}
	gs = append(gs, KVGroup{Kind: SlidingWindow, Layers: layers, Window: x.Window,
		TokenBytes: perToken(pages(compressedWindow, x.entryBytes()), compressedWindow)})
	if attention, index := x.compressorWidth(); attention > 0 {
		tokens, block := x.compressorBlock()
		state := pages(block, attention*compressorNumbers) + pages(block, index*compressorNumbers)
		gs = append(gs, KVGroup{Kind: CompressorState, Layers: layers,
			StateBytes: int64(ceilDiv(tokens-1, block)+1) * state})
	}
	return gs
}

// compressedOps computes the operations of compressed attention.
type compressedOps struct{ *ops }

// projections returns the dense products of a layer. The output projection of each group of heads is one product here.
func (o compressedOps) projections(x *layerClass, m float64) cost {
	c, w := &x.Compression, o.d.AttentionDtype
	q, groups := float64(c.QRank), float64(c.OutGroups)/o.tp
	out := groups * float64(c.OutRank)
	all := o.gemm(m, q+x.hd, o.h, w).plus(o.gemm(m, x.q*x.hd, q, w)).
		plus(o.gemm(m, out, x.q*x.hd/groups, w)).plus(o.gemm(m, o.h, out, w))
	attention, index := x.compressorWidth()
	if attention > 0 {
		all = all.plus(o.gemm(m, float64(attention), o.h, BF16))
	}
	if i := &x.Indexer; i.TopK > 0 {
		all = all.plus(o.gemm(m, float64(i.Heads*i.Dim), q, w)).plus(o.gemm(m, float64(i.Heads), o.h, BF16)).
			plus(o.gemm(m, float64(index), o.h, BF16))
	}
	return all
}

// elementwise returns the numbers of 16 bits that small kernels move for a token: norms, rotary embedding and
// quantisation of queries and outputs, compressors, and the indexer's queries.
func (o compressedOps) elementwise(x *layerClass) float64 {
	attention, index := x.compressorWidth()
	return float64(x.Compression.QRank) + x.hd + float64(3.5*x.q*x.hd) + float64(2*(attention+index)) +
		1.5*float64(x.Indexer.Heads*x.Indexer.Dim)
}

// entries returns the tokens and entries that a query with a context attends to.
func (o compressedOps) entries(x *layerClass, context float64) float64 {
	n := min(context, float64(x.Window))
	if x.Compression.Ratio == 0 {
		return n
	}
	compressed := context / float64(x.Compression.Ratio)
	if o.selects(x) {
		compressed = min(compressed, float64(x.Indexer.TopK))
	}
	return n + compressed
}

// selects reports whether a class reads a selection of its entries.
func (o compressedOps) selects(x *layerClass) bool { return x.Indexer.TopK > 0 && !o.o.PlainLayers }

// pair returns the arithmetic of a query and an entry at the peak, and the time to read the entry at full bandwidth.
// The kernel pads the heads.
func (o compressedOps) pair(x *layerClass) (compute, memory float64) {
	heads := compressedTile * max(1, math.Ceil(x.q/compressedTile))
	return 2 * heads * 2 * x.hd / o.d.GPU.BF16FLOPs, float64(x.entryBytes()) / o.bw
}

// compressedTile is the number of heads to a multiple of which the kernel pads (FlashMLA).
const compressedTile = 64

// indexPair returns the time of the score of one entry for one query at the peak.
func (o compressedOps) indexPair(x *layerClass) float64 {
	return float64(2*x.Indexer.Heads*x.Indexer.Dim) / max(o.d.GPU.FP8FLOPs, o.d.GPU.BF16FLOPs)
}

// launch returns the fixed time of a decode in a layer, besides its products.
func (o compressedOps) launch(x *layerClass) cost {
	if x.Indexer.TopK > 0 {
		return latency(o.c.Compressed.IndexedLaunch)
	}
	return latency(o.c.Compressed.Launch)
}

// sequence returns the time that a decoding sequence adds in a layer.
func (o compressedOps) sequence(x *layerClass, context float64) cost {
	k := &o.c.Compressed
	compute, memory := o.pair(x)
	n := o.entries(x, context) / k.Decode
	t := cost{latency: k.Sequence, compute: n * compute, memory: n * memory}
	index := 0.0
	if o.selects(x) {
		index = context / float64(x.Compression.Ratio) * float64(x.Indexer.indexBytes()) / (k.Index * o.bw)
	}
	t.seconds = t.latency + max(t.compute, t.memory) + index
	t.memory += index
	return t
}

// compute returns the arithmetic of one (query, context token) pair of a decode.
func (o compressedOps) compute(x *layerClass) float64 {
	pair, _ := o.pair(x)
	switch ratio := float64(x.Compression.Ratio); {
	case ratio == 0:
		return pair / o.c.Compressed.Decode
	case o.selects(x):
		return o.indexPair(x) / ratio
	default:
		return pair / ratio / o.c.Compressed.Decode
	}
}

// draftContext is the context at which a draft is timed. Each draft is a query with entries of its own.
const draftContext = 2048

func (k *Kernels) prepareCompressed(c *layerClass) {
	o := compressedOps{k.ops}
	k.compressed = append(k.compressed, o.prefill(c))
	if !o.selects(c) {
		return
	}
	all := int64(c.Indexer.TopK * c.Compression.Ratio)
	latency := newCurve(func(context float64) float64 {
		return o.c.Compressed.Selection * min(1, context/float64(all)) * c.layers
	}, 0, []int64{all}, false)
	k.decodeLatency = &latency
}

// compressedPrefill is the attention of prefill chunks in the layers of a class:
//
//	t = launch + tokens·token + pairs + max(rows·row/SMs, the longest row's latency)
//
// The last term is the selection of entries: a thread block works off the scores of one token. Up to sortedContext its
// time grows with the scores; a longer row takes another, faster kernel.
type compressedPrefill struct {
	window, span int64 // tokens of the window; of the context that entries cover at most
	launch       int64
	token        fraction // per new token
	near, far    fraction // per (new token, token in the window) and (new token, token in entries), halved
	index        fraction // per (new token, context token), halved
	row, longRow fraction // per (new token, context token), halved, and per new token beyond sortedContext
	latency      fraction // per token in the longest row's context
	longLatency  int64
}

// sortedContext is the longest context in tokens whose scores vLLM's kernel sorts in full.
const sortedContext = 8192

func (o compressedOps) prefill(x *layerClass) compressedPrefill {
	k, ratio := &o.c.Compressed, float64(x.Compression.Ratio)
	compute, _ := o.pair(x)
	pair := compute / k.Prefill * x.layers
	padded := math.Ceil(x.q/compressedTile) * compressedTile
	p := compressedPrefill{
		window: int64(x.Window), span: noWindow,
		launch: roundFemtos(k.PrefillLaunch * x.layers * femtosPerSecond),
		token:  newFraction(k.PrefillToken * padded / compressedTile * x.layers),
		near:   newFraction(pair / 2),
	}
	if ratio > 0 {
		p.far = newFraction(pair / 2 / ratio)
	}
	if !o.selects(x) {
		return p
	}
	sms := float64(max(1, o.d.GPU.SMs))
	p.span = int64(x.Indexer.TopK * x.Compression.Ratio)
	p.index = newFraction(o.indexPair(x) / k.PrefillIndex / 2 / ratio * x.layers)
	p.row = newFraction(k.EntryRow / 2 / ratio / sms * x.layers)
	p.longRow = newFraction(k.LongRow / sms * x.layers)
	p.latency = newFraction(k.RowLatency / ratio * x.layers)
	p.longLatency = roundFemtos(k.LongRowLatency * x.layers * femtosPerSecond)
	return p
}

// capped returns twice the sum of the contexts of the n new tokens of a chunk, each up to a limit.
func capped(n, cached, limit int64) int64 {
	inside := min(max(0, limit-cached), n)
	return inside*(2*cached+inside) + (n-inside)*2*limit
}

func (p *compressedPrefill) femtos(b *Batch) int64 {
	var all, rows, longest uint128
	last := int64(0)
	for _, c := range b.Chunks {
		n, cached := int64(c.New), int64(c.Cached)
		all.add(n, p.token)
		all.add(capped(n, cached, p.window), p.near)
		all.add(capped(n, cached, p.span), p.far)
		all.add(n*(2*cached+n), p.index)
		inside := min(max(0, sortedContext-cached), n)
		rows.add(inside*(2*cached+inside), p.row)
		rows.add(n-inside, p.longRow)
		last = max(last, cached+n)
	}
	longest.add(min(last, sortedContext), p.latency)
	latency := longest.femtos()
	if last > sortedContext {
		latency = p.longLatency
	}
	return min(p.launch+all.femtos()+max(rows.femtos(), latency), maxFemtos)
}

func (w *Work) addCompressed(p *ops, c *layerClass, at func(Precision, float64) operations) {
	pair, bytes := at(BF16, 4*c.q*c.hd*c.layers), float64(c.entryBytes())*c.layers
	w.windows = append(w.windows, windowWork{int64(c.Window), pair, pair, bytes})
	ratio, window := float64(c.Compression.Ratio), int64(noWindow)
	if ratio == 0 {
		return
	}
	if x := &c.Indexer; x.TopK > 0 {
		window = int64(x.TopK * c.Compression.Ratio)
		score := operations{flops: float64(2*x.Heads*x.Dim) / ratio * c.layers}
		score.seconds = score.flops / max(p.d.GPU.FP8FLOPs, p.d.GPU.BF16FLOPs)
		w.windows = append(w.windows, windowWork{noWindow, score, score, float64(x.indexBytes()) / ratio * c.layers})
	}
	w.windows = append(w.windows, windowWork{window, pair.times(1 / ratio), pair.times(1 / ratio), bytes / ratio})
}

// streams returns the kernels before and after a mixer or MLP that mix the residual streams. Every rank computes all
// tokens. The first reads all streams and writes one, the second reads both and writes all.
func (o compressedOps) streams(m float64) cost {
	n, sum := float64(o.d.LLM.Streams), cost{}
	for i, k := range [...]StreamConstants{o.c.Streams.Pre, o.c.Streams.Post} {
		numbers := n + 1
		if i == 1 {
			numbers += n
		}
		t := cost{latency: k.Launch + float64(k.PerHidden*o.h), memory: 2 * numbers * m * o.h / (k.Memory * o.bw)}
		t.seconds = softMax(t.latency, t.memory, k.Exponent)
		sum = sum.plus(t)
	}
	return sum
}
