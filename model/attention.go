package model

import (
	"cmp"
	"math"
	"slices"
)

// layerClass is a set of layers with the same token mixer, on one rank.
type layerClass struct {
	Mixer
	layers  float64
	window  int64   // tokens; noWindow for attention to all tokens
	q, kv   float64 // heads per rank
	hd, vd  float64 // widths of a key and a value head
	storing float64 // layers that store KV of their own
}

// noWindow is longer than any context and can be doubled without overflow.
const noWindow = math.MaxInt64 / 4

// classes returns the layer classes of the model on one of tp ranks: attention to all tokens first, then windows, then
// recurrent layers.
func (m *LLM) classes(tp int) []layerClass {
	var cs []layerClass
	for _, x := range m.mixers() {
		c := layerClass{Mixer: x, layers: float64(x.Layers), window: noWindow, storing: float64(x.Layers - x.SharedKV)}
		if x.Window > 0 && x.Compression.Ratio == 0 {
			c.window = int64(x.Window)
		}
		if x.Kind == Attention {
			c.q, c.kv = float64(x.Heads)/float64(tp), x.kvHeadsPerRank(tp)
			c.hd, c.vd = float64(x.HeadDim), float64(x.ValueDim)
		}
		cs = append(cs, c)
	}
	slices.SortStableFunc(cs, func(a, b layerClass) int {
		return cmp.Or(cmp.Compare(min(a.Kind, 1), min(b.Kind, 1)), cmp.Compare(b.window, a.window))
	})
	return cs
}

func (o *ops) attention() []layerClass {
	n := 0
	for n < len(o.classes) && o.classes[n].Kind == Attention {
		n++
	}
	return o.classes[:n]
}

func (o *ops) attentionLayers() (sum float64) {
	for _, c := range o.attention() {
		sum += c.layers
	}
	return sum
}

// kvSeconds returns the time to read one token's keys and values of a layer at full bandwidth.
func (o *ops) kvSeconds(c *layerClass) float64 {
	if o.d.LLM.UsesMLA() {
		return float64(o.d.latentBytes()) / o.bw
	}
	return c.kv * (c.hd + c.vd) * o.kvb / o.bw
}

// decodeLaunch returns the fixed latency of the decode attention of a layer.
func (o *ops) decodeLaunch(x *layerClass) cost {
	switch {
	case x.compressed():
		return compressedOps{o}.launch(x)
	case x.Kind.Recurrent() && o.o.PlainLayers:
		return cost{}
	case x.Kind.Recurrent():
		return latency(o.c.Recurrent[x.Kind].DecodeLaunch)
	case !o.d.LLM.UsesMLA():
		return latency(o.c.Decode[o.d.KVDtype].Launch)
	}
	// The absorbed up-projections of queries and values are read for any batch.
	c := latency(o.c.Common.MLADecodeLaunch + mlaProjectionLaunch)
	c.memory = o.mlaUpParams() * 2 / (mlaProjectionMemory * o.bw)
	c.seconds += c.memory
	if x.Indexer.TopK > 0 {
		index := float64(o.c.Sparse.IndexLaunch * float64(x.Indexer.Layers) / x.layers)
		if o.o.UnfusedSparse && !o.o.FuseLayerKernels {
			index += o.c.Sparse.unfused(o.d.KVDtype)
		}
		c.latency, c.seconds = c.latency+index, c.seconds+index
	}
	return c
}

// The absorbed up-projections of multi-head latent attention run as batched matrix products.
const (
	mlaProjectionLaunch  = 6e-6 // seconds
	mlaProjectionMemory  = 0.6  // fraction of the bandwidth
	mlaProjectionCompute = 0.5  // fraction of the peak
)

// mlaUpParams returns the number of parameters of a layer's up-projections from the latent vector on one rank.
func (o *ops) mlaUpParams() float64 {
	_, c, _, n, v := o.d.LLM.MLA.dims()
	return o.q * c * (n + v)
}

