package catalog

import (
	"fmt"

	"clifftop/model"
)

// llmRecord is the file format of a model; see README.md and the directory models.
type llmRecord struct {
	Name           string   `yaml:"name"`
	Aliases        []string `yaml:"aliases"`
	Source         string   `yaml:"source"`
	Layers         int      `yaml:"layers"`
	Hidden         int      `yaml:"hidden"`
	Heads          int      `yaml:"heads"`
	KVHeads        int      `yaml:"kv_heads"`
	HeadDim        int      `yaml:"head_dim"`
	Intermediate   int      `yaml:"intermediate"`
	Vocab          int      `yaml:"vocab"`
	TiedEmbeddings bool     `yaml:"tied_embeddings"`
	MaxContext     int      `yaml:"max_context"`
	Precision      string   `yaml:"precision"`
	MoE            struct {
		Experts            int     `yaml:"experts"`
		TopK               int     `yaml:"top_k"`
		Intermediate       int     `yaml:"intermediate"`
		SharedIntermediate int     `yaml:"shared_intermediate"`
		DenseLayers        int     `yaml:"dense_layers"`
		LatentDim          int     `yaml:"latent_dim"`
		RoutingDispersion  float64 `yaml:"routing_dispersion"`
		Precision          string  `yaml:"precision"`
	} `yaml:"moe"`
	Mixers           []mixerRecord `yaml:"mixers"`
	MixerOnlyLayers  int           `yaml:"mixer_only_layers"`
	UngatedMLP       bool          `yaml:"ungated_mlp"`
	LearnedPositions int           `yaml:"learned_positions"`
	MTPLayers        int           `yaml:"mtp_layers"`
	Streams          int           `yaml:"streams"`
	Encoder          struct {
		Params          float64 `yaml:"params_m"`
		Layers          int     `yaml:"layers"`
		Hidden          int     `yaml:"hidden"`
		Intermediate    int     `yaml:"intermediate"`
		TokensPerImage  int     `yaml:"tokens_per_image"`
		PatchesPerImage int     `yaml:"patches_per_image"`
	} `yaml:"encoder"`
	MLA struct {
		QRank    int `yaml:"q_rank"`
		KVRank   int `yaml:"kv_rank"`
		RopeDim  int `yaml:"rope_dim"`
		NopeDim  int `yaml:"nope_dim"`
		ValueDim int `yaml:"value_dim"`
	} `yaml:"mla"`
	Unfused struct {
		Layer float64 `yaml:"layer_us"`
		Token float64 `yaml:"token_ns"`
	} `yaml:"unfused"`
	Check published `yaml:"check"`
}

// mixerRecord is a set of layers with the same token mixer; see [model.Mixer].
type mixerRecord struct {
	Kind       string `yaml:"kind"` // attention if it is left out
	Layers     int    `yaml:"layers"`
	Heads      int    `yaml:"heads"`
	KVHeads    int    `yaml:"kv_heads"`
	HeadDim    int    `yaml:"head_dim"`
	ValueDim   int    `yaml:"value_dim"`
	Window     int    `yaml:"window"`
	Chunked    bool   `yaml:"chunked"`
	SharedKV   int    `yaml:"shared_kv"`
	OutputGate bool   `yaml:"output_gate"`
	Indexer    struct {
		Heads  int `yaml:"heads"`
		Dim    int `yaml:"dim"`
		TopK   int `yaml:"top_k"`
		Layers int `yaml:"layers"`
	} `yaml:"indexer"`
	Compression struct {
		Ratio     int `yaml:"ratio"`
		QRank     int `yaml:"q_rank"`
		OutRank   int `yaml:"out_rank"`
		OutGroups int `yaml:"out_groups"`
	} `yaml:"compression"`
	State struct {
		KeyHeads   int `yaml:"key_heads"`
		ValueHeads int `yaml:"value_heads"`
		KeyDim     int `yaml:"key_dim"`
		ValueDim   int `yaml:"value_dim"`
		Conv       int `yaml:"conv"`
		StateBytes int `yaml:"state_bytes"`
	} `yaml:"state"`
}

