package model_test

import (
	"math"
	"math/bits"

	"clifftop/model"
)

// reference computes the step time in seconds with the formulas as they are written, in floating point and without
// tables. Kernels must agree with it.
type reference struct {
	d    *model.Deployment
	topP bool
	pad  bool
	fuse bool // all-reduces with the norms after them
}

func (r *reference) gemm(m, n, k float64, w model.Precision) float64 {
	c := r.d.GPU.Kernels.GEMM[w]
	ab := map[model.Precision]float64{model.FP8: 1, model.NVFP4: 0.5625}[c.Arithmetic]
	if ab == 0 {
		ab = 2
	}
	compute := 2 * m * n * k / (r.d.GPU.Peak(c.Arithmetic) * c.Compute)
	memory := (n*k*w.WeightBytes() + m*k*ab + m*n*2) / (r.d.GPU.HBMBytesPerSecond * c.Memory)
	return c.Launch + k*c.PerK + math.Pow(math.Pow(compute, c.Exponent)+math.Pow(memory, c.Exponent), 1/c.Exponent)
}

// regime returns the measured time of an all-reduce in a group of n; ok is false if there is none.
func (r *reference) regime(kernels model.ReduceKernels, bytes float64, n int) (seconds float64, ok bool) {
	i := map[int]int{2: 0, 3: 1, 4: 1}[n]
	if n > 4 {
		i = 2
	}
	for _, g := range r.d.GPU.Kernels.AllReduce.Regimes[kernels][i] {
		if bytes < g.Below {
			return g.Latency + bytes*g.SecondsPerByte, true
		}
	}
	return 0, false
}

// allReduce returns the time of the engine's all-reduce, or with latencies 0 the transfer alone.
func (r *reference) allReduce(bytes float64, n int, latencies float64) float64 {
	if n == 1 {
		return 0
	}
	domain := r.d.GPU.DomainSize()
	if t, ok := r.regime(model.ReduceVLLM, bytes, n); ok && latencies > 0 {
		if n > domain {
			nodes := math.Ceil(float64(n) / float64(domain))
			t += 2*(nodes-1)/nodes*bytes/(float64(domain)*0.8*r.d.GPU.NICBytesPerSecond) + 20e-6*math.Ceil(math.Log2(nodes))
		}
		return t
	}
	i := map[bool]int{true: 0, false: 1}[n <= 2]
	if n > 4 {
		i = 2
	}
	c := r.d.GPU.Kernels.AllReduce
	inside := float64(min(n, domain))
	t := latencies*c.Latency[i] + 2*(inside-1)/inside*bytes/c.BusBytesPerSecond[i]
	if n > domain {
		nodes := math.Ceil(float64(n) / float64(domain))
		t += 2*(nodes-1)/nodes*bytes/(float64(domain)*0.8*r.d.GPU.NICBytesPerSecond) + latencies*20e-6*math.Ceil(math.Log2(nodes))
	}
	return t
}

// dispersion returns how evenly tokens are routed: that of the model, of the row of the GPU, or 12.
func (r *reference) dispersion() float64 {
	for _, a := range []float64{r.d.LLM.RoutingDispersion, r.d.GPU.Kernels.MoE[r.d.MoEDtype].Dispersion} {
		if a > 0 {
			return a
		}
	}
	return 12
}

func (r *reference) moe(tokens float64) float64 {
	m, c := r.d.LLM, r.d.GPU.Kernels.MoE[r.d.MoEDtype]
	bw := r.d.GPU.HBMBytesPerSecond
	ep, e, k, h := float64(r.d.ExpertParallel), float64(m.Experts), float64(m.TopK), float64(m.Hidden)
	width := float64(m.MoEIntermediate) / (float64(r.d.TensorParallel*r.d.DataParallel) / ep)
	tokens *= r.imbalance(tokens)
	slots, local := tokens*k/ep, e/ep
	active := local
	if e > k {
		a := r.dispersion()
		active = math.Min(local, math.Max(math.Min(local, k/ep), local*(1-math.Pow(1+tokens*k/(e*a), -a))))
	}
	compute := 6 * h * width * (slots + active*c.TileRows) * (1 +
		c.ShortK/width) / (r.d.GPU.Peak(c.Arithmetic) * c.Compute)
	memory := active * 3 * h * width * r.d.MoEDtype.WeightBytes() / (bw * c.Memory)
	both := compute + memory
	if c.Exponent == 2 {
		both = math.Sqrt(compute*compute + memory*memory)
	}
	return c.Launch + slots*(3*h+6*width)*2/(0.9*bw) + both
}

