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
		for _, part := range []string{"compress", "index_", "linear_", "mamba", "ssm", "sliding_window", "chunk", "lora_rank",
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

// knownLayers are the names of layers in layer_types and similar lists, for messages.
const knownLayers = "full_attention, sliding_attention, chunked_attention, linear_attention, mamba, mlp or moe"

// patternNames returns the names of the layers as a file lists them: a list of names, or a string with a character for
// each layer (Nemotron-H). nil means that there is no list.
func (c *config) patternNames() (names []string) {
	for _, key := range []string{"layer_types", "layers_block_type"} {
		if c.has(key) {
			c.read(key, "a list of strings", &names)
			c.listKey = key
			return names
		}
	}
	for _, key := range []string{"hybrid_override_pattern", "hybrid_layer_pattern"} {
		if c.has(key) {
			c.listKey = key
			return strings.Split(c.text(key), "")
		}
	}
	return nil
}

// layerNames returns the name of the mixer of each layer: from a list in the file, otherwise by the rule of the
// architecture.
func (c *config) layerNames(m *LLM) []string {
	if names := c.patternNames(); len(names) > 0 {
		if len(names) != m.Layers {
			c.fail("%s has %d entries for %d layers", c.listKey, len(names), m.Layers)
		}
		return names
	}
	names := make([]string, min(max(m.Layers, 0), maxLayers))
	is := c.layerRule(m)
	for i := range names {
		names[i] = is(i)
	}
	return names
}

// layerRule returns the name of each layer by its index, for files without a list.
func (c *config) layerRule(m *LLM) func(i int) string {
	const full, sliding, linear = "full_attention", "sliding_attention", "linear_attention"
	every := func(n int, one, others string) func(int) string {
		return func(i int) string {
			if n > 0 && (i+1)%n == 0 {
				return one
			}
			return others
		}
	}
	all := func(name string) func(int) string { return func(int) string { return name } }
	windowed := c.numberOr(0, "sliding_window") > 0 && c.truth("use_sliding_window", true)
	switch kind := c.kind; {
	case kind == "llama4":
		return c.llama4Rule()
	case slices.Contains([]string{"qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen3_6", "qwen3_6_moe"}, kind):
		return every(c.numberOr(4, "full_attention_interval"), full, linear)
	case kind == "kimi_linear":
		return c.kimiRule()
	case kind == "gemma3" && windowed:
		return every(c.numberOr(6, "sliding_window_pattern"), full, sliding)
	case (kind == "gemma2" || kind == "gpt_oss") && windowed:
		return every(2, full, sliding)
	case strings.HasPrefix(kind, "qwen") && windowed && c.truth("use_sliding_window", false):
		from := c.numberOr(0, "max_window_layers")
		return func(i int) string {
			if i < from {
				return full
			}
			return sliding
		}
	case slices.Contains([]string{"mistral", "ministral3", "mixtral", "phi3", "starcoder2"}, kind) && windowed:
		return all(sliding)
	}
	return all(full)
}

// llama4Rule returns the name of each layer of Llama 4: layers with rotary positions attend within chunks, and every
// fourth layer, without them, attends to all tokens.
func (c *config) llama4Rule() func(i int) string {
	interval := c.numberOr(4, "no_rope_layer_interval")
	var rope []int
	c.read("no_rope_layers", "a list of 0 and 1", &rope)
	chunk := c.numberOr(8192, "attention_chunk_size")
	return func(i int) string {
		chunked := interval == 0 || (i+1)%interval != 0
		if i < len(rope) {
			chunked = rope[i] != 0
		}
		if chunked && chunk > 0 {
			return "chunked_attention"
		}
		return "full_attention"
	}
}

// kimiRule returns the name of each layer of Kimi-Linear from its list of layers with KDA, which counts from 1.
func (c *config) kimiRule() func(i int) string {
	inner := &keyReader{keys: c.object("linear_attn_config")}
	var kda []int
	inner.read("kda_layers", "a list of numbers", &kda)
	if inner.err != nil {
		c.fail("linear_attn_config: %w", inner.err)
	}
	return func(i int) string {
		if slices.Contains(kda, i+1) {
			return "linear_attention"
		}
		return "full_attention"
	}
}

// mixers sets the token mixers of the layers, by kind in order of first appearance.
func (c *config) mixers(m *LLM) {
	names := c.layerNames(m)
	if c.err != nil {
		return
	}
	indexer := c.indexer(m)
	counts := map[string]int{}
	for _, name := range names {
		counts[name]++
	}
	var list []Mixer
	add := func(x Mixer) {
		for i := range list {
			same := list[i]
			if same.Layers = x.Layers; same == x {
				list[i].Layers += x.Layers
				return
			}
		}
		list = append(list, x)
	}
	for _, name := range names {
		n := counts[name]
		if n == 0 {
			continue // counted at its first appearance
		}
		counts[name] = 0
		if x, has := c.mixer(m, name, n); has {
			if x.Kind == Attention {
				x.Indexer = indexer
			}
			x.Layers = n
			add(x)
		}
	}
	if full := (Mixer{Layers: m.Layers}); len(list) != 1 || list[0] != full {
		m.Mixers = list
	}
}

// mixer returns the mixer of n layers with a name, and whether they have one.
func (c *config) mixer(m *LLM, name string, n int) (x Mixer, has bool) {
	hybrid := strings.HasPrefix(c.kind, "qwen3_next") || strings.HasPrefix(c.kind, "qwen3_5") ||
		strings.HasPrefix(c.kind, "qwen3_6")
	switch name {
	case "full_attention", "attention", "*", "deepseek_sparse_attention":
		return Mixer{OutputGate: c.truth("attn_output_gate", hybrid)}, true
	case "sliding_attention":
		x.Window = c.number("sliding_window")
	case "chunked_attention":
		x.Window, x.Chunked = c.numberOr(8192, "attention_chunk_size"), true
	case "linear_attention":
		return c.linear(), true
	case "mamba", "mamba2", "M":
		return c.mamba(), true
	case "mlp", "moe", "-", "E":
		return Mixer{}, c.kind != "nemotron_h"
	default:
		if !c.lenient {
			c.fail("%s: %q is not a known kind of layer (want %s)", c.listKey, name, knownLayers)
		}
		c.leaveOut("%d layers of the unknown kind %q count as full attention", n, name)
		return Mixer{}, true
	}
	if m.MaxContext > 0 && x.Window >= m.MaxContext {
		return Mixer{}, true // the window covers every context
	}
	return x, true
}

// linear returns a layer of linear attention: Gated DeltaNet, or Kimi Delta Attention.
func (c *config) linear() Mixer {
	if c.kind != "kimi_linear" {
		return Mixer{Kind: GatedDeltaNet, State: Recurrence{
			KeyHeads: c.number("linear_num_key_heads"), ValueHeads: c.number("linear_num_value_heads"),
			KeyDim: c.number("linear_key_head_dim"), ValueDim: c.number("linear_value_head_dim"),
			Conv: c.numberOr(4, "linear_conv_kernel_dim"), StateBytes: c.stateBytes("mamba_ssm_dtype"),
		}}
	}
	inner := &keyReader{keys: c.object("linear_attn_config")}
	heads, dim := inner.number("num_heads"), inner.number("head_dim")
	x := Mixer{Kind: KimiDelta, State: Recurrence{KeyHeads: heads, ValueHeads: heads, KeyDim: dim, ValueDim: dim,
		Conv: inner.numberOr(4, "short_conv_kernel_size")}} // vLLM keeps the state in 32 bits
	if inner.err != nil {
		c.fail("linear_attn_config: %w", inner.err)
	}
	return x
}

// mamba returns a Mamba-2 layer.
func (c *config) mamba() Mixer {
	s := Recurrence{
		KeyHeads: c.number("n_groups", "mamba_n_groups"), KeyDim: c.number("ssm_state_size", "mamba_d_state"),
		ValueHeads: c.number("mamba_num_heads", "mamba_n_heads"), ValueDim: c.number("mamba_head_dim", "mamba_d_head"),
		Conv: c.numberOr(4, "conv_kernel", "mamba_d_conv"),
	}
	if c.kind != "nemotron_h" || c.has("mamba_ssm_cache_dtype") { // vLLM uses 32 bits for Nemotron-H unless told
		s.StateBytes = c.stateBytes("mamba_ssm_cache_dtype")
	}
	return Mixer{Kind: Mamba2, State: s}
}

// stateBytes returns the bytes of a number of a recurrent state: by a key of the file, otherwise 16 bits, as vLLM keeps
// it. 0 means 32 bits.
func (c *config) stateBytes(key string) int {
	if c.text(key) == "float32" {
		return 0
	}
	return 2
}

// indexer returns the indexer of sparse attention.
func (c *config) indexer(m *LLM) Indexer {
	if c.kind == "glm_moe_dsa" { // defaults of GLM-5
		c.setDefaults(map[string]string{"index_n_heads": "32", "index_head_dim": "128", "index_topk": "2048"})
	}
	if c.kind != "deepseek_v32" && (!m.UsesMLA() || !c.has("index_topk")) {
		return Indexer{}
	}
	x := Indexer{Heads: c.number("index_n_heads"), Dim: c.number("index_head_dim"), TopK: c.number("index_topk")}
	var kinds []string
	if c.read("indexer_types", "a list of strings", &kinds); len(kinds) == 0 {
		freq, offset := c.numberOr(1, "index_topk_freq"), c.numberOr(0, "index_skip_topk_offset")
		for i := range min(m.Layers, maxLayers) {
			if i < offset || freq > 0 && (i+1-offset)%freq == 0 {
				kinds = append(kinds, "full")
			}
		}
	}
	for _, kind := range kinds {
		if kind == "full" {
			x.Layers++
		}
	}
	if x.Layers == m.Layers {
		x.Layers = 0 // all layers
	}
	return x
}
