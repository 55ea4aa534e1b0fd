package model

// Work is the minimal work of a step on one GPU: floating-point operations and bytes from memory. It gives the
// utilisation and a lower bound of the step time.
//
// For given sequences everything is linear in Context until it passes a window: the work of n iterations is n times
// that of one iteration with their mean context.
type Work struct {
	d       *Deployment
	stages  float64 // pipeline stages; sums over layers are divided by them
	routing KernelOptions

	token, decodeToken, emit, experts operations
	upToken                           operations // per token in the context of a chunk
	windows                           []windowWork

	stateBytes float64 // of recurrent layers, read and written per sequence

	weightBytes float64 // per step, without experts and head
	headBytes   float64 // per step that emits
	expertBytes float64 // per active expert, over all layers
}

// windowWork is the work per token of the context in layers with the same window.
type windowWork struct {
	window      int64
	decodePair  operations // per (decoded token, token of its context)
	prefillPair operations // per (new token, token of its context)
	kvBytes     float64    // per token of KV read
}

// operations are floating-point operations, and their time at the peak of their format.
type operations struct{ flops, seconds float64 }

func (o operations) times(n float64) operations {
	return operations{float64(o.flops * n), float64(o.seconds * n)}
}

func (o operations) plus(p operations) operations {
	return operations{o.flops + p.flops, o.seconds + p.seconds}
}

// Work returns the work of steps of the deployment, with the default expert routing of [Kernels].
func (d *Deployment) Work() *Work {
	o := KernelOptions{RoutingDispersion: d.LLM.RoutingDispersion}
	o, _ = o.resolve(&d.GPU.Kernels.Common) // the defaults are valid
	return newWork(newOps(d, o))
}

func newWork(p *ops) *Work {
	d, llm := p.d, &p.d.LLM
	dense, moe := llm.floatMLPLayers()
	w := &Work{d: d, stages: float64(d.PipelineParallel), routing: p.o}
	at := func(format Precision, flops float64) operations {
		return operations{flops, flops / d.GPU.Peak(d.GPU.Kernels.GEMM[format].Arithmetic)}
	}

	projections := llm.allMixerParams(d.TensorParallel)
	if llm.UsesMLA() {
		up := p.mlaUpParams()
		layers := p.attentionLayers()
		projections -= up * layers
		w.decodeToken = at(BF16, 2*up*layers)
		if x := p.classes[0].Indexer; x.TopK == 0 { // sparse attention does not expand its context
			w.upToken = at(d.AttentionDtype, 2*up*layers)
		}
	}
	mlp := (dense*llm.mlpParams(llm.Intermediate) + moe*llm.sharedParams()) / p.tp
	w.token = at(d.AttentionDtype, 2*projections).plus(at(d.Dtype, 2*mlp)).plus(at(BF16, 2*moe*llm.routerParams()))
	experts := 2 * moe * float64(llm.TopK) * llm.expertParams() / p.tp
	w.experts = operations{experts, experts / d.GPU.Peak(d.GPU.Kernels.MoE[d.MoEDtype].Arithmetic)}
	w.emit = at(BF16, 2*p.h*p.voc)

	w.weightBytes = d.mixerBytes() + dense*d.denseLayerBytes() + moe*(d.moeLayerBytes()-d.expertLayerBytes())
	w.headBytes = p.h * p.voc * 2
	if moe > 0 {
		perRank := float64(llm.Experts+d.RedundantExperts) / float64(d.ExpertParallel)
		w.expertBytes = moe * d.expertLayerBytes() / perRank / moeMemoryLimit
	}
	for i := range p.classes {
		c := &p.classes[i]
		if c.Kind.Recurrent() {
			w.token = w.token.plus(at(BF16, c.State.flopsPerToken(d.TensorParallel)*c.layers))
			w.stateBytes += 2 * c.State.stateBytes(d.TensorParallel) * c.layers
			continue
		}
		w.addWindow(p, c, at)
	}
	return w
}

// addWindow adds a class of attention layers. Sparse attention reads the index of all tokens, and the KV of the best.
func (w *Work) addWindow(p *ops, c *layerClass, at func(Precision, float64) operations) {
	if c.compressed() {
		w.addCompressed(p, c, at)
		return
	}
	decode, prefill := 2*c.q*(c.hd+c.vd), 2*c.q*(c.hd+c.vd)
	bytes := float64(p.d.kvBytesPerTokenLayer(&c.Mixer))
	if p.d.LLM.UsesMLA() {
		_, rank, rope, n, v := p.d.LLM.MLA.dims()
		decode, prefill = 2*c.q*(2*rank+rope), 2*c.q*(n+rope+v)
	}
	if x := &c.Indexer; x.TopK > 0 {
		indexed := float64(x.Layers)
		pair := operations{flops: float64(2*x.Heads*x.Dim) * indexed}
		pair.seconds = pair.flops / max(p.d.GPU.FP8FLOPs, p.d.GPU.BF16FLOPs)
		w.windows = append(w.windows, windowWork{noWindow, pair, pair, float64(x.indexBytes()) * indexed})
		w.windows = append(w.windows, windowWork{int64(x.TopK), at(BF16, decode*c.layers), at(BF16, prefill*c.layers),
			float64(p.d.latentBytes()) * c.layers})
		return
	}
	w.windows = append(w.windows, windowWork{c.window, at(BF16, decode*c.layers), at(BF16, prefill*c.layers),
		bytes * c.layers})
}

