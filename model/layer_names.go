package model

import (
	"slices"
	"strings"
)

// knownLayers are the names of layers in layer_types and similar lists, for messages.
const knownLayers = "full_attention, sliding_attention, chunked_attention, compressed_sparse_attention, " +
	"heavily_compressed_attention, linear_attention, mamba, mlp or moe"

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
	case kind == "deepseek_v4":
		return c.compressedRule(m)
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

// compressedRule returns the name of each layer of DeepSeek-V4 from the ratios of its compression, which may list those
// of multi-token prediction modules too.
func (c *config) compressedRule(m *LLM) func(i int) string {
	var ratios []int
	c.read("compress_ratios", "a list of numbers", &ratios)
	if len(ratios) < m.Layers {
		c.fail("compress_ratios has %d entries for %d layers", len(ratios), m.Layers)
	}
	names := map[int]string{0: "sliding_attention", 4: "compressed_sparse_attention",
		128: "heavily_compressed_attention"}
	return func(i int) string {
		if i >= len(ratios) {
			return names[0]
		}
		name, ok := names[ratios[i]]
		if !ok {
			c.fail("compress_ratios: %d is not a known ratio (want 0, 4 or 128)", ratios[i])
		}
		return name
	}
}

// compressed returns a layer of DeepSeek-V4.
func (c *config) compressed(name string) Mixer {
	x := Mixer{Window: c.number("sliding_window"), Compression: Compression{QRank: c.number("q_lora_rank"),
		OutRank: c.number("o_lora_rank"), OutGroups: c.number("o_groups")}}
	switch name {
	case "compressed_sparse_attention":
		x.Compression.Ratio = 4
		x.Indexer = Indexer{Heads: c.number("index_n_heads"), Dim: c.number("index_head_dim"),
			TopK: c.number("index_topk")}
	case "heavily_compressed_attention":
		x.Compression.Ratio = 128
	}
	return x
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
			if x.Kind == Attention && !x.compressed() {
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
	case "compressed_sparse_attention", "heavily_compressed_attention":
		return c.compressed(name), true
	case "sliding_attention":
		if c.kind == "deepseek_v4" {
			return c.compressed(name), true
		}
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
