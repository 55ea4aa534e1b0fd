package model

// Names of the terms of a step in [Kernels.Explain].
const (
	termProjections = "attention projections"
	termDecode      = "decode attention"
	termPrefill     = "prefill attention"
	termMixed       = "mixed attention"
	termUp          = "latent up-projection"
	termMLP         = "mlp"
	termElementwise = "elementwise"
	termExperts     = "experts"
	termRouter      = "router"
	termShared      = "shared experts"
	termUnfused     = "unfused layer kernels"
	termAllReduce   = "all-reduce"
	termExchange    = "expert exchange"
	termHops        = "stage transfers"
	termHead        = "output head"
	termSampler     = "sampler"
	termExtra       = "extra layer time"
	termStep        = "step overhead"
	termSequences   = "sequence overhead"
	termEager       = "eager launches"
)

// termFunc receives each term of a sum.
type termFunc func(name, row string, c cost)

// tokenTerms lists the terms that depend only on the number m of tokens in the step, over all layers.
func (o *ops) tokenTerms(m float64, v termFunc) {
	d, llm := o.d, &o.d.LLM
	layers := float64(llm.Layers)
	dense, moe := llm.floatMLPLayers()
	row := o.c.GEMM[d.Dtype].Row

	v(termProjections, row, o.projections(m).times(layers))
	reduce := o.layerReduce(m)
	reduces := layers + dense
	small := o.elementwise(m, 0).times(moe)
	if dense > 0 {
		width := float64(llm.Intermediate) / o.tp
		v(termMLP, row, o.mlp(m, width).times(dense))
		small = small.plus(o.elementwise(m, width).times(dense))
	}
	if moe > 0 {
		tokens := m * float64(d.DataParallel)
		v(termExperts, o.c.MoE[d.MoEDtype].Row, o.experts(tokens).times(moe))
		v(termRouter, o.c.GEMM[BF16].Row, o.gemm(m, float64(llm.Experts), o.h, BF16).times(moe))
		if u := llm.Unfused; u != (UnfusedKernels{}) && !o.o.FuseLayerKernels {
			c := cost{latency: u.LayerSeconds, memory: m * u.TokenSeconds}
			c.seconds = c.latency + c.memory
			v(termUnfused, llm.Name, c.times(moe))
		}
		if llm.SharedIntermediate > 0 {
			v(termShared, row, o.mlp(m, float64(llm.SharedIntermediate)/o.tp).times(moe))
		}
		if d.DataParallel > 1 {
			v(termExchange, o.comm.c.Row, o.comm.exchange(2*tokens*o.h, d.moeRanks()).times(moe))
		} else {
			reduces += moe
		}
	}
	v(termElementwise, "common", small)
	if d.TensorParallel > 1 {
		v(termAllReduce, o.comm.c.Row, reduce.times(reduces))
	}
	if d.PipelineParallel > 1 {
		v(termHops, "engineering estimate", o.comm.stageHops(2*m*o.h, d))
	}
}

// projections returns the dense products around attention in one layer.
func (o *ops) projections(m float64) cost {
	w := o.d.Dtype
	if !o.d.LLM.UsesMLA() {
		return o.gemm(m, (o.q+2*o.kv)*o.hd, o.h, w).plus(o.gemm(m, o.h, o.q*o.hd, w))
	}
	q, c, r, n, v := o.d.LLM.MLA.dims()
	out := o.gemm(m, o.h, o.q*v, w)
	if q == 0 {
		return out.plus(o.gemm(m, c+r, o.h, w)).plus(o.gemm(m, o.q*(n+r), o.h, w))
	}
	return out.plus(o.gemm(m, q+c+r, o.h, w)).plus(o.gemm(m, o.q*(n+r), q, w))
}

// mlp returns an MLP of the given width on this rank: gate and up in one product, then down.
func (o *ops) mlp(m, width float64) cost {
	return o.gemm(m, (o.d.LLM.mlpMatrices()-1)*width, o.h, o.d.Dtype).plus(o.gemm(m, o.h, width, o.d.Dtype))
}

// emitTerms lists the terms that depend only on the number of sequences that emit a token.
func (o *ops) emitTerms(emit float64, v termFunc) {
	v(termHead, o.c.GEMM[BF16].Row, o.gemm(emit, o.voc, o.h, BF16))
	if o.d.TensorParallel > 1 {
		v(termAllReduce, o.comm.c.Row, o.comm.allReduce(emit*o.voc*2, o.d.TensorParallel))
	}
	v(termSampler, "common", o.sampler(emit))
}

// fixedTerms lists the terms of every step.
func (o *ops) fixedTerms(v termFunc) {
	v(termStep, "common", latency(o.o.Overheads.Step.Seconds()))
	if o.o.ExtraLayerTime > 0 {
		v(termExtra, "option", latency(o.o.ExtraLayerTime.Seconds()*float64(o.d.LLM.Layers)))
	}
}

func latency(seconds float64) cost { return cost{seconds: seconds, latency: seconds} }

// total sums the seconds of terms.
func total(terms func(termFunc)) float64 {
	sum := 0.0
	terms(func(_, _ string, c cost) { sum += c.seconds })
	return sum
}