// imbalance returns the greatest of the ranks' loads, taken for normal variables, over the mean.
func (r *reference) imbalance(tokens float64) float64 {
	ep := float64(r.d.ExpertParallel)
	if ep == 1 {
		return 1
	}
	greatest := 0.0 // its distribution function is the product of theirs
	const width = 1e-3
	for x := width / 2; x < 10; x += width {
		below := func(x float64) float64 { return math.Pow(math.Erfc(-x/math.Sqrt2)/2, ep) }
		greatest += width * (1 - below(x) - below(-x))
	}
	deviation := math.Sqrt((ep-1)/(tokens*float64(r.d.LLM.TopK)) +
		(ep-1)/(r.dispersion()*float64(r.d.LLM.Experts)))
	return math.Min(ep, 1+greatest*deviation)
}

// layerReduce returns the time of one of a layer's all-reduces, and the latency of the norm that it contains.
func (r *reference) layerReduce(bytes float64) (seconds, norm float64) {
	n, c := r.d.TensorParallel, r.d.GPU.Kernels.AllReduce
	i := map[int]int{2: 0, 4: 1, 8: 2}[n]
	if !r.fuse || n < 2 || n > 8 || bytes > c.FusedBytes[i] {
		return r.allReduce(bytes, n, 1), 0
	}
	if t, ok := r.regime(model.ReduceTRTLLM, bytes, n); ok {
		return t, r.d.GPU.Kernels.Common.ElementwiseLaunch
	}
	return r.allReduce(bytes, n, 0) + c.FusedLatency, r.d.GPU.Kernels.Common.ElementwiseLaunch
}

