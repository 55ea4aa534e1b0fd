package model

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// architectures are the values of model_type that [ReadConfig] reads, with their readers. The suffix _text, which
// language models of multimodal models have, is cut before the search.
var architectures = []struct {
	names string
	read  func(c *config, m *LLM)
}{
	{"llama mistral ministral3 mistral3 qwen2 qwen3 phi3 glm glm4 granite", (*config).dense},
	{"qwen2_vl qwen2_5_vl qwen3_vl", (*config).dense},
	{"gemma gemma2 gemma3", (*config).gemma},
	{"starcoder2", (*config).starCoder},
	{"opt", (*config).opt},
	{"mixtral minimax_m2 gpt_oss", (*config).localExperts},
	{"llama4", (*config).llama4},
	{"qwen2_moe qwen3_moe qwen3_vl_moe", (*config).qwenExperts},
	{"qwen3_next qwen3_5 qwen3_5_moe qwen3_6 qwen3_6_moe", (*config).qwenHybrid},
	{"glm4_moe", (*config).glmExperts},
	{"deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2 kimi_k25 glm4_moe_lite glm_moe_dsa", (*config).deepSeek},
	{"deepseek_v4", (*config).deepSeekV4},
	{"kimi_linear", (*config).kimiLinear},
	{"nemotron_h", (*config).nemotron},
	{"granitemoehybrid", (*config).graniteHybrid},
}

// llm reads the dimensions by the reader of the model_type.
func (c *config) llm() LLM {
	m := LLM{MaxContext: c.numberOr(0, "max_position_embeddings")}
	kind := c.text("model_type")
	c.kind = strings.TrimSuffix(kind, "_text")
	var known []string
	found := false
	for _, a := range architectures {
		names := strings.Fields(a.names)
		if known = append(known, names...); slices.Contains(names, c.kind) {
			a.read(c, &m)
			found = true
		}
	}
	switch {
	case found:
	case kind == "":
		c.fail("missing key model_type")
	case !c.lenient:
		c.fail("model_type %q is not supported (want %s or %s)", kind, strings.Join(known[:len(known)-1], ", "),
			known[len(known)-1])
	default:
		c.leaveOut("model_type %q is unknown: it is read as a decoder with full attention", kind)
		c.unknown(&m)
	}
	m.MTPLayers = c.numberOr(0, "num_nextn_predict_layers", "mtp_num_hidden_layers")
	c.mixers(&m)
	c.precisions(&m)
	m.LeftOut = c.leftOut
	return m
}

// dense reads the dimensions of a decoder with grouped-query attention.
func (c *config) dense(m *LLM) {
	m.Layers = c.positive("num_hidden_layers")
	m.Hidden = c.positive("hidden_size")
	m.Heads = c.positive("num_attention_heads")
	if m.KVHeads = m.Heads; c.has("num_key_value_heads") {
		m.KVHeads = c.positive("num_key_value_heads")
	}
	m.Intermediate = c.number("intermediate_size", "ffn_dim")
	m.Vocab = c.positive("vocab_size")
	m.TiedEmbeddings = c.truth("tie_word_embeddings", false)
	switch m.HeadDim = c.numberOr(0, "head_dim", "attention_head_dim"); {
	case m.HeadDim > 0 || m.Heads == 0:
	case m.Hidden%m.Heads != 0:
		c.fail("missing key head_dim (hidden_size %d is not a multiple of num_attention_heads %d)", m.Hidden, m.Heads)
	default:
		m.HeadDim = m.Hidden / m.Heads
	}
}

// gemma adds defaults that the files omit.
func (c *config) gemma(m *LLM) {
	c.setDefaults(map[string]string{"tie_word_embeddings": "true", "head_dim": "256"})
	switch c.kind {
	case "gemma2":
		c.setDefaults(map[string]string{"num_attention_heads": "8", "num_key_value_heads": "4", "vocab_size": "256000",
			"sliding_window": "4096"})
		setDefault(&m.MaxContext, 8192)
	case "gemma3":
		c.setDefaults(map[string]string{"num_attention_heads": "8", "num_key_value_heads": "4", "vocab_size": "262208",
			"sliding_window": "4096"})
		setDefault(&m.MaxContext, 131072)
	}
	c.dense(m)
}

