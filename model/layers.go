package model

// Names of the terms of a step in [Kernels.Explain].
const (
	termProjections = "attention projections"
	termDecode      = "decode attention"
	termPrefill     = "prefill attention"
	termMixed       = "mixed attention"
	termRecurrence  = "recurrence"
	termImages      = "image encoder"
	termUp          = "latent up-projection"
	termMLP         = "mlp"
	termElementwise = "elementwise"
	termExperts     = "experts"
	termRouter      = "router"
	termShared      = "shared experts"
	termLatent      = "projections of experts"
	termStreams     = "residual streams"
	termUnfused     = "unfused layer kernels"
	termAllReduce   = "all-reduce"
	termExchange    = "expert exchange"
	termOverlap     = "two batches"
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

// tokenTerms lists the terms that depend only on the number m of tokens in the step, over all layers. Data-parallel
// ranks that share the experts have the terms of [ops.groupTerms] and [exchanger.exchangeTerms] in addition.
func (o *ops) tokenTerms(m float64, v termFunc) {
	d, llm := o.d, &o.d.LLM
	dense, moe := llm.floatMLPLayers()
	row := o.c.GEMM[d.Dtype].Row

	reduces, recurrent := dense, 0.0
	var projections, small cost
	for i := range o.classes {
		c := &o.classes[i]
		projections = projections.plus(o.projections(c, m))
		small = small.plus(o.mixerElementwise(c, m).times(c.layers))
		reduces += c.layers
		if c.Kind.Recurrent() {
			recurrent += c.layers
		}
	}
	o.unfusedTerm(m, "engine", o.o.UnfusedRecurrence, recurrent, v)
	v(termProjections, o.c.GEMM[d.AttentionDtype].Row, projections)
	reduce := o.layerReduce(m)
	if dense > 0 {
		width := float64(llm.Intermediate) / o.tp
		v(termMLP, row, o.mlp(m, width).times(dense))
		small = small.plus(o.mlpElementwise(m, width).times(dense))
	}
	small = small.plus(o.mlpElementwise(m, 0).times(moe))
	if moe > 0 {
		if d.DataParallel == 1 {
			o.groupTerms(m, v)
			reduces += moe
		}
		v(termRouter, o.c.GEMM[BF16].Row, o.gemm(m, float64(llm.Experts), o.h, BF16).times(moe))
		o.unfusedTerm(m, llm.Name, llm.Unfused, moe, v)
		if llm.SharedIntermediate > 0 {
			v(termShared, row, o.mlp(m, float64(llm.SharedIntermediate)/o.tp).times(moe))
		}
		if latent := float64(llm.LatentDim); latent > 0 {
			v(termLatent, row, o.gemm(m, latent, o.h, d.Dtype).plus(o.gemm(m, o.h, latent, d.Dtype)).times(moe))
		}
	}
	v(termElementwise, "common", small)
	if llm.Streams > 1 && !o.o.PlainLayers {
		v(termStreams, o.c.Streams.Row, compressedOps{o}.streams(m).times(
			2*float64(llm.Layers)-float64(llm.MixerOnlyLayers)))
	}
	if d.TensorParallel > 1 {
		v(termAllReduce, o.comm.c.Row, reduce.times(reduces))
	}
	if d.PipelineParallel > 1 {
		v(termHops, "engineering estimate", o.comm.stageHops(2*m*o.h, d))
	}
}

// unfusedTerm lists the additional small kernels of some layers.
func (o *ops) unfusedTerm(m float64, row string, u UnfusedKernels, layers float64, v termFunc) {
	if u == (UnfusedKernels{}) || o.o.FuseLayerKernels || layers == 0 {
		return
	}
	c := cost{latency: u.LayerSeconds, memory: m * u.TokenSeconds}
	c.seconds = c.latency + c.memory
	v(termUnfused, row, c.times(layers))
}

// projections returns the dense products around the token mixers of a class, in all its layers.
func (o *ops) projections(x *layerClass, m float64) cost {
	w := o.d.AttentionDtype
	switch {
	case x.Kind.Recurrent():
		return o.recurrentProjections(x, m).times(x.layers)
	case x.compressed():
		return compressedOps{o}.projections(x, m).times(x.layers)
	case !o.d.LLM.UsesMLA():
		gate := 0.0
		if x.OutputGate {
			gate = x.q * x.hd
		}
		all := o.gemm(m, gate+x.q*x.hd+x.kv*(x.hd+x.vd), o.h, w).times(x.storing)
		if sharing := x.layers - x.storing; sharing > 0 {
			all = all.plus(o.gemm(m, gate+x.q*x.hd, o.h, w).times(sharing))
		}
		return all.plus(o.gemm(m, o.h, x.q*x.vd, w).times(x.layers))
	}
	q, c, r, n, v := o.d.LLM.MLA.dims()
	all := o.gemm(m, o.h, o.q*v, w)
	if q == 0 {
		all = all.plus(o.gemm(m, c+r, o.h, w)).plus(o.gemm(m, o.q*(n+r), o.h, w))
	} else {
		all = all.plus(o.gemm(m, q+c+r, o.h, w)).plus(o.gemm(m, o.q*(n+r), q, w))
	}
	all = all.times(x.layers)
	if i := &x.Indexer; i.TopK > 0 {
		from := q
		if q == 0 {
			from = o.h
		}
		index := o.gemm(m, float64(i.Heads*i.Dim), from, w).plus(o.gemm(m, float64(i.Dim), o.h, w))
		all = all.plus(index.plus(o.gemm(m, float64(i.Heads), o.h, BF16)).times(float64(i.Layers)))
	}
	return all
}

// recurrentProjections returns the dense products of a recurrent layer: of the inputs, of gates and decays, and of the
// output. KDA makes its gates by pairs of narrow matrices.
func (o *ops) recurrentProjections(x *layerClass, m float64) cost {
	s, w := &x.State, o.d.AttentionDtype
	channels, out := float64(s.channels())/o.tp, float64(s.ValueHeads*s.ValueDim)/o.tp
	heads := float64(s.ValueHeads) / o.tp
	all := o.gemm(m, o.h, out, w)
	switch x.Kind {
	case KimiDelta:
		rank := float64(s.KeyDim)
		return all.plus(o.gemm(m, channels, o.h, w)).plus(o.gemm(m, 2*rank+heads, o.h, w)).
			plus(o.gemm(m, out, rank, w).times(2))
	case Mamba2:
		return all.plus(o.gemm(m, channels+out+heads, o.h, w))
	}
	return all.plus(o.gemm(m, channels+out, o.h, w)).plus(o.gemm(m, 2*heads, o.h, w))
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
