package model_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"clifftop/model"
	"clifftop/model/catalog"
)

// layerList returns a JSON list that repeats names, with others after it.
func layerList(times int, names string, rest ...string) string {
	var all []string
	for range times {
		all = append(all, strings.Fields(names)...)
	}
	all = append(all, rest...)
	return `["` + strings.Join(all, `", "`) + `"]`
}

const (
	qwen35 = `"head_dim": 256, "vocab_size": 248320, "max_position_embeddings": 262144, "linear_conv_kernel_dim": 4,
		"linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16, "attn_output_gate": true,
		"mamba_ssm_dtype": "float32", "mtp_num_hidden_layers": 1, "dtype": "bfloat16"`
	qwenVision = `"vision_config": {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "patch_size": 16,
		"spatial_merge_size": 2, "out_hidden_size": %d}`
	llama4 = `{"model_type": "llama4", "text_config": {"model_type": "llama4_text", "hidden_size": 5120,
		"intermediate_size": 8192, "intermediate_size_mlp": 16384, "num_attention_heads": 40, "num_key_value_heads": 8,
		"head_dim": 128, "num_hidden_layers": 48, "vocab_size": 202048, "num_experts_per_tok": 1, "torch_dtype": "bfloat16",
		"attention_chunk_size": 8192, "num_local_experts": %d, "interleave_moe_layer_step": %d,
		"max_position_embeddings": %d}}`
	deepSeekV4 = `{"model_type": "deepseek_v4", "expert_dtype": "fp4", "hc_mult": 4, "head_dim": 512,
		"index_head_dim": 128, "index_n_heads": 64, "max_position_embeddings": 1048576, "n_shared_experts": 1, "num_experts_per_tok": 6,
		"num_hash_layers": 3, "num_key_value_heads": 1, "num_nextn_predict_layers": 1, "o_lora_rank": 1024,
		"qk_rope_head_dim": 64, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
		"sliding_window": 128, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": 129280, `
	nemotron = `{"model_type": "nemotron_h", "vocab_size": 131072, "head_dim": 128, "n_groups": 8, "conv_kernel": 4,
		"ssm_state_size": 128, "mlp_hidden_act": "relu2", "torch_dtype": "bfloat16", `
	granite = `{"model_type": "granitemoehybrid", "vocab_size": 100352, "tie_word_embeddings": true, "mamba_d_state": 128,
		"mamba_n_groups": 1, "mamba_d_head": 64, "mamba_d_conv": 4, "max_position_embeddings": 131072,
		"num_hidden_layers": 40, "torch_dtype": "bfloat16", "layer_types": %s, `
)

// graniteLayers are the layers of Granite-4: attention in the sixth layer of ten.
var graniteLayers = layerList(4, "mamba mamba mamba mamba mamba attention mamba mamba mamba mamba")