// starCoder reads a decoder whose MLP has no gate.
func (c *config) starCoder(m *LLM) {
	c.setDefaults(map[string]string{"tie_word_embeddings": "true"})
	c.dense(m)
	m.UngatedMLP = true
}

// opt reads a decoder with learned positions, of which the first two are reserved, and an MLP without a gate.
func (c *config) opt(m *LLM) {
	c.setDefaults(map[string]string{"tie_word_embeddings": "true"})
	c.dense(m)
	m.UngatedMLP = true
	m.LearnedPositions = m.MaxContext + 2
	if narrow := c.numberOr(m.Hidden, "word_embed_proj_dim"); narrow != m.Hidden {
		c.fail("word_embed_proj_dim is %d (want the hidden_size %d: narrower embeddings are not modelled)", narrow,
			m.Hidden)
	}
}

// localExperts reads models whose layers all have experts of the width intermediate_size.
func (c *config) localExperts(m *LLM) {
	c.dense(m)
	if c.kind == "minimax_m2" {
		m.Unfused = UnfusedKernels{LayerSeconds: 25e-6, TokenSeconds: 150e-9} // as in the catalog
	}
	m.Experts = c.number("num_local_experts")
	m.TopK = c.number("num_experts_per_tok", "experts_per_token")
	m.MoEIntermediate = m.Intermediate
}

// llama4 reads Llama 4: layers with experts, of which one is shared, and dense layers between them.
func (c *config) llama4(m *LLM) {
	c.dense(m)
	m.MoEIntermediate = m.Intermediate
	m.SharedIntermediate = m.Intermediate
	m.Intermediate = c.number("intermediate_size_mlp")
	m.Experts = c.number("num_local_experts")
	m.TopK = c.number("num_experts_per_tok")
	var with []int
	if c.read("moe_layers", "a list of numbers", &with); with != nil {
		m.DenseLayers = m.Layers - len(with)
	} else if step := c.numberOr(1, "interleave_moe_layer_step"); step > 1 {
		m.DenseLayers = m.Layers - m.Layers/step
	}
}

func (c *config) qwenExperts(m *LLM) {
	c.setDefaults(map[string]string{"intermediate_size": "0"})
	c.dense(m)
	c.manyExperts(m)
}

// manyExperts reads the experts of Qwen models.
func (c *config) manyExperts(m *LLM) {
	m.Experts = c.number("num_experts")
	m.TopK = c.number("num_experts_per_tok")
	m.MoEIntermediate = c.number("moe_intermediate_size")
	m.SharedIntermediate = c.numberOr(0, "shared_expert_intermediate_size")
	if step := c.numberOr(1, "decoder_sparse_step"); step != 1 {
		c.fail("decoder_sparse_step %d is not supported (want 1)", step)
	}
	var dense []int
	c.read("mlp_only_layers", "a list of numbers", &dense)
	m.DenseLayers = len(dense)
}

// qwenHybrid reads models with Gated DeltaNet in most layers; attention has an output gate.
func (c *config) qwenHybrid(m *LLM) {
	if !c.has("num_experts") {
		c.dense(m)
		return
	}
	c.qwenExperts(m)
}

func (c *config) glmExperts(m *LLM) {
	c.dense(m)
	c.deepSeekExperts(m)
}

func (c *config) deepSeek(m *LLM) {
	c.latent(m)
	c.deepSeekExperts(m)
}

// deepSeekV4 reads a model with compressed attention and residual streams. All layers have experts.
func (c *config) deepSeekV4(m *LLM) {
	c.setDefaults(map[string]string{"intermediate_size": "0", "first_k_dense_replace": "0", "num_key_value_heads": "1",
		"sliding_window": "128"})
	c.dense(m)
	c.deepSeekExperts(m)
	m.Streams = c.numberOr(1, "hc_mult")
}

func (c *config) deepSeekExperts(m *LLM) {
	m.Experts = c.number("n_routed_experts", "num_experts")
	m.TopK = c.number("num_experts_per_tok", "num_experts_per_token")
	m.MoEIntermediate = c.number("moe_intermediate_size")
	m.SharedIntermediate = c.numberOr(0, "n_shared_experts", "num_shared_experts") * m.MoEIntermediate
	m.DenseLayers = c.number("first_k_dense_replace")
	if step := c.numberOr(1, "moe_layer_freq"); step != 1 {
		c.fail("moe_layer_freq %d is not supported (want 1)", step)
	}
}