func (r *mixerRecord) mixer() (model.Mixer, bool) {
	kind, ok := model.ParseMixerKind(r.Kind)
	s := &r.State
	return model.Mixer{
		Kind: kind, Layers: r.Layers, Heads: r.Heads, KVHeads: r.KVHeads, HeadDim: r.HeadDim, ValueDim: r.ValueDim,
		Window: r.Window, Chunked: r.Chunked, SharedKV: r.SharedKV, OutputGate: r.OutputGate,
		Indexer: model.Indexer{Heads: r.Indexer.Heads, Dim: r.Indexer.Dim, TopK: r.Indexer.TopK,
			Layers: r.Indexer.Layers},
		Compression: model.Compression(r.Compression),
		State: model.Recurrence{KeyHeads: s.KeyHeads, ValueHeads: s.ValueHeads, KeyDim: s.KeyDim, ValueDim: s.ValueDim,
			Conv: s.Conv, StateBytes: s.StateBytes},
	}, ok
}

// published are figures that follow from the dimensions; a test recomputes them.
type published struct {
	TotalParams     float64 `yaml:"total_params_b"`
	ActiveParams    float64 `yaml:"active_params_b"`
	KVBytesPerToken int64   `yaml:"kv_bytes_per_token"`
}

func (r *llmRecord) llm() (model.LLM, error) {
	m := model.LLM{
		Name: r.Name, Aliases: r.Aliases, Source: r.Source,
		Layers: r.Layers, Hidden: r.Hidden, Heads: r.Heads, KVHeads: r.KVHeads, HeadDim: r.HeadDim,
		Intermediate: r.Intermediate, Vocab: r.Vocab, TiedEmbeddings: r.TiedEmbeddings, MaxContext: r.MaxContext,
		MoE: model.MoE{Experts: r.MoE.Experts, TopK: r.MoE.TopK, MoEIntermediate: r.MoE.Intermediate,
			SharedIntermediate: r.MoE.SharedIntermediate, DenseLayers: r.MoE.DenseLayers, LatentDim: r.MoE.LatentDim,
			RoutingDispersion: r.MoE.RoutingDispersion},
		MixerOnlyLayers: r.MixerOnlyLayers, UngatedMLP: r.UngatedMLP, LearnedPositions: r.LearnedPositions,
		MTPLayers: r.MTPLayers, Streams: r.Streams,
		Encoder: model.Encoder{Params: r.Encoder.Params * 1e6, Layers: r.Encoder.Layers, Hidden: r.Encoder.Hidden,
			Intermediate: r.Encoder.Intermediate, TokensPerImage: r.Encoder.TokensPerImage,
			PatchesPerImage: r.Encoder.PatchesPerImage},
		MLA: model.MLA{QRank: r.MLA.QRank, KVRank: r.MLA.KVRank, RopeDim: r.MLA.RopeDim, NopeDim: r.MLA.NopeDim,
			ValueDim: r.MLA.ValueDim},
		Unfused: model.UnfusedKernels{LayerSeconds: r.Unfused.Layer / 1e6, TokenSeconds: r.Unfused.Token / 1e9},
	}
	var err error
	for i := range r.Mixers {
		x, ok := r.Mixers[i].mixer()
		if !ok {
			return model.LLM{}, fmt.Errorf("mixers: unknown kind %q (want attention, gated-deltanet, kda or mamba2)",
				r.Mixers[i].Kind)
		}
		m.Mixers = append(m.Mixers, x)
	}
	if m.Precision, err = model.ParsePrecision(r.Precision); err != nil {
		return model.LLM{}, fmt.Errorf("precision: %w", err)
	}
	if r.MoE.Precision != "" {
		if m.MoEPrecision, err = model.ParsePrecision(r.MoE.Precision); err != nil {
			return model.LLM{}, fmt.Errorf("moe.precision: %w", err)
		}
	}
	return m, m.Validate()
}