// decodeSequence returns the time that one decoding sequence with the given context adds to the decode attention of
// a layer: the soft maximum, with exponent 3/2, of a cost per sequence and the read of its KV, because the kernel's
// prologue overlaps with the read.
func (o *ops) decodeSequence(x *layerClass, context float64) cost {
	context = min(context, float64(x.window))
	switch {
	case x.Kind.Recurrent():
		return o.recurrentSequence(x)
	case x.compressed():
		return compressedOps{o}.sequence(x, context)
	case x.Indexer.TopK > 0:
		return o.sparseDecodeSequence(x, context)
	case o.d.LLM.UsesMLA():
		return o.mlaDecodeSequence(x, context)
	}
	k := &o.c.Decode[o.d.KVDtype]
	c := cost{
		latency: x.kv * k.Sequence,
		memory:  context * o.kvSeconds(x) / k.Memory,
		compute: context * 2 * x.q * (x.hd + x.vd) / o.d.GPU.BF16FLOPs,
	}
	exponent := 1.5
	if o.o.AdditiveDecode {
		exponent = 1
	}
	c.seconds = softMax(c.latency, max(c.memory, c.compute), exponent)
	return c
}

// decodeCompute returns the arithmetic of one (query, context token) pair of the decode attention of a layer.
func (o *ops) decodeCompute(x *layerClass) float64 {
	if x.compressed() {
		return compressedOps{o}.compute(x)
	}
	if x.Indexer.TopK > 0 {
		return o.indexPair(x) * float64(x.Indexer.Layers) / x.layers
	}
	return o.decodeSequence(x, 1).compute
}

func (o *ops) mlaDecodeSequence(x *layerClass, context float64) cost {
	g, peak := &o.c.Common, o.d.GPU.BF16FLOPs
	_, c, r, _, _ := o.d.LLM.MLA.dims()
	rate := g.MLADecodeCompute * peak
	if g.MLADecodeFP8 > 0 && o.d.KVDtype == FP8 {
		rate = g.MLADecodeFP8 * o.d.GPU.FP8FLOPs
	}
	bandwidth := g.MLADecodeMemory
	if g.MLADecode32Heads > 0 && x.q > 16 && x.q <= 32 { // half-empty tiles
		bandwidth = g.MLADecode32Heads
	}
	attend := cost{
		compute: context * 2 * x.q * (2*c + r) / rate,
		memory:  context * o.kvSeconds(x) / bandwidth,
	}
	project := 2 * o.mlaUpParams() / (mlaProjectionCompute * peak)
	attend.latency = g.MLADecodeSequence + project
	attend.seconds = attend.latency + math.Hypot(attend.compute, attend.memory)
	return attend
}

// prefillLaunch returns the fixed latency of the prefill attention of a layer.
func (o *ops) prefillLaunch() float64 {
	if o.d.LLM.UsesMLA() {
		return o.c.Common.MLAPrefillLaunch
	}
	return o.c.Prefill.Launch
}

// prefillPair returns the time of one (new token, context token) pair in the prefill attention of a layer, and the
// number of tokens added to the mean context of a chunk.
func (o *ops) prefillPair(x *layerClass) (seconds, delta float64) {
	peak := o.d.GPU.BF16FLOPs
	if o.d.LLM.UsesMLA() {
		_, _, r, n, v := o.d.LLM.MLA.dims()
		return 2 * x.q * (n + r + v) / (o.c.Common.MLAPrefillCompute * peak), o.c.Common.MLAPrefillDelta
	}
	return 2 * x.q * (x.hd + x.vd) / (o.c.Prefill.Compute * peak), o.c.Prefill.Delta
}

// upProjection expands the latent vectors of the given number of tokens to keys and values, in one layer of a
// prefill step.
func (o *ops) upProjection(tokens float64) cost {
	_, c, _, n, v := o.d.LLM.MLA.dims()
	return o.gemm(tokens, o.q*(n+v), c, o.d.AttentionDtype)
}

// usesMixed reports whether decodes share the attention kernel of prefill chunks.
func (o *ops) usesMixed() bool {
	return o.d.GPU.AttentionBackend == FA2 && !o.d.LLM.UsesMLA() && !o.d.LLM.compressed()
}

// mixedTile returns the time of one (tile, context token) pair of the mixed kernel of a layer if all SMs are busy.
func (o *ops) mixedTile(x *layerClass) float64 {
	e := o.c.Mixed.Compute
	if o.o.MixedEfficiency > 0 {
		e = o.o.MixedEfficiency
	}
	return 2 * o.c.Common.FA2TileRows * (x.hd + x.vd) / (o.d.GPU.BF16FLOPs * e)
}