// latent reads multi-head latent attention. Its heads have no keys and values of their own in the cache; the head
// dimension is that of the values.
func (c *config) latent(m *LLM) {
	c.dense(m)
	m.KVHeads = m.Heads
	m.MLA = MLA{
		QRank: c.numberOr(0, "q_lora_rank"), KVRank: c.number("kv_lora_rank"),
		RopeDim: c.number("qk_rope_head_dim"), NopeDim: c.number("qk_nope_head_dim"), ValueDim: c.number("v_head_dim"),
	}
	m.HeadDim = m.MLA.ValueDim
	if m.MLA.KVRank == 0 {
		c.fail("kv_lora_rank is 0 (want 1 or more)")
	}
}

// kimiLinear reads a model with Kimi Delta Attention in most layers and latent attention in the others.
func (c *config) kimiLinear(m *LLM) {
	setDefault(&m.MaxContext, c.numberOr(0, "model_max_length"))
	c.latent(m)
	if c.has("num_experts") && c.number("num_experts") > 0 {
		c.deepSeekExperts(m)
	}
}

// nemotron reads a model whose layers are either a mixer or an MLP; MLPs have no gate.
func (c *config) nemotron(m *LLM) {
	names := c.patternNames()
	if !c.has("num_hidden_layers") && len(names) > 0 {
		c.keys["num_hidden_layers"] = json.RawMessage(strconv.Itoa(len(names)))
	}
	c.dense(m)
	m.UngatedMLP = true
	experts, dense := 0, 0
	for _, name := range names {
		switch name {
		case "moe", "E":
			experts++
		case "mlp", "-":
			dense++
		}
	}
	m.MixerOnlyLayers = max(0, m.Layers-experts-dense)
	if experts == 0 {
		return
	}
	m.DenseLayers = dense
	m.Experts = c.number("n_routed_experts")
	m.TopK = c.number("num_experts_per_tok")
	m.MoEIntermediate = c.number("moe_intermediate_size")
	shared := c.numberOr(m.MoEIntermediate, "moe_shared_expert_intermediate_size")
	m.SharedIntermediate = c.numberOr(1, "n_shared_experts") * shared
	m.LatentDim = c.numberOr(0, "moe_latent_size")
}

// graniteHybrid reads a model with Mamba-2 in most layers. Each layer has experts and a shared MLP, or the latter only.
func (c *config) graniteHybrid(m *LLM) {
	c.dense(m)
	m.Experts = c.numberOr(0, "num_local_experts")
	shared := c.number("shared_intermediate_size")
	if m.Experts == 0 {
		m.Intermediate = shared
		return
	}
	m.TopK = c.number("num_experts_per_tok")
	m.MoEIntermediate, m.SharedIntermediate = m.Intermediate, shared
}

// unknown reads the keys that most decoders have.
func (c *config) unknown(m *LLM) {
	if !c.has("intermediate_size") && !c.has("ffn_dim") {
		c.setDefaults(map[string]string{"intermediate_size": "0"})
	}
	c.dense(m)
	for _, key := range []string{"n_routed_experts", "num_local_experts", "num_experts"} {
		if !c.has(key) || c.number(key) == 0 {
			continue
		}
		m.Experts = c.number(key)
		m.TopK = c.number("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk")
		if m.MoEIntermediate = c.numberOr(m.Intermediate, "moe_intermediate_size"); m.MoEIntermediate == 0 {
			c.fail("missing key moe_intermediate_size")
		}
		m.SharedIntermediate = c.numberOr(0, "shared_expert_intermediate_size")
		if m.SharedIntermediate == 0 {
			m.SharedIntermediate = c.numberOr(0, "n_shared_experts", "num_shared_experts") * m.MoEIntermediate
		}
		m.DenseLayers = min(m.Layers, c.numberOr(0, "first_k_dense_replace"))
		break
	}
	var dropped []string
	for key := range c.keys {
		for _, part := range []string{"compress", "index_", "linear_", "mamba", "ssm", "sliding_window",
			"chunk", "lora_rank",
			"hc_mult", "layer_pattern", "block_pattern"} {
			if strings.Contains(key, part) && c.has(key) {
				dropped = append(dropped, key)
				break
			}
		}
	}
	slices.Sort(dropped)
	if len(dropped) > 0 {
		c.leaveOut("keys of its layers are left out: %s", strings.Join(dropped, ", "))
	}
}
