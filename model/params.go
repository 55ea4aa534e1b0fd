package model

// Params returns the number of parameters: in total, and used per token. Biases and the small norms inside
// attention are omitted; they are well below 0.1 %.
func (m *LLM) Params() (total, active float64) {
	h := float64(m.Hidden)
	embed := float64(m.Vocab) * h
	total = embed + h
	if !m.TiedEmbeddings {
		total += embed
	}
	dense := float64(m.denseLayers())
	moe := float64(m.Layers) - dense
	total += float64(m.Layers) * (m.attentionParams(1) + 2*h)
	total += dense * 3 * h * float64(m.Intermediate)
	total += moe * (m.sharedParams() + m.routerParams())
	active = total + moe*float64(m.TopK)*m.expertParams()
	total += moe * float64(m.Experts) * m.expertParams()
	return total, active
}

// attentionParams returns the number of attention weights of a layer on one of tp ranks. Key and value heads are
// replicated if there are fewer of them than ranks; so are the down-projections of latent attention.
func (m *LLM) attentionParams(tp int) float64 {
	h, heads := float64(m.Hidden), float64(m.Heads)/float64(tp)
	if !m.UsesMLA() {
		qkv := heads + 2*m.kvHeadsPerRank(tp)
		return h * (qkv + heads) * float64(m.HeadDim)
	}
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
func (m *LLM) kvHeadsPerRank(tp int) float64 {
	return max(1, float64(m.KVHeads)/float64(tp))
}

// expertParams returns the number of parameters of one routed expert: gate, up and down matrices.
func (m *LLM) expertParams() float64 {
	return 3 * float64(m.Hidden) * float64(m.MoEIntermediate)
}

// sharedParams returns the number of parameters of a layer's shared experts.
func (m *LLM) sharedParams() float64 {
	return 3 * float64(m.Hidden) * float64(m.SharedIntermediate)
}

func (m *LLM) routerParams() float64 { return float64(m.Experts) * float64(m.Hidden) }