// mixedLaunch is the latency of the mixed kernel relative to the prefill kernel.
const mixedLaunch = 0.6

// mixedClass is the mixed attention of one layer class.
type mixedClass struct {
	window       int64
	heads        int64
	sms          int64
	delta        int64 // twice the tokens added to a tile's context
	tile         fraction
	tileRows     int64
	launch       int64
	decode       curve
	decodeLaunch int64
	read         fraction
}

// prepareMixed prepares kernels that run prefill and decode together.
func (k *Kernels) prepareMixed() {
	p := k.ops
	for i := range p.attention() {
		c := &p.classes[i]
		k.mixed = append(k.mixed, mixedClass{
			window: c.window, heads: int64(c.q), sms: int64(p.d.GPU.SMs),
			delta: int64(2 * p.c.Common.FA2Delta), tileRows: int64(max(1, p.c.Common.FA2TileRows)),
			tile:         newFraction(p.mixedTile(c) / 2 * c.layers),
			launch:       roundFemtos(mixedLaunch * p.c.Prefill.Launch * c.layers * femtosPerSecond),
			decode:       p.decodeCurve([]layerClass{*c}),
			decodeLaunch: roundFemtos(p.decodeLaunch(c).seconds * c.layers * femtosPerSecond),
			read:         newFraction(p.kvSeconds(c) * c.layers),
		})
	}
	if recurrent := p.classes[len(k.mixed):]; len(recurrent) > 0 { // decodes of recurrent layers run separately
		k.mixed = append(k.mixed, mixedClass{tileRows: 1, decode: p.decodeCurve(recurrent)})
		last := &k.mixed[len(k.mixed)-1]
		for i := range recurrent {
			last.decodeLaunch += roundFemtos(p.decodeLaunch(&recurrent[i]).seconds * recurrent[i].layers *
				femtosPerSecond)
		}
	}
}

// femtos returns the attention of a step with chunks in a kernel where each decoding sequence takes the tiles of a
// whole query block, as in FlashAttention-2: waves of (head, query tile) pairs over the SMs without split-KV, so
// that the longest tile is a lower bound. The decodes alone and the reading of the KV are lower bounds too.
func (c *mixedClass) femtos(b *Batch) int64 {
	decodes := int64(b.Decodes)
	var reads uint128
	work, tile, decode := int64(0), int64(0), int64(0) // tile: the longest one, times the SMs
	if decodes > 0 {
		// Sharing reduces reads, not arithmetic.
		inWindow := inWindow(b.Context, decodes, c.window)
		work = b.tiles(c.tileRows) * (2*inWindow + decodes*c.delta)
		tile = c.sms*2*inWindow/decodes + c.sms*c.delta
		read, _ := readContext(b)
		decode = c.decodeLaunch + c.decode.sum(decodes, read)
		reads.add(min(read, inWindow), c.read)
	}
	for _, ch := range b.Chunks {
		n, cached := int64(ch.New), int64(ch.Cached)
		work += (n + c.tileRows - 1) / c.tileRows * (min(2*cached+n, 2*c.window) + c.delta)
		tile = max(tile, c.sms*(2*min(cached, c.window)+c.delta))
		reads.add(min(n+cached, c.window), c.read)
	}
	var tiles uint128
	tiles.add(max(c.heads*work, tile), c.tile)
	return max(c.launch+tiles.femtos(), decode, reads.femtos())
}

// Sparse attention: an indexer scores every token of the context in 8 bits, and latent attention reads the best TopK
// tokens. The scores are linear in the context; attention stops growing at TopK tokens. Its kernel works on latent
// vectors in prefill, too.

// indexBytes are the bytes of a token in the cache of an indexer with a scale of 4 bytes.
func (x *Indexer) indexBytes() int64 { return int64(x.Dim) + 4 }

// span returns the context from which on the attention of a class grows no more or grows slower.
func (c *layerClass) span() int64 {
	if c.Indexer.TopK > 0 {
		return min(c.window, int64(c.Indexer.TopK*max(1, c.Compression.Ratio)))
	}
	return c.window
}

// sparseHeads returns the query heads that the kernel computes: it pads them.
func (o *ops) sparseHeads(x *layerClass) float64 { return max(x.q, o.c.Sparse.Heads) }

