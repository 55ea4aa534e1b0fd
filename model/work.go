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
	decodePair, prefillPair           [2]operations // per context token; full and windowed layers
	upToken                           operations    // per token in the context of a chunk

	weightBytes float64 // per step, without experts and head
	headBytes   float64 // per step that emits
	expertBytes float64 // per active expert, over all layers
	kvBytes     [2]float64
	window      int64
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
	o, _ := KernelOptions{}.resolve(&d.GPU.Kernels.Common) // the defaults are valid
	return newWork(newOps(d, o))
}

func newWork(p *ops) *Work {
	d, llm := p.d, &p.d.LLM
	layers := float64(llm.Layers)
	dense, moe := llm.floatMLPLayers()
	w := &Work{d: d, stages: float64(d.PipelineParallel), routing: p.o, window: noWindow}
	at := func(format Precision, flops float64) operations {
		return operations{flops, flops / d.GPU.Peak(d.GPU.Kernels.GEMM[format].Arithmetic)}
	}

	projections := llm.allMixerParams(d.TensorParallel)
	if llm.UsesMLA() {
		up := p.mlaUpParams()
		projections -= up * layers
		w.decodeToken = at(BF16, 2*up*layers)
		w.upToken = at(d.Dtype, 2*up*layers)
	}
	mlp := (dense*llm.mlpParams(llm.Intermediate) + moe*llm.sharedParams()) / p.tp
	w.token = at(d.Dtype, 2*(projections+mlp)).plus(at(BF16, 2*moe*llm.routerParams()))
	w.experts = at(d.MoEDtype, 2*moe*float64(llm.TopK)*llm.expertParams()/p.tp)
	w.emit = at(BF16, 2*p.h*p.voc)

	w.weightBytes = d.mixerBytes() + dense*d.denseLayerBytes() + moe*(d.moeLayerBytes()-d.expertLayerBytes())
	w.headBytes = p.h * p.voc * 2
	if moe > 0 {
		perRank := float64(llm.Experts) / float64(d.ExpertParallel)
		w.expertBytes = moe * d.expertLayerBytes() / perRank / moeMemoryLimit
	}
	decode, prefill := 4*p.q*p.hd, 4*p.q*p.hd
	if llm.UsesMLA() {
		_, c, r, n, v := llm.MLA.dims()
		decode, prefill = 2*p.q*(2*c+r), 2*p.q*(n+r+v)
	}
	for _, c := range p.classes() {
		i := 0
		if c.window != noWindow {
			i, w.window = 1, c.window
		}
		w.decodePair[i] = at(BF16, decode*c.layers)
		w.prefillPair[i] = at(BF16, prefill*c.layers)
		w.kvBytes[i] = float64(d.kvBytesPerTokenLayer()) * c.layers
	}
	return w
}

// arithmetic returns the sum over all stages.
func (w *Work) arithmetic(b *Batch) operations {
	n := float64(b.Decodes)
	context := float64(b.Context)
	tokens, rows := n+float64(b.Drafts), 1.0
	if n > 0 {
		rows = tokens / n
	}
	sum := w.decodeToken.times(tokens).plus(w.decodePair[0].times(float64(context * rows)))
	sum = sum.plus(w.decodePair[1].times(float64(min(context, n*float64(w.window)) * rows)))
	for _, c := range b.Chunks {
		n, cached := float64(c.New), float64(c.Cached)
		mean := cached + n/2
		tokens += n
		sum = sum.plus(w.prefillPair[0].times(n * mean)).plus(w.prefillPair[1].times(n * min(mean, float64(w.window))))
		sum = sum.plus(w.upToken.times(cached + n))
	}
	return sum.plus(w.token.times(tokens)).plus(w.experts.times(tokens)).plus(w.emit.times(float64(b.Emit)))
}

// bytes returns the sum over all stages.
func (w *Work) bytes(b *Batch) float64 {
	read, _ := readContext(b)
	n := float64(b.Decodes)
	sum := w.weightBytes + float64(w.kvBytes[0]*float64(read)) + float64(w.kvBytes[1]*min(float64(read),
		n*float64(w.window)))
	tokens := n + float64(b.Drafts)
	for _, c := range b.Chunks {
		tokens += float64(c.New)
		sum += float64(w.kvBytes[0]*float64(c.Cached)) + float64(w.kvBytes[1]*min(float64(c.Cached), float64(w.window)))
	}
	if b.Emit > 0 {
		sum += w.headBytes
	}
	if w.expertBytes > 0 {
		sum += float64(w.expertBytes * w.activeExperts(tokens*float64(w.d.DataParallel)))
	}
	return sum
}

// activeExperts returns the expected number of distinct experts on one rank that are read.
func (w *Work) activeExperts(tokens float64) float64 {
	return activeExperts(&w.d.LLM, tokens, float64(w.d.ExpertParallel), w.routing.RoutingConcentration,
		w.routing.RoutingDispersion)
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
