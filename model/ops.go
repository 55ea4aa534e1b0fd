package model

import (
	"math"
	"math/bits"
)

// cost is the time of an operation in seconds, and its parts: fixed latency, arithmetic at the achieved peak,
// memory traffic or link transfers at the achieved bandwidth. The parts overlap, so seconds may be less than their
// sum.
type cost struct {
	seconds                  float64
	latency, compute, memory float64
}

func (c cost) plus(o cost) cost {
	return cost{c.seconds + o.seconds, c.latency + o.latency, c.compute + o.compute, c.memory + o.memory}
}

func (c cost) times(f float64) cost {
	return cost{float64(c.seconds * f), float64(c.latency * f), float64(c.compute * f), float64(c.memory * f)}
}

// ops computes the elementary operations of a deployment. Products that are added to something are explicitly
// converted to float64, here and in other files that compute coefficients. This prevents fused multiply-adds, so
// that all platforms get the same coefficients.
type ops struct {
	d    *Deployment
	c    *KernelConstants
	o    KernelOptions // resolved
	bw   float64       // HBM bytes per second
	tp   float64
	h    float64 // hidden
	q    float64 // query heads per rank, of latent attention
	kvb  float64 // bytes per number in the KV cache
	voc  float64 // vocabulary per rank
	comm commLinks

	classes []layerClass
}

func newOps(d *Deployment, o KernelOptions) *ops {
	tp := float64(d.TensorParallel)
	classes := d.LLM.classes(d.TensorParallel)
	for i := range classes {
		if o.PlainLayers && !classes[i].compressed() {
			classes[i].Indexer = Indexer{}
		}
	}
	return &ops{
		d: d, c: d.GPU.constants(o.Tables), o: o, bw: d.GPU.HBMBytesPerSecond, tp: tp,
		h: float64(d.LLM.Hidden), classes: classes,
		q:   float64(d.LLM.Heads) / tp,
		kvb: float64(d.KVDtype.kvBytes()), voc: float64(d.LLM.Vocab) / tp,
		comm: newCommLinks(d, &o),
	}
}

// softMax returns (a^p + b^p)^(1/p): the sum for p = 1, nearly the maximum for large p.
func softMax(a, b, p float64) float64 {
	lo, hi := min(a, b), max(a, b)
	switch {
	case lo == 0:
		return hi
	case p == 1:
		return lo + hi
	}
	return hi * math.Pow(1+math.Pow(lo/hi, p), 1/p)
}

// gemm returns the cost of the product of an m×k activation with k×n weights stored in format w.
func (o *ops) gemm(m, n, k float64, w Precision) cost {
	c := &o.c.GEMM[w]
	c1 := cost{
		latency: c.Launch + float64(k*c.PerK),
		compute: 2 * m * n * k / (o.d.GPU.Peak(c.Arithmetic) * c.Compute),
		memory: (float64(n*k*w.WeightBytes()) + float64(m*k*c.Arithmetic.activationBytes()) + float64(m*n*2)) /
			(o.bw * c.Memory),
	}
	c1.seconds = c1.latency + softMax(c1.compute, c1.memory, c.Exponent)
	return c1
}

// experts returns the cost of the grouped product of one layer's experts on one rank. tokens counts those of all
// data-parallel ranks; each chooses k experts, of which one in ep is on the rank.
func (o *ops) experts(tokens float64) cost {
	llm, c := &o.d.LLM, &o.c.MoE[o.d.MoEDtype]
	ep := float64(o.d.ExpertParallel)
	width := float64(llm.MoEIntermediate) * ep / float64(o.d.moeRanks())
	imbalance := o.imbalance(tokens)
	slots := tokens * float64(llm.TopK) / ep * imbalance
	active := o.activeExperts(tokens * imbalance)
	short := 1 + c.ShortK/width
	dim, matrices := llm.expertDim(), llm.mlpMatrices()
	c1 := cost{
		latency: c.Launch,
		compute: 2 * matrices * dim * width * (slots + float64(active*c.TileRows)) * short /
			(o.d.GPU.Peak(c.Arithmetic) * c.Compute),
		memory: active * matrices * dim * width * o.d.MoEDtype.WeightBytes() / (o.bw * c.Memory),
	}
	activations := slots * (float64(3*dim) + float64(2*matrices*width)) * 2 / (0.9 * o.bw)
	c1.seconds = c1.latency + activations + softMax(c1.compute, c1.memory, c.Exponent)
	c1.memory += activations
	return c1
}