// kinds are the relevant keys of published config.json files of models with several kinds of layers, by catalog name.
var kinds = map[string]string{
	"qwen3-next-80b-a3b": `{"model_type": "qwen3_next", "hidden_size": 2048, "intermediate_size": 5120, "head_dim": 256,
		"num_attention_heads": 16, "num_key_value_heads": 2, "num_hidden_layers": 48, "vocab_size": 151936,
		"full_attention_interval": 4, "max_position_embeddings": 262144, "linear_conv_kernel_dim": 4,
		"linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
		"num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 512, "mlp_only_layers": [],
		"shared_expert_intermediate_size": 512, "decoder_sparse_step": 1, "torch_dtype": "bfloat16"}`,
	"qwen3.5-397b-a17b": `{"model_type": "qwen3_5_moe", "text_config": {"model_type": "qwen3_5_moe_text",
		"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 2, "num_hidden_layers": 60, "layer_types": ` +
		layerList(15, "linear_attention linear_attention linear_attention full_attention") + `,
		"linear_num_value_heads": 64, "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 1024,
		"shared_expert_intermediate_size": 1024, ` + qwen35 + `}, ` + fmt.Sprintf(qwenVision, 4096) + `}`,
	"qwen3.5-27b": `{"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text", "hidden_size": 5120,
		"intermediate_size": 17408, "num_attention_heads": 24, "num_key_value_heads": 4, "num_hidden_layers": 64,
		"full_attention_interval": 4, "linear_num_value_heads": 48, ` + qwen35 + `}, ` + fmt.Sprintf(qwenVision, 5120) + `}`,
	"deepseek-v3.2": strings.Replace(strings.TrimSuffix(configs["deepseek-v3"], "}"), "deepseek_v3", "deepseek_v32", 1) +
		`, "index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048}`,
	"deepseek-v4-flash": deepSeekV4 + `"hidden_size": 4096, "num_attention_heads": 64, "num_hidden_layers": 43,
		"q_lora_rank": 1024, "o_groups": 8, "index_topk": 512, "n_routed_experts": 256, "moe_intermediate_size": 2048,
		"compress_ratios": [0, 0` + strings.Repeat(", 4, 128", 20) + `, 4, 0]}`,
	"deepseek-v4-pro": deepSeekV4 + `"hidden_size": 7168, "num_attention_heads": 128, "num_hidden_layers": 61,
		"q_lora_rank": 1536, "o_groups": 16, "index_topk": 1024, "n_routed_experts": 384, "moe_intermediate_size": 3072,
		"compress_ratios": [128` + strings.Repeat(", 128, 4", 30) + `, 0]}`,
	"kimi-linear-48b-a3b": `{"model_type": "kimi_linear", "hidden_size": 2304, "intermediate_size": 9216,
		"num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 72, "num_hidden_layers": 27, "vocab_size": 163840,
		"model_max_length": 1048576, "kv_lora_rank": 512, "q_lora_rank": null, "qk_nope_head_dim": 128,
		"qk_rope_head_dim": 64, "v_head_dim": 128, "num_experts": 256, "num_experts_per_token": 8, "num_shared_experts": 1,
		"moe_intermediate_size": 1024, "first_k_dense_replace": 1, "moe_layer_freq": 1, "dtype": "bfloat16",
		"linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "num_heads": 32, "head_dim": 128,
			"short_conv_kernel_size": 4, "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25,
			26]}}`,
	"llama-4-maverick-17b":  fmt.Sprintf(llama4, 128, 2, 1048576),
	"llama-4-scout-17b-16e": fmt.Sprintf(llama4, 16, 1, 10485760),
	"nemotron-h-8b": nemotron + `"hidden_size": 4096, "intermediate_size": 21504, "num_attention_heads": 32,
		"num_key_value_heads": 8, "mamba_num_heads": 128, "mamba_head_dim": 64, "max_position_embeddings": 8192,
		"num_hidden_layers": 52, "hybrid_override_pattern": "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"}`,
	"nemotron-3-nano-30b": nemotron + `"hidden_size": 2688, "intermediate_size": 1856, "num_attention_heads": 32,
		"num_key_value_heads": 2, "mamba_num_heads": 64, "mamba_head_dim": 64, "max_position_embeddings": 262144,
		"n_routed_experts": 128, "n_shared_experts": 1, "num_experts_per_tok": 6, "moe_intermediate_size": 1856,
		"moe_shared_expert_intermediate_size": 3712, "layers_block_type": ` +
		layerList(1, "mamba moe mamba moe mamba attention moe mamba moe mamba moe mamba attention moe mamba moe mamba moe "+
			"mamba attention moe mamba moe mamba moe mamba attention moe mamba moe mamba moe mamba attention moe mamba moe "+
			"mamba moe mamba moe mamba attention moe mamba moe mamba moe mamba moe mamba moe") + `}`,
	"nemotron-3-super-120b": nemotron + `"hidden_size": 4096, "intermediate_size": 2688, "num_attention_heads": 32,
		"num_key_value_heads": 2, "mamba_num_heads": 128, "mamba_head_dim": 64, "max_position_embeddings": 262144,
		"n_routed_experts": 512, "n_shared_experts": 1, "num_experts_per_tok": 22, "moe_intermediate_size": 2688,
		"moe_shared_expert_intermediate_size": 5376, "moe_latent_size": 1024, "num_nextn_predict_layers": 1,
		"num_hidden_layers": 88, "mamba_ssm_cache_dtype": "float32", "hybrid_override_pattern": "MEMEMEM*EMEMEMEM*` +
		`EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME"}`,
	"granite-4.0-h-tiny": fmt.Sprintf(granite, graniteLayers) + `"hidden_size": 1536, "num_attention_heads": 12,
		"num_key_value_heads": 4, "intermediate_size": 512, "shared_intermediate_size": 1024, "num_local_experts": 64,
		"num_experts_per_tok": 6, "mamba_n_heads": 48}`,
	"granite-4.0-h-1b": fmt.Sprintf(granite, graniteLayers) + `"hidden_size": 1536, "num_attention_heads": 12,
		"num_key_value_heads": 4, "intermediate_size": 4096, "shared_intermediate_size": 4096, "num_local_experts": 0,
		"num_experts_per_tok": 0, "mamba_n_heads": 48}`,
	"granite-4.0-micro": fmt.Sprintf(granite, layerList(40, "attention")) + `"hidden_size": 2560,
		"num_attention_heads": 40, "num_key_value_heads": 8, "intermediate_size": 8192, "shared_intermediate_size": 8192,
		"num_local_experts": 0, "mamba_n_heads": 128}`,
	"gemma-2-9b": `{"model_type": "gemma2", "hidden_size": 3584, "intermediate_size": 14336, "num_attention_heads": 16,
		"num_key_value_heads": 8, "head_dim": 256, "num_hidden_layers": 42, "vocab_size": 256000, "sliding_window": 4096,
		"max_position_embeddings": 8192, "torch_dtype": "bfloat16"}`,
	"gemma-7b": `{"model_type": "gemma", "hidden_size": 3072, "intermediate_size": 24576, "num_attention_heads": 16,
		"num_key_value_heads": 16, "head_dim": 256, "num_hidden_layers": 28, "vocab_size": 256000,
		"max_position_embeddings": 8192, "torch_dtype": "bfloat16"}`,
	"opt-13b": `{"model_type": "opt", "hidden_size": 5120, "ffn_dim": 20480, "num_attention_heads": 40, "vocab_size": 50272,
		"num_hidden_layers": 40, "max_position_embeddings": 2048, "word_embed_proj_dim": 5120, "torch_dtype": "float16"}`,
	"starcoder2-15b": `{"model_type": "starcoder2", "hidden_size": 6144, "intermediate_size": 24576, "vocab_size": 49152,
		"num_attention_heads": 48, "num_key_value_heads": 4, "num_hidden_layers": 40, "max_position_embeddings": 16384,
		"tie_word_embeddings": false, "torch_dtype": "bfloat16"}`,
	"devstral-small-2-24b": `{"model_type": "mistral3", "dtype": "bfloat16", "text_config": {"model_type": "ministral3",
		"head_dim": 128, "hidden_size": 5120, "intermediate_size": 32768, "max_position_embeddings": 393216,
		"num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8, "sliding_window": null,
		"vocab_size": 131072}, "quantization_config": {"quant_method": "fp8", "modules_to_not_convert": ["lm_head"]},
		"vision_config": {"model_type": "pixtral", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
		"patch_size": 14, "image_size": 1540}}`,
	"phi-3-mini-4k": `{"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192, "num_attention_heads": 32,
		"num_key_value_heads": 32, "num_hidden_layers": 32, "vocab_size": 32064, "max_position_embeddings": 4096,
		"sliding_window": 2048, "torch_dtype": "bfloat16"}`,
	"glm-5": `{"model_type": "glm_moe_dsa", "num_hidden_layers": 78, "hidden_size": 6144, "num_attention_heads": 64,
		"num_key_value_heads": 64, "head_dim": 64, "intermediate_size": 12288, "vocab_size": 154880, "n_shared_experts": 1,
		"max_position_embeddings": 202752, "n_routed_experts": 256, "num_experts_per_tok": 8, "moe_layer_freq": 1,
		"moe_intermediate_size": 2048, "first_k_dense_replace": 3, "kv_lora_rank": 512, "q_lora_rank": 2048,
		"qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "num_nextn_predict_layers": 1,
		"torch_dtype": "bfloat16"}`,
}

