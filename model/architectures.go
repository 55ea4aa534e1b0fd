package model

import "encoding/json"

// llm reads the dimensions. It has one case per architecture (model_type).
func (c *config) llm() LLM {
	m := LLM{MaxContext: c.numberOr(0, "max_position_embeddings")}
	switch kind := c.text("model_type"); kind {
	case "llama", "mistral", "qwen2", "qwen3", "phi3", "glm", "glm4":
		c.dense(&m)
	case "gemma3_text", "gemma3":
		c.gemma3(&m)
	case "mixtral", "minimax_m2", "gpt_oss":
		c.dense(&m)
		if kind == "minimax_m2" {
			m.Unfused = UnfusedKernels{LayerSeconds: 25e-6, TokenSeconds: 150e-9} // as in the catalog
		}
		m.Experts = c.number("num_local_experts")
		m.TopK = c.number("num_experts_per_tok", "experts_per_token")
		m.MoEIntermediate = m.Intermediate
	case "qwen2_moe", "qwen3_moe":
		c.dense(&m)
		c.qwenExperts(&m)
	case "glm4_moe":
		c.dense(&m)
		c.deepSeekExperts(&m)
	case "deepseek_v2", "deepseek_v3", "kimi_k2", "glm_moe_dsa":
		c.latent(&m)
		c.deepSeekExperts(&m)
	case "":
		c.fail("missing key model_type")
	default:
		c.fail("model_type %q is not supported (want llama, mistral, mixtral, qwen2, qwen2_moe, qwen3, qwen3_moe, "+
			"gpt_oss, deepseek_v2, deepseek_v3, kimi_k2, gemma3, glm, glm4, glm4_moe, glm_moe_dsa, minimax_m2 or "+
			"phi3)", kind)
	}
	c.windows(&m)
	c.precisions(&m)
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
	m.Intermediate = c.number("intermediate_size")
	m.Vocab = c.positive("vocab_size")
	m.TiedEmbeddings = c.truth("tie_word_embeddings", false)
	switch m.HeadDim = c.numberOr(0, "head_dim"); {
	case m.HeadDim > 0 || m.Heads == 0:
	case m.Hidden%m.Heads != 0:
		c.fail("missing key head_dim (hidden_size %d is not a multiple of num_attention_heads %d)", m.Hidden, m.Heads)
	default:
		m.HeadDim = m.Hidden / m.Heads
	}
}

// gemma3 adds defaults that the files omit.
func (c *config) gemma3(m *LLM) {
	for key, value := range map[string]string{
		"num_attention_heads": "8", "num_key_value_heads": "4", "head_dim": "256", "vocab_size": "262208",
		"tie_word_embeddings": "true", "sliding_window": "4096",
	} {
		if !c.has(key) {
			c.keys[key] = json.RawMessage(value)
		}
	}
	if m.MaxContext == 0 {
		m.MaxContext = 131072
	}
	c.dense(m)
}

func (c *config) qwenExperts(m *LLM) {
	m.Experts = c.number("num_experts")
	m.TopK = c.number("num_experts_per_tok")
	m.MoEIntermediate = c.number("moe_intermediate_size")
	m.SharedIntermediate = c.numberOr(0, "shared_expert_intermediate_size")
	if step := c.numberOr(1, "decoder_sparse_step"); step != 1 {
		c.fail("decoder_sparse_step %d is not supported (want 1)", step)
	}
	var dense []int
	c.read("mlp_only_layers", "a list of numbers", &dense)
	for i, layer := range dense {
		if layer != i {
			c.fail("mlp_only_layers is %s (only the first layers may be dense)", short(c.keys["mlp_only_layers"]))
		}
	}
	m.DenseLayers = len(dense)
}

func (c *config) deepSeekExperts(m *LLM) {
	m.Experts = c.number("n_routed_experts")
	m.TopK = c.number("num_experts_per_tok")
	m.MoEIntermediate = c.number("moe_intermediate_size")
	m.SharedIntermediate = c.numberOr(0, "n_shared_experts") * m.MoEIntermediate
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

// windows counts the layers with a sliding window.
func (c *config) windows(m *LLM) {
	window := c.numberOr(0, "sliding_window")
	var kinds []string
	windowed := 0
	c.read("layer_types", "a list of strings", &kinds)
	switch kind := c.text("model_type"); {
	case len(kinds) > 0:
		for _, k := range kinds {
			switch k {
			case "full_attention":
			case "sliding_attention":
				windowed++
			default:
				c.fail("layer_types: %q is not supported (want full_attention or sliding_attention)", k)
			}
		}
		if len(kinds) != m.Layers {
			c.fail("layer_types has %d entries for %d layers", len(kinds), m.Layers)
		}
		if windowed > 0 && window == 0 {
			c.fail("missing key sliding_window")
		}
	case window == 0 || !c.truth("use_sliding_window", true):
	case kind == "gemma3" || kind == "gemma3_text":
		// One layer in each pattern has full attention.
		if pattern := c.numberOr(6, "sliding_window_pattern"); pattern > 0 {
			windowed = m.Layers - m.Layers/pattern
		}
	case kind == "gpt_oss":
		windowed = (m.Layers + 1) / 2
	case kind == "qwen2" || kind == "qwen3" || kind == "qwen2_moe" || kind == "qwen3_moe":
		if c.truth("use_sliding_window", false) {
			windowed = max(0, m.Layers-c.numberOr(0, "max_window_layers"))
		}
	case kind == "mistral" || kind == "mixtral" || kind == "phi3":
		windowed = m.Layers
	}
	if m.MaxContext > 0 && window >= m.MaxContext {
		windowed = 0 // the window covers every context
	}
	windowed = min(windowed, m.Layers)
	if windowed > 0 {
		m.Mixers = []Mixer{{Layers: windowed, Window: window}}
	}
	if full := m.Layers - windowed; windowed > 0 && full > 0 {
		m.Mixers = append(m.Mixers, Mixer{Layers: full})
	}
}
