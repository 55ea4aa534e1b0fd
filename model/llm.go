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

	MoE // the experts; zero for a dense model

	// Mixers lists the layers by kind of their token mixer, in order of first appearance. Empty means that all layers
	// have attention to all tokens. Layers without a mixer (Nemotron-H) are those that the list leaves out.
	Mixers []Mixer
	// MixerOnlyLayers is the number of layers without an MLP (Nemotron-H).
	MixerOnlyLayers int
	// UngatedMLP means that an MLP or expert has two matrices, up and down, instead of three (OPT, Nemotron).
	UngatedMLP bool
	// LearnedPositions is the number of rows of a learned position embedding (OPT).
	LearnedPositions int
	// MTPLayers is the number of multi-token prediction modules. They are not among Layers, and their weights are not
	// among the parameters.
	MTPLayers int
	// Encoder is the encoder of images of a multimodal model.
	Encoder Encoder

	MLA MLA // multi-head latent attention; zero means none

	// Streams is the number of residual streams, which hyper-connections mix before and after each mixer and MLP; 0 or
	// 1 means a plain residual.
	Streams int

	Unfused UnfusedKernels // additional kernels of expert layers

	Precision    Precision // native format of the weights outside the experts
	MoEPrecision Precision // native format of the experts; Auto means Precision

	// LeftOut says what a config.json has and the model leaves out; see [ReadUnknownConfig].
	LeftOut []string
}

// MoE has the dimensions of a mixture of experts.
type MoE struct {
	Experts            int // routed experts per layer; 0 for a dense model
	TopK               int // experts per token
	MoEIntermediate    int // width of one expert
	SharedIntermediate int // total width of the shared experts
	DenseLayers        int // layers with a dense MLP instead of experts, in any position
	// LatentDim is the width at which routed experts work, between a shared down- and up-projection (LatentMoE); 0
	// means Hidden.
	LatentDim int
	// RoutingDispersion says how evenly the model's tokens use the experts: see [KernelOptions]. 0 means not known.
	RoutingDispersion float64
}

// Encoder has the dimensions of an encoder for images. Zero means none.
type Encoder struct {
	Params          float64 // number of parameters; weights have 16 bits
	Layers          int
	Hidden          int
	Intermediate    int
	TokensPerImage  int // tokens of an image in the language model, at the usual resolution
	PatchesPerImage int // tokens of an image in the encoder
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

// mlpLayers returns the number of layers with a dense MLP, and of those with experts.
func (m *LLM) mlpLayers() (dense, moe int) {
	n := m.Layers - m.MixerOnlyLayers
	if m.Experts == 0 {
		return n, 0
	}
	return m.DenseLayers, n - m.DenseLayers
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
	if dense, _ := m.mlpLayers(); dense > 0 {
		dimension(&f, "intermediate", m.Intermediate)
	}
	if m.Experts != 0 {
		m.validateExperts(&f)
	}
	m.validateLatent(&f)
	m.validateMixers(&f)
	m.validateOthers(&f)
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
	f.Check(m.DenseLayers >= 0 && m.DenseLayers <= m.Layers-max(0, m.MixerOnlyLayers),
		"dense_layers is %d (want 0 to the %d layers with an MLP)", m.DenseLayers, m.Layers-max(0, m.MixerOnlyLayers))
	faults.Within(f, "latent_dim", m.LatentDim, 0, maxDimension)
	f.Check(m.RoutingDispersion == 0 || m.RoutingDispersion >= 1e-3, "routing_dispersion is %v (want 0.001 or more)",
		m.RoutingDispersion)
}

// validateLatent checks the dimensions of latent attention.
func (m *LLM) validateLatent(f *faults.List) {
	if m.MLA == (MLA{}) {
		return
	}
	faults.Within(f, "q_rank", m.MLA.QRank, 0, maxDimension)
	dimension(f, "kv_rank", m.MLA.KVRank)
	dimension(f, "rope_dim", m.MLA.RopeDim)
	dimension(f, "nope_dim", m.MLA.NopeDim)
	dimension(f, "value_dim", m.MLA.ValueDim)
}

// validateOthers checks what is outside the layers.
func (m *LLM) validateOthers(f *faults.List) {
	faults.Within(f, "learned_positions", m.LearnedPositions, 0, maxDimension)
	faults.Within(f, "streams", m.Streams, 0, 1<<8)
	faults.Within(f, "mtp_layers", m.MTPLayers, 0, maxLayers)
	e := &m.Encoder
	f.Check(e.Params >= 0 && e.Params < 1e12, "encoder: params is %v (want 0 to 1e12)", e.Params)
	for _, v := range []int{e.Layers, e.Hidden, e.Intermediate, e.TokensPerImage, e.PatchesPerImage} {
		f.Check(v >= 0 && v <= maxDimension, "encoder: a dimension is %d (want 0 to %d)", v, maxDimension)
	}
}

// dimension checks that a dimension of the model is given and within bounds.
func dimension(f *faults.List, name string, v int) { faults.Within(f, name, v, 1, maxDimension) }