// TestReadKinds reads config.json files of models with several kinds of layers and compares the results with the
// records of the catalog, whose parameters and KV bytes are checked against published figures.
func TestReadKinds(t *testing.T) {
	for name, text := range kinds {
		got, err := model.ReadConfig("models/"+name+"/config.json", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want, err := catalog.LLM(name)
		if err != nil {
			t.Fatal(err)
		}
		want.Aliases, want.Source = nil, got.Source
		if want.Encoder.Params = math.Round(want.Encoder.Params/1e5) * 1e5; got.Encoder == (model.Encoder{}) {
			want.Encoder = got.Encoder // the text has no vision_config
		}
		got.Encoder.Params = math.Round(got.Encoder.Params/1e5) * 1e5
		if want.HeadDim = got.HeadDim; want.UsesMLA() && got.HeadDim != want.MLA.ValueDim {
			t.Errorf("%s: head_dim %d", name, got.HeadDim)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v\nwant %+v", got, want)
		}
	}
}

// shape describes the layers of a model: layers and kind of each mixer, with what is particular.
func shape(m *model.LLM) string {
	var parts []string
	for _, x := range m.Mixers {
		s := fmt.Sprintf("%d %v", x.Layers, x.Kind)
		switch {
		case x.Chunked:
			s += fmt.Sprintf(" chunk %d", x.Window)
		case x.Window > 0:
			s += fmt.Sprintf(" window %d", x.Window)
		}
		if x.Indexer.TopK > 0 {
			s += fmt.Sprintf(" top %d (%d)", x.Indexer.TopK, x.Indexer.Layers)
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " + ")
}

const tiny = `{"model_type": "%s", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
	"num_key_value_heads": 2, "num_hidden_layers": 8, "vocab_size": 100, "max_position_embeddings": 4096,
	"dtype": "bfloat16", %s}`

func TestReadKindRules(t *testing.T) {
	const (
		linear = `"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, ` +
			`"linear_value_head_dim": 16`
		mamba = `"mamba_n_groups": 1, "mamba_n_heads": 4, "mamba_d_state": 16, "mamba_d_head": 32, ` +
			`"shared_intermediate_size": 64`
		latent = `"kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16, ` +
			`"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1`
		chunks = `"intermediate_size_mlp": 256, "num_local_experts": 4, "num_experts_per_tok": 1, "attention_chunk_size": 512`
	)
	for _, c := range []struct{ kind, keys, want string }{
		{"qwen3_next", linear, "6 gated-deltanet + 2 attention"},
		{"qwen3_5_text", linear + `, "full_attention_interval": 2`, "4 gated-deltanet + 4 attention"},
		{"qwen3_6", linear, "6 gated-deltanet + 2 attention"},
		{"qwen3", `"sliding_window": 512, "use_sliding_window": true, "max_window_layers": 3`,
			"3 attention + 5 attention window 512"},
		{"gpt_oss", `"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 128`,
			"4 attention window 128 + 4 attention"},
		{"llama4_text", chunks, "6 attention chunk 512 + 2 attention"},
		{"llama4_text", chunks + `, "no_rope_layers": [0, 1, 1, 1, 1, 1, 1, 0]`, "2 attention + 6 attention chunk 512"},
		{"llama4_text", chunks + `, "layer_types": ` +
			layerList(1, "chunked_attention full_attention", strings.Fields(strings.Repeat("chunked_attention ", 6))...),
			"7 attention chunk 512 + 1 attention"},
		{"granitemoehybrid", mamba + `, "layer_types": ` + layerList(2, "mamba mamba mamba attention"),
			"6 mamba2 + 2 attention"},
		{"glm_moe_dsa", latent + `, "index_topk_freq": 4, "index_skip_topk_offset": 3, "indexer_types": null`,
			"8 attention top 2048 (4)"},
		{"glm_moe_dsa", latent + `, "index_topk": 64, "indexer_types": ` + layerList(2, "full shared shared shared"),
			"8 attention top 64 (2)"},
		{"deepseek_v3", latent, ""},
		{"mistral", `"sliding_window": 1024`, "8 attention window 1024"},
		{"gemma2", `"sliding_window": 1024, "head_dim": 16`, "4 attention window 1024 + 4 attention"},
	} {
		m, err := model.ReadConfig("tiny.json", fmt.Appendf(nil, tiny, c.kind, c.keys))
		if err != nil || shape(&m) != c.want {
			t.Errorf("%s, %s:\nread %s, %v\nwant %s", c.kind, c.keys, shape(&m), err, c.want)
		}
	}
}

// TestUnknownKinds reads files with unknown kinds of layers: an error, or a warning if they are allowed.
func TestUnknownKinds(t *testing.T) {
	layers := `"layer_types": ` + layerList(2, "full_attention conv conv conv")
	for _, c := range []struct{ kind, keys, err, leftOut string }{
		{"llama", layers, `c.json: layer_types: "conv" is not a known kind of layer (want full_attention, sliding_attention, ` +
			`chunked_attention, compressed_sparse_attention, heavily_compressed_attention, linear_attention, mamba, mlp or moe)`,
			`6 layers of the unknown kind "conv" count as full attention`},
		{"nemotron_h", `"hybrid_override_pattern": "*X*X*-*-"`, `c.json: hybrid_override_pattern: "X" is not a known kind ` +
			`of layer (want full_attention, sliding_attention, chunked_attention, compressed_sparse_attention, ` +
			`heavily_compressed_attention, linear_attention, mamba, mlp or moe)`,
			`2 layers of the unknown kind "X" count as full attention`},
		{"lfm9", `"conv_L_cache": 3`, `c.json: model_type "lfm9" is not supported (want llama, `,
			`model_type "lfm9" is unknown: it is read as a decoder with full attention`},
		{"deepseek_v9", `"compress_ratios": [0, 4], "index_topk": 512, "head_dim": 512, "n_routed_experts": 8, ` +
			`"num_experts_per_tok": 2, "moe_intermediate_size": 64`, `c.json: model_type "deepseek_v9" is not supported (want `,
			`model_type "deepseek_v9" is unknown: it is read as a decoder with full attention; keys of its layers are left ` +
				`out: compress_ratios, index_topk`},
	} {
		text := fmt.Appendf(nil, tiny, c.kind, c.keys)
		if _, err := model.ReadConfig("c.json", text); err == nil || !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%s:\n got %v\nwant %s", c.kind, err, c.err)
		}
		m, err := model.ReadUnknownConfig("c.json", text)
		if err != nil || strings.Join(m.LeftOut, "; ") != c.leftOut {
			t.Errorf("%s: left out %q, %v\nwant %q", c.kind, m.LeftOut, err, c.leftOut)
			continue
		}
		gpu, err := catalog.GPU("h100")
		if err != nil {
			t.Fatal(err)
		}
		d, err := model.NewDeployment(m, gpu, model.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.kind, err)
			continue
		}
		if notes := d.Notes(); len(notes) == 0 || notes[0] != "c: "+m.LeftOut[0] {
			t.Errorf("%s: notes %q", c.kind, notes)
		}
	}
}

