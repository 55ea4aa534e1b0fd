package model

// Params returns the number of parameters: in total, and used per token. Biases, the small norms inside attention,
// encoders and multi-token prediction modules are omitted.
func (m *LLM) Params() (total, active float64) {
	h := float64(m.Hidden)
	embed := float64(m.Vocab) * h
	total = embed + h + float64(m.LearnedPositions)*h
	if !m.TiedEmbeddings {
		total += embed
	}
	dense, moe := m.mlpLayers()
	for _, x := range m.mixers() {
		total += m.mixerParams(&x, 1) + float64(x.Layers)*h
	}
	total += float64(dense+moe) * h
	total += float64(dense) * m.mlpParams(m.Intermediate)
	total += float64(moe) * (m.sharedParams() + m.routerParams())
	active = total + float64(moe)*float64(m.TopK)*m.expertParams()
	total += float64(moe) * float64(m.Experts) * m.expertParams()
	return total, active
}

// allMixerParams returns the number of weights of all mixers on one of tp ranks.
func (m *LLM) allMixerParams(tp int) (sum float64) {
	for _, x := range m.mixers() {
		sum += m.mixerParams(&x, tp)
	}
	return sum
}

// mixerParams returns the number of weights of all layers of a mixer on one of tp ranks.
func (m *LLM) mixerParams(x *Mixer, tp int) float64 {
	layers := float64(x.Layers)
	switch {
	case x.Kind.Recurrent():
		return layers * m.recurrentParams(x, tp)
	case x.compressed():
		params, _ := m.compressedParams(x, tp)
		return layers * params
	case m.UsesMLA():
		return layers*m.latentParams(tp) + float64(x.Indexer.Layers)*m.indexerParams(&x.Indexer)
	}
	h, heads := float64(m.Hidden), float64(x.Heads)/float64(tp)
	wide := 1.0
	if x.OutputGate {
		wide = 2
	}
	hd, vd := float64(x.HeadDim), float64(x.ValueDim)
	return layers*h*heads*(wide*hd+vd) + (layers-float64(x.SharedKV))*h*x.kvHeadsPerRank(tp)*(hd+vd)
}

// recurrentParams returns the number of weights of a recurrent layer on one of tp ranks: projections of the input,
// the short convolution and the projection of the output. Decay and gates of Gated DeltaNet have a number per head;
// those of KDA have a value for each channel, made by a pair of matrices of rank KeyDim.
func (m *LLM) recurrentParams(x *Mixer, tp int) float64 {
	h, s := float64(m.Hidden), &x.State
	channels, out := float64(s.channels())/float64(tp), float64(s.ValueHeads*s.ValueDim)/float64(tp)
	heads := float64(s.ValueHeads) / float64(tp)
	params := h*channels + channels*float64(s.Conv) + out*h
	switch x.Kind {
	case KimiDelta:
		rank := float64(s.KeyDim)
		return params + h*heads + 2*rank*(h+out)
	case Mamba2:
		return params + h*(out+heads)
	}
	return params + h*(out+2*heads)
}

// indexerParams returns the number of weights of a layer's indexer, which every rank holds.
func (m *LLM) indexerParams(x *Indexer) float64 {
	heads, dim, h := float64(x.Heads), float64(x.Dim), float64(m.Hidden)
	from := float64(m.MLA.QRank)
	if from == 0 {
		from = h
	}
	return from*heads*dim + h*(dim+heads)
}

// latentParams returns the number of weights of a layer of latent attention on one of tp ranks. The down-projections
// are replicated.
func (m *LLM) latentParams(tp int) float64 {
	h, heads := float64(m.Hidden), float64(m.Heads)/float64(tp)
	q, c, r, n, v := m.MLA.dims()
	params := h*(c+r) + heads*c*(n+v) + heads*v*h
	if q == 0 {
		return params + h*heads*(n+r)
	}
	return params + h*q + q*heads*(n+r)
}

func (a *MLA) dims() (q, c, r, n, v float64) {
	return float64(a.QRank), float64(a.KVRank), float64(a.RopeDim), float64(a.NopeDim), float64(a.ValueDim)
}

// kvHeadsPerRank returns the number of key heads on one of tp ranks, at least one.
func (x *Mixer) kvHeadsPerRank(tp int) float64 {
	return max(1, float64(x.KVHeads)/float64(tp))
}

// mlpMatrices returns the number of matrices of an MLP: gate, up and down, or two without a gate.
func (m *LLM) mlpMatrices() float64 {
	if m.UngatedMLP {
		return 2
	}
	return 3
}

func (m *LLM) mlpParams(width int) float64 {
	return m.mlpMatrices() * float64(m.Hidden) * float64(width)
}

// expertDim returns the width of the input of routed experts.
func (m *LLM) expertDim() float64 {
	if m.LatentDim > 0 {
		return float64(m.LatentDim)
	}
	return float64(m.Hidden)
}

// expertParams returns the number of parameters of one routed expert.
func (m *LLM) expertParams() float64 {
	return m.mlpMatrices() * m.expertDim() * float64(m.MoEIntermediate)
}

// sharedParams returns the number of parameters of a layer's shared experts, and of the projections to and from the
// width of its routed experts.
func (m *LLM) sharedParams() float64 {
	return m.mlpParams(m.SharedIntermediate) + 2*float64(m.Hidden)*float64(m.LatentDim)
}

// floatMLPLayers returns the layers with a dense MLP, and those with experts, as numbers for sums of times.
func (m *LLM) floatMLPLayers() (dense, moe float64) {
	d, e := m.mlpLayers()
	return float64(d), float64(e)
}

func (m *LLM) routerParams() float64 { return float64(m.Experts) * float64(m.Hidden) }
