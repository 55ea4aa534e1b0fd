package model

import (
	"clifftop/internal/faults"
)

// MixerKind is the kind of the token mixer of a layer: the part of a layer in which tokens see each other.
type MixerKind uint8

// Kinds of token mixers.
const (
	// Attention is grouped-query attention, or multi-head latent attention if [LLM.MLA] is given.
	Attention MixerKind = iota
	// GatedDeltaNet is linear attention with a gated delta rule and one gate per head (Qwen3-Next, Qwen3.5).
	GatedDeltaNet
	// KimiDelta is Kimi Delta Attention (KDA): a gated delta rule with a gate per channel (Kimi-Linear).
	KimiDelta
	// Mamba2 is a state space model with scalar decay per head (Nemotron-H, Granite-4).
	Mamba2

	mixerKinds
)

var mixerNames = [...]string{Attention: "attention", GatedDeltaNet: "gated-deltanet", KimiDelta: "kda",
	Mamba2: "mamba2"}

func (k MixerKind) String() string {
	if k < mixerKinds {
		return mixerNames[k]
	}
	return "unknown mixer"
}

// ParseMixerKind returns the kind with a name; "" is attention. ok is false for unknown names.
func ParseMixerKind(name string) (k MixerKind, ok bool) {
	for k, n := range mixerNames {
		if n == name {
			return MixerKind(k), true
		}
	}
	return Attention, name == ""
}

// Recurrent reports whether layers of the kind keep a state of fixed size instead of KV.
func (k MixerKind) Recurrent() bool { return k != Attention }

// Mixer is a set of layers with the same token mixer: its kind, the number of layers, and its dimensions.
type Mixer struct {
	Kind   MixerKind
	Layers int

	// Heads, KVHeads and HeadDim are those of attention layers that differ from [LLM]; 0 means the same. ValueDim is
	// the width of a value head; 0 means HeadDim.
	Heads, KVHeads, HeadDim, ValueDim int

	Window  int  // tokens that a layer attends to; 0 means all of them
	Chunked bool // Window is the size of chunks with fixed bounds (chunked local attention)
	// SharedKV is how many of the layers read the KV of an earlier layer; they store none and project none.
	SharedKV int
	// OutputGate means that a gate as wide as the attention's output multiplies it; the query projection makes it.
	OutputGate bool
	// Indexer selects the tokens, or the entries, that the layers attend to (sparse attention).
	Indexer Indexer
	// Compression is that of compressed attention.
	Compression Compression

	State Recurrence // of recurrent kinds
}

// Indexer has the dimensions of the indexer of sparse attention (DeepSeek-V3.2, GLM-5). It scores all tokens of the
// context by a product of Dim numbers in 8 bits for each of its heads, and attention reads the TopK best tokens. It
// caches Dim + 4 bytes per token and layer.
type Indexer struct {
	Heads, Dim, TopK int
	// Layers is the number of layers that compute an index; the others use that of an earlier layer (GLM-5.2). 0 means
	// all layers of the mixer.
	Layers int
}

// Recurrence has the dimensions of a recurrent layer. Mamba-2 has its groups as key heads, its state size as KeyDim,
// its heads as value heads and their width as ValueDim. The state of a sequence has ValueHeads·KeyDim·ValueDim numbers
// of StateBytes, and the last Conv-1 inputs of a convolution over 2·KeyHeads·KeyDim + ValueHeads·ValueDim channels, in
// 16 bits.
type Recurrence struct {
	KeyHeads, ValueHeads int
	KeyDim, ValueDim     int
	Conv                 int // width of the short convolution in tokens
	StateBytes           int // per number of the state; 0 means 4
}

// channels returns the channels of the short convolution.
func (r *Recurrence) channels() int { return 2*r.KeyHeads*r.KeyDim + r.ValueHeads*r.ValueDim }

// mixers returns the mixers with all dimensions: one of attention over all layers if the model lists none.
func (m *LLM) mixers() []Mixer {
	list := append([]Mixer(nil), m.Mixers...)
	if len(list) == 0 {
		list = []Mixer{{Layers: m.Layers}}
	}
	for i := range list {
		if x := &list[i]; x.Kind == Attention {
			setDefault(&x.Heads, m.Heads)
			setDefault(&x.KVHeads, m.KVHeads)
			setDefault(&x.HeadDim, m.HeadDim)
			setDefault(&x.ValueDim, x.HeadDim)
			if x.Indexer.TopK > 0 {
				setDefault(&x.Indexer.Layers, x.Layers)
			}
		} else {
			setDefault(&x.State.StateBytes, 4)
		}
	}
	return list
}

func setDefault(v *int, byDefault int) {
	if *v == 0 {
		*v = byDefault
	}
}

// HasMixer reports whether the model has layers with a kind of mixer.
func (m *LLM) HasMixer(kind MixerKind) bool {
	for _, x := range m.mixers() {
		if x.Kind == kind {
			return true
		}
	}
	return false
}