func (r *reference) step(b *model.Batch) float64 {
	d, llm := r.d, r.d.LLM
	bw, peak := d.GPU.HBMBytesPerSecond, d.GPU.BF16FLOPs
	h, hd, layers := float64(llm.Hidden), float64(llm.HeadDim), float64(llm.Layers)
	tp := float64(d.TensorParallel)
	heads, kv := float64(llm.Heads)/tp, math.Max(1, float64(llm.KVHeads)/tp)
	nd, chunks := float64(b.Decodes), float64(len(b.Chunks))
	m := nd
	for _, c := range b.Chunks {
		m += float64(c.New)
	}
	if r.pad && m <= 512 {
		for _, size := range []float64{1, 2, 4} {
			if m <= size {
				m = size
				break
			}
		}
		if m > 4 && m <= 256 {
			m = math.Ceil(m/8) * 8
		} else if m > 256 {
			m = math.Ceil(m/16) * 16
		}
	}

	// Terms of the number of tokens.
	var lin, qb float64
	if a := llm.MLA; llm.UsesMLA() {
		q, c, rope, n, v := float64(a.QRank), float64(a.KVRank), float64(a.RopeDim), float64(a.NopeDim),
			float64(a.ValueDim)
		if q > 0 {
			lin = r.gemm(m, q+c+rope, h, d.AttentionDtype) + r.gemm(m, heads*(n+rope), q, d.AttentionDtype)
		} else {
			lin = r.gemm(m, c+rope, h, d.AttentionDtype) + r.gemm(m, heads*(n+rope), h, d.AttentionDtype)
		}
		lin += r.gemm(m, h, heads*v, d.AttentionDtype)
		qb = m * 2 * (2*(q+c) + 2*heads*(n+rope))
	} else {
		lin = r.gemm(m, (heads+2*kv)*hd, h, d.AttentionDtype) + r.gemm(m, h, heads*hd, d.AttentionDtype)
		qb = m * 2 * 2 * (heads + 2*kv) * hd
	}
	if llm.UsesMLA() {
		qb += m * 2 * 2 * float64(llm.MLA.RopeDim)
	}
	reduce, norm := r.layerReduce(2 * m * h)
	g := &d.GPU.Kernels.Common // some records replace its rows
	ew := func(a float64) float64 {
		return 5*g.ElementwiseLaunch - 2*norm + (16*m*h+qb+6*m*a)/(g.ElementwiseMemory*bw)
	}
	dense := layers
	if llm.Experts > 0 {
		dense = float64(llm.DenseLayers)
	}
	width := float64(llm.Intermediate) / tp
	t := layers * (lin + reduce)
	if dense > 0 {
		t += dense * (r.gemm(m, 2*width, h, d.Dtype) + r.gemm(m, h, width, d.Dtype) + ew(width) + reduce)
	}
	if layers > dense {
		mt := m * float64(d.DataParallel)
		x := r.moe(mt) + r.gemm(m, float64(llm.Experts), h, model.BF16) + ew(0)
		x += llm.Unfused.LayerSeconds + m*llm.Unfused.TokenSeconds
		if s := float64(llm.SharedIntermediate) / tp; s > 0 {
			x += r.gemm(m, 2*s, h, d.Dtype) + r.gemm(m, h, s, d.Dtype)
		}
		if d.DataParallel == 1 {
			x += reduce
		} else {
			n := d.TensorParallel * d.DataParallel
			x += r.allReduce(2*mt*h, n, 0) + 3*d.GPU.Kernels.AllReduce.NCCLLatency[min(bits.Len(uint(n-1)), 3)-1]
			if domain := d.GPU.DomainSize(); n > domain {
				x += 3 * 20e-6 * math.Ceil(math.Log2(math.Ceil(float64(n)/float64(domain))))
			}
		}
		t += (layers - dense) * x
	}
	if hops := float64(d.PipelineParallel - 1); hops > 0 {
		link := 0.6 * d.GPU.ScaleUpBytesPerSecond
		if d.GPUs() > d.GPU.DomainSize() {
			link = 0.8 * d.GPU.NICBytesPerSecond
		}
		t += hops * (10e-6 + 2*m*h/tp/link)
	}

	// Attention.
	sc := math.Max(math.Floor(float64(b.Context)/10), float64(b.Context-b.SharedTokens))
	full := layers - float64(windowed(&llm))
	decodes, rest := r.attention(b, nd, sc, math.Inf(1), kv, heads, hd, bw, peak)
	decodes, rest = full*decodes, full*rest
	if windowed(&llm) > 0 {
		d, o := r.attention(b, nd, sc, float64(window(&llm)), kv, heads, hd, bw, peak)
		decodes += float64(windowed(&llm)) * d
		rest += float64(windowed(&llm)) * o
	}
	if decodes > 0 { // sharing spares no arithmetic
		context := float64(b.Context)
		arithmetic := 4 * heads * hd * (full*context + (layers-full)*math.Min(context,
			nd*float64(window(&llm)))) / peak
		if llm.UsesMLA() {
			arithmetic = 2 * heads * float64(2*llm.MLA.KVRank+llm.MLA.RopeDim) * layers * context / latentRate(d)
		}
		decodes = math.Max(decodes, arithmetic)
	}
	t += decodes + rest

	emit, vocab := float64(b.Emit), float64(llm.Vocab)
	t += r.gemm(emit, vocab/tp, h, model.BF16) + 15e-6 + emit*vocab*10/bw + r.allReduce(emit*vocab/tp*2,
		d.TensorParallel, 1)
	if r.topP {
		t += emit * vocab * 350 / bw
	}
	return t + d.GPU.Kernels.Common.StepOverhead + d.GPU.Kernels.Common.SequenceOverhead*(nd+chunks)
}