// unfused is the time that a decode layer of vLLM takes longer than fused kernels.
func (s *SparseConstants) unfused(kv Precision) float64 {
	if kv == FP8 {
		return s.Unfused8
	}
	return s.Unfused16
}

// sparseDecodeSequence returns the time that a decoding sequence adds to a layer of sparse attention.
func (o *ops) sparseDecodeSequence(x *layerClass, context float64) cost {
	s := &o.c.Sparse
	_, c, r, _, _ := o.d.LLM.MLA.dims()
	attended := min(context, float64(x.Indexer.TopK))
	t := cost{
		compute: attended * 2 * o.sparseHeads(x) * (2*c + r) / (s.DecodeCompute * o.d.GPU.BF16FLOPs),
		memory:  attended * o.kvSeconds(x) / s.DecodeMemory,
		latency: o.c.Common.MLADecodeSequence + 2*o.mlaUpParams()/(mlaProjectionCompute*o.d.GPU.BF16FLOPs),
	}
	share := float64(x.Indexer.Layers) / x.layers
	index := max(float64(x.Indexer.indexBytes())/(s.IndexMemory*o.bw), o.indexPair(x)) * context * share
	t.seconds = t.latency + max(t.compute, t.memory) + index
	t.memory += index
	return t
}

// indexPair returns the time of the score of one token of the context for one query.
func (o *ops) indexPair(x *layerClass) float64 {
	peak := max(o.d.GPU.FP8FLOPs, o.d.GPU.BF16FLOPs)
	return float64(2*x.Indexer.Heads*x.Indexer.Dim) / (o.c.Sparse.IndexCompute * peak)
}

// topKLatency returns the time to select the best tokens of a decode, in one layer: a block of threads works off the
// scores of one sequence, and all sequences at the same time.
func (o *ops) topKLatency(x *layerClass, context float64) float64 {
	s, k := &o.c.Sparse, float64(x.Indexer.TopK)
	return s.TopKLaunch*min(context/k, 1) + float64(s.TopKLatency*max(0, context-k))
}

// sparsePrefill is the attention of prefill chunks in layers of sparse attention.
type sparsePrefill struct {
	topK   int64
	dense  bool     // chunks whose context has at most topK tokens use dense attention
	pair   fraction // of dense attention, halved
	attend fraction // per (new token, attended token), halved
	index  fraction // per (new token, context token), halved
	token  fraction // per new token
}

func (k *Kernels) prepareSparse(c *layerClass) {
	p, s := k.ops, &k.ops.c.Sparse
	_, rank, rope, _, _ := p.d.LLM.MLA.dims()
	pair, _ := p.prefillPair(c)
	indexed := float64(c.Indexer.Layers)
	rate := s.PrefillCompute
	if p.d.KVDtype == FP8 {
		rate = s.PrefillCompute8
	}
	attend := max(2*p.sparseHeads(c)*(2*rank+rope)/(rate*p.d.GPU.BF16FLOPs), p.kvSeconds(c)/s.PrefillMemory)
	project := 2 * p.mlaUpParams() / (mlaProjectionCompute * p.d.GPU.BF16FLOPs)
	k.sparse = &sparsePrefill{
		topK: int64(c.Indexer.TopK), dense: p.o.DenseShortPrefill,
		pair:   newFraction(pair / 2 * c.layers),
		attend: newFraction(attend / 2 * c.layers),
		index:  newFraction((p.indexPair(c) + s.TopKPair) / 2 * indexed),
		token:  newFraction(project*c.layers + float64(s.TopKToken*indexed)),
	}
	latency := newCurve(func(context float64) float64 { return p.topKLatency(c, context) * indexed }, 0,
		[]int64{int64(c.Indexer.TopK)}, false)
	k.decodeLatency = &latency
}

// add adds the attention of a chunk, and reports whether it is dense.
func (s *sparsePrefill) add(chunk *uint128, n, cached int64) (dense bool) {
	span := 2*cached + n
	if s.dense && n+cached <= s.topK {
		chunk.add(n*span, s.pair)
		return true
	}
	chunk.add(n*min(span, 2*s.topK), s.attend)
	chunk.add(n*span, s.index)
	chunk.add(n, s.token)
	return false
}
