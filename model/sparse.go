package model

// Sparse attention: an indexer scores every token of the context in 8 bits, and latent attention reads the best TopK
// tokens. The scores are linear in the context; attention stops growing at TopK tokens. Its kernel works on latent
// vectors in prefill, too.

// indexBytes are the bytes of a token in the cache of an indexer with a scale of 4 bytes.
func (x *Indexer) indexBytes() int64 { return int64(x.Dim) + 4 }

// span returns the context from which on the attention of a class grows no more or grows slower.
func (c *layerClass) span() int64 {
	if c.Indexer.TopK > 0 {
		return min(c.window, int64(c.Indexer.TopK))
	}
	return c.window
}

// sparseHeads returns the query heads that the kernel computes: it pads them.
func (o *ops) sparseHeads(x *layerClass) float64 { return max(x.q, o.c.Sparse.Heads) }

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

// prepareSparse adds a class of layers of sparse attention.
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