// arithmetic returns the sum over all stages.
func (w *Work) arithmetic(b *Batch) operations {
	n := float64(b.Decodes)
	context := float64(b.Context)
	tokens, rows := n+float64(b.Drafts), 1.0
	if n > 0 {
		rows = tokens / n
	}
	sum := w.decodeToken.times(tokens)
	for i := range w.windows {
		x := &w.windows[i]
		sum = sum.plus(x.decodePair.times(float64(min(context, n*float64(x.window)) * rows)))
	}
	for _, c := range b.Chunks {
		n, cached := float64(c.New), float64(c.Cached)
		mean := cached + n/2
		tokens += n
		for i := range w.windows {
			sum = sum.plus(w.windows[i].prefillPair.times(n * min(mean, float64(w.windows[i].window))))
		}
		sum = sum.plus(w.upToken.times(cached + n))
	}
	routed := tokens
	if b.GroupTokens > 0 {
		routed = float64(b.GroupTokens) / float64(w.d.DataParallel)
	}
	return sum.plus(w.token.times(tokens)).plus(w.experts.times(routed)).plus(w.emit.times(float64(b.Emit)))
}

// bytes returns the sum over all stages.
func (w *Work) bytes(b *Batch) float64 {
	read, _ := readContext(b)
	n := float64(b.Decodes)
	sum := w.weightBytes + float64(w.stateBytes*float64(b.Decodes+len(b.Chunks)))
	for i := range w.windows {
		sum += float64(w.windows[i].kvBytes * min(float64(read), n*float64(w.windows[i].window)))
	}
	tokens := n + float64(b.Drafts)
	for _, c := range b.Chunks {
		tokens += float64(c.New)
		for i := range w.windows {
			sum += float64(w.windows[i].kvBytes * min(float64(c.Cached), float64(w.windows[i].window)))
		}
	}
	if b.Emit > 0 {
		sum += w.headBytes
	}
	if w.expertBytes > 0 {
		routed := tokens * float64(w.d.DataParallel)
		if b.GroupTokens > 0 {
			routed = float64(b.GroupTokens)
		}
		sum += float64(w.expertBytes * w.activeExperts(routed))
	}
	return sum
}

// activeExperts returns the expected number of distinct experts on one rank that are read.
func (w *Work) activeExperts(tokens float64) float64 {
	return w.d.copiesOfExperts() * activeExperts(&w.d.LLM, tokens, float64(w.d.ExpertParallel),
		w.routing.RoutingConcentration, w.routing.RoutingDispersion)
}

// FLOPs returns the floating-point operations of a step on one GPU: twice the weights that each token uses, and
// attention.
func (w *Work) FLOPs(b *Batch) float64 { return w.arithmetic(b).flops / w.stages }

// Bytes returns the bytes that a step reads from the memory of one GPU: its weights once, the expected number of
// distinct experts, and the KV cache, in which shared blocks count once.
func (w *Work) Bytes(b *Batch) float64 { return w.bytes(b) / w.stages }

// ComputeSeconds returns the time of a step's FLOPs at the datasheet's peak of each format. Divided by the step
// time it is the model FLOPs utilisation (MFU); sums of both give that of a run.
func (w *Work) ComputeSeconds(b *Batch) float64 { return w.arithmetic(b).seconds / w.stages }

// MemorySeconds returns the time of a step's Bytes at the datasheet's bandwidth. Divided by the step time it is the
// memory bandwidth utilisation (MBU); sums of both give that of a run.
func (w *Work) MemorySeconds(b *Batch) float64 {
	return w.bytes(b) / w.d.GPU.HBMBytesPerSecond / w.stages
}

// Floor returns a lower bound of the step time in seconds: the maximum of its arithmetic at peak and its memory
// traffic at full bandwidth, with pipeline stages in sequence.
func (w *Work) Floor(b *Batch) float64 {
	return max(w.arithmetic(b).seconds, w.bytes(b)/w.d.GPU.HBMBytesPerSecond)
}