// attention of a layer: what depends on the decodes, and the rest.
func (r *reference) attention(b *model.Batch, nd, sc, window, kv, heads, hd, bw, peak float64) (decodes, rest float64) {
	d := r.d
	if d.LLM.UsesMLA() {
		return r.latentAttention(b, nd, sc, heads, bw, peak)
	}
	kvb := 2.0
	if d.KVDtype == model.FP8 {
		kvb = 1
	}
	inWindow := math.Min(sc, nd*window)
	read := kv * hd * 2 * kvb
	c, p := d.GPU.Kernels.Decode[d.KVDtype], d.GPU.Kernels.Prefill
	dec, launch := 0.0, 0.0
	if nd > 0 {
		launch = c.Launch
		stream := inWindow * math.Max(read/(bw*c.Memory), 4*heads*hd/peak)
		dec = math.Pow(math.Pow(nd*kv*c.Sequence, 1.5)+math.Pow(stream, 1.5), 2.0/3)
	}
	if len(b.Chunks) == 0 {
		return dec, launch
	}
	if d.GPU.AttentionBackend == model.FA2 {
		real := math.Min(float64(b.Context), nd*window)
		work, longest, bytes := heads*(real+200*nd), 0.0, inWindow*read
		if nd > 0 {
			longest = real/nd + 200
		}
		for _, ch := range b.Chunks {
			n, cached := float64(ch.New), float64(ch.Cached)
			work += heads * math.Ceil(n/64) * (math.Min(cached+n/2, window) + 200)
			longest = math.Max(longest, math.Min(cached, window)+200)
			bytes += math.Min(cached+n, window) * read
		}
		mix := 0.6*p.Launch + 4*64*hd*math.Max(work, float64(d.GPU.SMs)*longest)/(peak*d.GPU.Kernels.Mixed.Compute)
		return 0, math.Max(mix, math.Max(launch+dec, bytes/bw))
	}
	pf := p.Launch
	for _, ch := range b.Chunks {
		n, cached := float64(ch.New), float64(ch.Cached)
		pf += 4 * heads * hd * n * (math.Min(cached+n/2, window) + p.Delta) / (peak * p.Compute)
	}
	return dec, launch + pf
}

// latentRate is the FLOP/s of the decode attention of latent attention.
func latentRate(d *model.Deployment) float64 {
	if g := &d.GPU.Kernels.Common; g.MLADecodeFP8 > 0 && d.KVDtype == model.FP8 {
		return g.MLADecodeFP8 * d.GPU.FP8FLOPs
	}
	return d.GPU.Kernels.Common.MLADecodeCompute * d.GPU.BF16FLOPs
}

func (r *reference) latentAttention(b *model.Batch, nd, sc, heads, bw, peak float64) (decodes, rest float64) {
	a, g := r.d.LLM.MLA, &r.d.GPU.Kernels.Common
	c, rope, n, v := float64(a.KVRank), float64(a.RopeDim), float64(a.NopeDim), float64(a.ValueDim)
	kvb := 2.0
	if r.d.KVDtype == model.FP8 {
		kvb = 1
	}
	if nd > 0 {
		memory := g.MLADecodeMemory
		if g.MLADecode32Heads > 0 && heads > 16 && heads <= 32 {
			memory = g.MLADecode32Heads
		}
		decodes = nd*g.MLADecodeSequence + math.Hypot(2*sc*heads*(2*c+rope)/latentRate(r.d),
			sc*(c+rope)*kvb/(memory*bw))
		decodes += 2 * nd * heads * c * (n + v) / (0.5 * peak)
		rest = g.MLADecodeLaunch + 2*heads*c*(n+v)/(0.6*bw) + 6e-6
	}
	if len(b.Chunks) > 0 {
		rest += g.MLAPrefillLaunch
		sum := 0.0
		for _, ch := range b.Chunks {
			nw, ca := float64(ch.New), float64(ch.Cached)
			sum += nw + ca
			rest += 2 * heads * (n + rope + v) * nw * (ca + nw/2 + g.MLAPrefillDelta) / (g.MLAPrefillCompute * peak)
		}
		rest += r.gemm(sum, heads*(n+v), c, r.d.AttentionDtype)
	}
	return decodes, rest
}

// readBound returns the time to read the caches of a step's chunks, below which the prefill attention of all layers
// together never is; the formulas above leave it out.
func readBound(d *model.Deployment, b *model.Batch) float64 {
	sum := 0.0
	perLayer := float64(d.KVBytesPerToken()) / float64((d.LLM.Layers+d.PipelineParallel-1)/d.PipelineParallel)
	for _, c := range b.Chunks {
		n := float64(c.New) + float64(c.Cached)
		sum += perLayer * (float64(d.LLM.Layers-windowed(&d.LLM))*n + float64(windowed(&d.LLM))*math.Min(n,
			float64(window(&d.LLM))))
	}
	return sum / d.GPU.HBMBytesPerSecond
}

// window returns the tokens of the windows.
func window(m *model.LLM) int {
	for _, x := range m.Mixers {
		if x.Window > 0 {
			return x.Window
		}
	}
	return 0
}