// imbalance returns the load of the busiest expert-parallel rank over the mean. If it is not given, it is
// estimated: tokens are distributed at random, with experts of unequal popularity, and the expected maximum over
// the ranks is that of as many normal variables with the same standard deviation. Redundant experts even out the
// popularity of the ranks' experts, but not chance.
func (o *ops) imbalance(tokens float64) float64 {
	ep := o.d.ExpertParallel
	switch {
	case o.o.ExpertImbalance > 0:
		return o.o.ExpertImbalance
	case ep <= 1:
		return 1
	}
	n := float64(ep)
	variance := (n - 1) / (tokens * float64(o.d.LLM.TopK))
	if !math.IsInf(o.o.RoutingDispersion, 1) && o.d.RedundantExperts == 0 {
		variance += (n - 1) / (o.o.RoutingDispersion * float64(o.d.LLM.Experts))
	}
	return min(n, 1+float64(normalMaximum(ep)*math.Sqrt(variance)))
}

// normalMaximum returns the expected maximum of n standard normal variables, with n rounded up to a power of two.
func normalMaximum(n int) float64 {
	expected := [...]float64{0, 0.5642, 1.0294, 1.4236, 1.7660, 2.0697, 2.3437, 2.5941, 2.8253} // 1, 2, 4 … 256
	return expected[min(bits.Len(uint(n-1)), len(expected)-1)]
}

// activeExperts returns the expected number of distinct experts on one rank that the tokens visit.
func (o *ops) activeExperts(tokens float64) float64 {
	return o.d.copiesOfExperts() * activeExperts(&o.d.LLM, tokens, float64(o.d.ExpertParallel),
		o.o.RoutingConcentration, o.o.RoutingDispersion)
}

// activeExperts returns E/ep · (1 − (1 + T·k/(E·a))^−a), the expected number of distinct experts on one of ep
// ranks. The dispersion a describes how unequal the popularity of experts is; +Inf means uniform. A concentration
// below 1 reduces the set of experts in use.
func activeExperts(llm *LLM, tokens, ep, concentration, dispersion float64) float64 {
	e, k := float64(llm.Experts), float64(llm.TopK)
	local := e / ep
	if e <= k {
		return local
	}
	e = max(k, e*concentration)
	idle := math.Exp(-tokens * k / e)
	if !math.IsInf(dispersion, 1) {
		idle = math.Pow(1+tokens*k/(e*dispersion), -dispersion)
	}
	return min(local, max(min(local, k/ep), e/ep*(1-idle)))
}

// Of the small kernels of a layer, a norm, the rotary embedding and the write to the KV cache belong to the mixer, a
// norm and the activation to the MLP.
const mixerKernels = 0.6

// mixerElementwise returns the cost of the small kernels of a token mixer: the norm with its residual, rotary embedding
// and KV write, or what recurrent layers have in their place.
func (o *ops) mixerElementwise(x *layerClass, m float64) cost {
	attention := 2 * (x.q*x.hd + x.kv*(x.hd+x.vd))
	if a := &o.d.LLM.MLA; o.d.LLM.UsesMLA() {
		q, c, r, n, _ := a.dims()
		attention = float64(2*(q+c+r)) + float64(2*x.q*(n+r))
	}
	if x.compressed() {
		attention = compressedOps{o}.elementwise(x)
	}
	if x.Kind.Recurrent() {
		attention = 4 * float64(x.State.ValueHeads*x.State.ValueDim) / o.tp // the output, normed by a gate
	}
	return o.smallKernels(m, mixerKernels, float64(2*m*attention))
}

// mlpElementwise returns the cost of the small kernels of an MLP: the norm with its residual, and an activation of the
// given width.
func (o *ops) mlpElementwise(m, width float64) cost {
	return o.smallKernels(m, 1-mixerKernels, float64(6*m*width))
}

// smallKernels returns the cost of a share of a layer's small kernels that move the given bytes besides a norm.
func (o *ops) smallKernels(m, share, bytes float64) cost {
	c := &o.c.Common
	kernels := float64(c.ElementwiseKernels * share)
	if o.fusesAllReduce(m) {
		kernels -= fusedNorms / 2
	}
	c1 := cost{
		latency: float64(kernels * c.ElementwiseLaunch),
		memory:  (float64(8*m*o.h) + bytes) / (c.ElementwiseMemory * o.bw),
	}
	c1.seconds = c1.latency + c1.memory
	return c1
}

// sampler returns the cost of sampling; it covers the whole vocabulary on every rank.
func (o *ops) sampler(emit float64) cost {
	c := &o.c.Common
	bytes := c.SamplerBytes
	if o.o.TopP {
		bytes += c.SamplerTopPBytes
	}
	c1 := cost{latency: c.SamplerLaunch, memory: emit * float64(o.d.LLM.Vocab) * bytes / o.bw}
	c1.seconds = c1.latency + c1.memory
	return c1
}
