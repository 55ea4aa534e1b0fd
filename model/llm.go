package model

import "clifftop/internal/faults"

// LLM has the dimensions of a language model that determine its computation and memory. Names follow the
// config.json files of Hugging Face where they agree.
type LLM struct {
	Name    string
	Aliases []string // other names, such as Hugging Face ids
	Source  string   // where the figures come from

	Layers         int
	Hidden         int // width of the residual stream
	Heads          int // query heads
	KVHeads        int // key and value heads
	HeadDim        int
	Intermediate   int // width of the gated MLP of a dense layer
	Vocab          int
	TiedEmbeddings bool // the output head shares the embedding matrix
	MaxContext     int  // tokens

	Experts            int // routed experts per layer; 0 for a dense model
	TopK               int // experts per token
	MoEIntermediate    int // width of one expert
	SharedIntermediate int // total width of the shared experts
	FirstDenseLayers   int // leading layers without experts

	SlidingWindow  int // tokens that a windowed layer attends to
	WindowedLayers int // number of layers with the window
	// ChunkedWindow means that windows are chunks with fixed bounds (chunked local attention). vLLM keeps the KV of
	// whole sequences in those layers by default.
	ChunkedWindow bool

	MLA MLA // multi-head latent attention; zero means none

	Unfused UnfusedKernels // additional kernels of expert layers

	Precision    Precision // native format of the weights outside the experts
	MoEPrecision Precision // native format of the experts; Auto means Precision
}

// MLA has the dimensions of multi-head latent attention, which caches one compressed vector of KVRank+RopeDim
// numbers per token and layer instead of keys and values per head.
type MLA struct {
	QRank    int // rank of the query compression; 0 means a direct projection
	KVRank   int // rank of the KV compression
	RopeDim  int // positional part of a head, shared by all heads in the cache
	NopeDim  int // non-positional part of a query or key head
	ValueDim int // width of a value head
}

// UnfusedKernels is the time of small kernels that engines run in every expert layer of some models: 32-bit
// routing, scores and norms across ranks, block quantisation of activations. Launches and memory limit them; they
// take about the same time on all GPUs.
type UnfusedKernels struct {
	LayerSeconds float64 // per layer and step
	TokenSeconds float64 // per layer and token
}

// UsesMLA reports whether the model has multi-head latent attention.
func (m *LLM) UsesMLA() bool { return m.MLA.KVRank > 0 }

// denseLayers returns the number of layers with a dense MLP.
func (m *LLM) denseLayers() int {
	if m.Experts == 0 {
		return m.Layers
	}
	return m.FirstDenseLayers
}

// Limits that keep every product of dimensions within the exact range of a float64 and within an int64.
const (
	maxDimension = 1 << 24
	maxLayers    = 1 << 12
)

// Validate returns all missing or contradictory dimensions joined into one error.
func (m *LLM) Validate() error {
	var f faults.List
	faults.Within(&f, "layers", m.Layers, 1, maxLayers)
	dimension(&f, "hidden", m.Hidden)
	dimension(&f, "heads", m.Heads)
	dimension(&f, "kv_heads", m.KVHeads)
	dimension(&f, "head_dim", m.HeadDim)
	dimension(&f, "vocab", m.Vocab)
	faults.Within(&f, "max_context", m.MaxContext, 0, maxDimension)
	faults.Within(&f, "shared_intermediate", m.SharedIntermediate, 0, maxDimension)
	if m.KVHeads > 0 && m.Heads%m.KVHeads != 0 {
		f.Addf("heads %d is not a multiple of kv_heads %d", m.Heads, m.KVHeads)
	}
	if m.denseLayers() > 0 {
		dimension(&f, "intermediate", m.Intermediate)
	}
	if m.Experts != 0 {
		m.validateExperts(&f)
	}
	m.validateAttention(&f)
	if m.Precision >= precisions || m.MoEPrecision >= precisions {
		f.Addf("unknown native precision")
	}
	return f.Err()
}

// validateExperts checks the dimensions of the experts.
func (m *LLM) validateExperts(f *faults.List) {
	dimension(f, "experts", m.Experts)
	dimension(f, "moe_intermediate", m.MoEIntermediate)
	if m.TopK < 1 || m.TopK > m.Experts {
		f.Addf("top_k is %d (want 1 to the %d experts)", m.TopK, m.Experts)
	}
	if m.FirstDenseLayers < 0 || m.FirstDenseLayers > m.Layers {
		f.Addf("first_dense_layers is %d (want 0 to the %d layers)", m.FirstDenseLayers, m.Layers)
	}
}

// validateAttention checks windows and latent attention, which cannot be combined.
func (m *LLM) validateAttention(f *faults.List) {
	if m.WindowedLayers < 0 || m.WindowedLayers > m.Layers {
		f.Addf("windowed layers are %d (want 0 to the %d layers)", m.WindowedLayers, m.Layers)
	}
	if m.WindowedLayers > 0 {
		dimension(f, "sliding_window", m.SlidingWindow)
	}
	if m.MLA == (MLA{}) {
		return
	}
	faults.Within(f, "q_rank", m.MLA.QRank, 0, maxDimension)
	dimension(f, "kv_rank", m.MLA.KVRank)
	dimension(f, "rope_dim", m.MLA.RopeDim)
	dimension(f, "nope_dim", m.MLA.NopeDim)
	dimension(f, "value_dim", m.MLA.ValueDim)
	if m.WindowedLayers > 0 {
		f.Addf("windowed layers with multi-head latent attention are not modelled")
	}
}

// dimension checks that a dimension of the model is given and within bounds.
func dimension(f *faults.List, name string, v int) { faults.Within(f, name, v, 1, maxDimension) }