func TestReadQuantization(t *testing.T) {
	const experts = `"num_local_experts": 4, "num_experts_per_tok": 2`
	for _, c := range []struct{ kind, config, others, experts string }{
		{"llama", `{"quant_method": "fp8", "weight_block_size": [128, 128]}`, "fp8", ""},
		{"llama", `{"quant_method": "gptq", "bits": 4}`, "int4", ""},
		{"llama", `{"quant_method": "modelopt", "quant_algo": "FP8"}`, "fp8", ""},
		{"llama", `{"quant_method": "compressed-tensors", "config_groups": {"g": {"targets": ["Linear"], "weights":
			{"num_bits": 8, "type": "int"}}}}`, "fp8", ""},
		{"mixtral", `{"quant_method": "mxfp4"}`, "bf16", "mxfp4"},
		{"mixtral", `{"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}`, "nvfp4", "nvfp4"},
		{"mixtral", `{"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["model.layers.*.self_attn*"]}`,
			"bf16", "nvfp4"},
		{"mixtral", `{"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": {
			"model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"}, "model.layers.0.mlp.experts.0.up_proj":
			{"quant_algo": "NVFP4"}}}`, "fp8", "nvfp4"},
		{"mixtral", `{"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp4"}},
			"exclude": ["re:model.layers.*self_attn.*"]}`, "bf16", "mxfp4"},
		{"mixtral", `{"quant_method": "compressed-tensors", "config_groups": {
			"group_0": {"targets": ["re:.*attn.*(wq|wo)$"], "weights": {"num_bits": 8, "type": "float"}},
			"group_1": {"targets": ["re:.*ffn.*_proj$"], "weights": {"num_bits": 4, "type": "float"}}}}`, "fp8", "nvfp4"},
	} {
		text := fmt.Appendf(nil, tiny, c.kind, experts+`, "quantization_config": `+c.config)
		m, err := model.ReadConfig("tiny.json", text)
		got := m.MoEPrecision.String()
		if m.Experts == 0 {
			got = ""
		}
		if err != nil || m.Precision.String() != c.others || got != c.experts {
			t.Errorf("%s: %v, experts %s, %v", c.config, m.Precision, got, err)
		}
	}
}

