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
		Experts            int    `yaml:"experts"`
		TopK               int    `yaml:"top_k"`
		Intermediate       int    `yaml:"intermediate"`
		SharedIntermediate int    `yaml:"shared_intermediate"`
		FirstDenseLayers   int    `yaml:"first_dense_layers"`
		Precision          string `yaml:"precision"`
	} `yaml:"moe"`
	Window struct {
		Tokens  int  `yaml:"tokens"`
		Layers  int  `yaml:"layers"`
		Chunked bool `yaml:"chunked"`
	} `yaml:"window"`
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

// published are figures that follow from the dimensions; a test recomputes them.
type published struct {
	TotalParams     float64 `yaml:"total_params_b"`
	ActiveParams    float64 `yaml:"active_params_b"`
	KVBytesPerToken int64   `yaml:"kv_bytes_per_token"`
}

func readLLM(file string, data []byte) (model.LLM, error) {
	var r llmRecord
	if err := decode(file, data, &r); err != nil {
		return model.LLM{}, err
	}
	m := model.LLM{
		Name: r.Name, Aliases: r.Aliases, Source: r.Source,
		Layers: r.Layers, Hidden: r.Hidden, Heads: r.Heads, KVHeads: r.KVHeads, HeadDim: r.HeadDim,
		Intermediate: r.Intermediate, Vocab: r.Vocab, TiedEmbeddings: r.TiedEmbeddings, MaxContext: r.MaxContext,
		Experts: r.MoE.Experts, TopK: r.MoE.TopK, MoEIntermediate: r.MoE.Intermediate,
		SharedIntermediate: r.MoE.SharedIntermediate, FirstDenseLayers: r.MoE.FirstDenseLayers,
		SlidingWindow: r.Window.Tokens, WindowedLayers: r.Window.Layers, ChunkedWindow: r.Window.Chunked,
		MLA: model.MLA{QRank: r.MLA.QRank, KVRank: r.MLA.KVRank, RopeDim: r.MLA.RopeDim, NopeDim: r.MLA.NopeDim,
			ValueDim: r.MLA.ValueDim},
		Unfused: model.UnfusedKernels{LayerSeconds: r.Unfused.Layer / 1e6, TokenSeconds: r.Unfused.Token / 1e9},
	}
	var err error
	if m.Precision, err = model.ParsePrecision(r.Precision); err != nil {
		return model.LLM{}, fmt.Errorf("%s: precision: %w", file, err)
	}
	if r.MoE.Precision != "" {
		if m.MoEPrecision, err = model.ParsePrecision(r.MoE.Precision); err != nil {
			return model.LLM{}, fmt.Errorf("%s: moe.precision: %w", file, err)
		}
	}
	if err := m.Validate(); err != nil {
		return model.LLM{}, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}