// kvKind returns the kind of KV that the layers of a mixer keep.
func (m *LLM) kvKind(x *Mixer) KVKind {
	switch {
	case x.Kind.Recurrent():
		return RecurrentState
	case m.UsesMLA():
		return LatentAttention
	case x.Compression.Ratio > 0:
		return LatentAttention
	case x.Window == 0:
		return FullAttention
	case x.Chunked:
		return ChunkedLocalAttention
	}
	return SlidingWindow
}

// sparse reports whether the model has sparse attention.
func (m *LLM) sparse() bool {
	for i := range m.Mixers {
		if m.Mixers[i].Indexer.TopK > 0 {
			return true
		}
	}
	return false
}

// validateMixers checks the list of mixers and the dimensions of each.
func (m *LLM) validateMixers(f *faults.List) {
	sum := 0
	for i := range m.Mixers {
		x := &m.Mixers[i]
		if x.Kind >= mixerKinds {
			f.Addf("mixer %d: unknown kind (want attention, gated-deltanet, kda or mamba2)", i+1)
			return
		}
		if x.Layers < 1 || x.Layers > m.Layers {
			f.Addf("mixer %d: %v has %d layers (want 1 to the %d of the model)", i+1, x.Kind, x.Layers, m.Layers)
			return
		}
		sum += x.Layers
		if x.Kind.Recurrent() {
			x.State.validate(f, x.Kind)
		} else {
			m.validateAttention(f, x)
		}
	}
	if len(m.Mixers) == 0 {
		sum = m.Layers
	}
	f.Check(m.HasMixer(Attention), "models without attention layers are not modelled (want a mixer of kind attention)")
	f.Check(sum <= m.Layers, "mixers have %d layers (want at most the %d of the model)", sum, m.Layers)
	f.Check(m.MixerOnlyLayers >= 0 && m.MixerOnlyLayers <= sum, "mixer_only_layers is %d (want 0 to the %d layers "+
		"with a mixer)", m.MixerOnlyLayers, sum)
}

func (r *Recurrence) validate(f *faults.List, k MixerKind) {
	dim := func(name string, v int) { faults.Within(f, k.String()+": "+name, v, 1, 1<<16) }
	dim("key_heads", r.KeyHeads)
	dim("value_heads", r.ValueHeads)
	dim("key_dim", r.KeyDim)
	dim("value_dim", r.ValueDim)
	faults.Within(f, k.String()+": conv", r.Conv, 1, 1<<10)
	f.Check(r.KeyHeads < 1 || r.ValueHeads%r.KeyHeads == 0, "%v: value_heads %d is not a multiple of key_heads %d", k,
		r.ValueHeads, r.KeyHeads)
	f.Check(r.StateBytes == 0 || r.StateBytes == 2 || r.StateBytes == 4, "%v: state_bytes is %d (want 2 or 4)", k,
		r.StateBytes)
}

// validateAttention checks the dimensions of attention layers that differ from those of the model.
func (m *LLM) validateAttention(f *faults.List, x *Mixer) {
	faults.Within(f, "attention: window", x.Window, 0, maxDimension)
	f.Check(!x.Chunked || x.Window > 0, "attention: chunked layers without a window (want its tokens)")
	f.Check(x.SharedKV >= 0 && x.SharedKV < max(x.Layers, 1), "attention: shared_kv is %d (want 0 to %d: less than "+
		"the layers)", x.SharedKV, x.Layers-1)
	heads, kv := x.Heads, x.KVHeads
	setDefault(&heads, m.Heads)
	setDefault(&kv, m.KVHeads)
	f.Check(x.Heads >= 0 && x.KVHeads >= 0 && max(x.Heads, x.KVHeads) <= maxDimension && kv > 0 && heads%kv == 0,
		"attention: heads %d is not a multiple of kv_heads %d", heads, kv)
	faults.Within(f, "attention: head_dim", x.HeadDim, 0, maxDimension)
	faults.Within(f, "attention: value_dim", x.ValueDim, 0, maxDimension)
	if m.UsesMLA() && (x.Window > 0 || x.KVHeads > 0 || x.HeadDim > 0 || x.ValueDim > 0 || x.Heads > 0 ||
		x.OutputGate) {
		f.Addf("attention: windows, gates and dimensions of their own are not modelled with multi-head latent " +
			"attention")
	}
	if x.Compression != (Compression{}) {
		x.Compression.validate(f, m, x)
	}
	if x.Indexer == (Indexer{}) {
		return
	}
	dimension(f, "indexer heads", x.Indexer.Heads)
	dimension(f, "indexer dim", x.Indexer.Dim)
	dimension(f, "indexer top_k", x.Indexer.TopK)
	faults.Within(f, "indexer layers", x.Indexer.Layers, 0, max(x.Layers, 0))
	f.Check(m.UsesMLA() || x.compressed(), "attention: an indexer is modelled with multi-head latent attention and "+
		"compressed attention only (want mla)")
}