// TestBadKinds reads faulty files; each error is one line.
func TestBadKinds(t *testing.T) {
	const linear = `"linear_num_key_heads": 3, "linear_num_value_heads": 4, "linear_key_head_dim": 16, ` +
		`"linear_value_head_dim": 16`
	for _, c := range []struct{ kind, keys, want string }{
		{"llama", `"num_key_value_heads": 3`, ``}, // the key is given twice
		{"qwen3_next", linear, `c.json: gated-deltanet: value_heads 4 is not a multiple of key_heads 3`},
		{"qwen3_next", `"num_experts": 0`, `c.json: missing key num_experts_per_tok`},
		{"kimi_linear", `"kv_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, ` +
			`"linear_attn_config": {"kda_layers": [1]}`, `c.json: linear_attn_config: missing key num_heads`},
		{"kimi_linear", `"kv_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, ` +
			`"linear_attn_config": {"kda_layers": "all"}`,
			`c.json: linear_attn_config: kda_layers is "all" (want a list of numbers)`},
		{"nemotron_h", `"hybrid_override_pattern": "M-M-M-M*"`, `c.json: missing key n_groups`},
		{"granitemoehybrid", `"shared_intermediate_size": 8, "layer_types": ["mamba"]`,
			`c.json: layer_types has 1 entries for 8 layers`},
		{"deepseek_v32", `"kv_lora_rank": 8, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, ` +
			`"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "first_k_dense_replace": 0`,
			`c.json: missing key index_n_heads`},
		{"opt", `"word_embed_proj_dim": 32`, `c.json: word_embed_proj_dim is 32 (want the hidden_size 64: narrower ` +
			`embeddings are not modelled)`},
		{"llama", `"quantization_config": {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}`,
			`c.json: quantization_config: missing key quantized_layers`},
		{"llama", `"quantization_config": {"quant_method": "quark"}`,
			`c.json: quantization_config: quark with weights of dtype "" is not supported (want fp4 or fp8_e4m3)`},
	} {
		_, err := model.ReadConfig("c.json", fmt.Appendf(nil, tiny, c.kind, c.keys))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s, %s:\n got %v\nwant %s", c.kind, c.keys, err, c.want)
		}
	}
	h100, err := catalog.GPU("h100")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"qwen3.5-397b-a17b":   "tensor_parallel_size 3 does not divide the ",
		"kimi-linear-48b-a3b": "tensor_parallel_size 3 does not divide the ",
	} {
		m, err := catalog.LLM(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := model.NewDeployment(m, h100, model.Options{TensorParallel: 3}); err == nil ||
			!strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
