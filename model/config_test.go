package model_test

import (
	"reflect"
	"strings"
	"testing"

	"clifftop/model"
	"clifftop/model/catalog"
)

// configs are the relevant keys of published config.json files, by catalog name.
var configs = map[string]string{
	"llama-3.1-8b": `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
		"num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 128256,
		"max_position_embeddings": 131072, "tie_word_embeddings": false, "torch_dtype": "bfloat16"}`,
	"llama-2-7b": `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008, "num_attention_heads": 32,
		"num_hidden_layers": 32, "vocab_size": 32000, "max_position_embeddings": 4096, "torch_dtype": "float16"}`,
	"mistral-7b-v0.3": `{"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
		"num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 32768, "max_position_embeddings": 32768,
		"sliding_window": null, "torch_dtype": "bfloat16"}`,
	"mixtral-8x7b": `{"model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32,
		"num_key_value_heads": 8, "num_hidden_layers": 32, "vocab_size": 32000, "max_position_embeddings": 32768,
		"num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": null, "torch_dtype": "bfloat16"}`,
	"qwen2.5-7b": `{"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_attention_heads": 28,
		"num_key_value_heads": 4, "num_hidden_layers": 28, "vocab_size": 152064, "max_position_embeddings": 32768,
		"use_sliding_window": false, "sliding_window": 131072, "max_window_layers": 28, "torch_dtype": "bfloat16"}`,
	"qwen3-30b-a3b": `{"model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "num_attention_heads": 32,
		"num_key_value_heads": 4, "head_dim": 128, "num_hidden_layers": 48, "vocab_size": 151936, "max_position_embeddings": 40960,
		"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768, "decoder_sparse_step": 1,
		"mlp_only_layers": [], "sliding_window": null, "use_sliding_window": false, "torch_dtype": "bfloat16"}`,
	"gpt-oss-120b": `{"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_attention_heads": 64,
		"num_key_value_heads": 8, "head_dim": 64, "num_hidden_layers": 36, "vocab_size": 201088, "max_position_embeddings": 131072,
		"num_local_experts": 128, "experts_per_token": 4, "sliding_window": 128,
		"quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]}}`,
	"deepseek-v3": `{"model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432, "num_attention_heads": 128,
		"num_key_value_heads": 128, "num_hidden_layers": 61, "vocab_size": 129280, "max_position_embeddings": 163840,
		"n_routed_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1,
		"first_k_dense_replace": 3, "moe_layer_freq": 1, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
		"qk_nope_head_dim": 128, "v_head_dim": 128, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}`,
	"deepseek-v2-lite": `{"model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944, "num_attention_heads": 16,
		"num_key_value_heads": 16, "num_hidden_layers": 27, "vocab_size": 102400, "max_position_embeddings": 163840,
		"n_routed_experts": 64, "num_experts_per_tok": 6, "moe_intermediate_size": 1408, "n_shared_experts": 2,
		"first_k_dense_replace": 1, "q_lora_rank": null, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
		"qk_nope_head_dim": 128, "v_head_dim": 128, "torch_dtype": "bfloat16"}`,
	"kimi-k2.5": `{"model_type": "kimi_k25", "text_config": {"model_type": "kimi_k2", "hidden_size": 7168, "intermediate_size": 18432,
		"num_attention_heads": 64, "num_hidden_layers": 61, "vocab_size": 163840, "max_position_embeddings": 262144,
		"n_routed_experts": 384, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1,
		"first_k_dense_replace": 1, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128,
		"v_head_dim": 128, "quantization_config": {"quant_method": "compressed-tensors", "ignore": ["lm_head", "re:.*self_attn.*"],
			"config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}}}}}`,
	"gemma-3-27b": `{"model_type": "gemma3", "torch_dtype": "bfloat16", "text_config": {"model_type": "gemma3_text", "hidden_size": 5376,
		"intermediate_size": 21504, "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128, "num_hidden_layers": 62,
		"sliding_window": 1024}}`,
	"glm-4.5-air-106b-a12b": `{"model_type": "glm4_moe", "hidden_size": 4096, "intermediate_size": 10944, "num_attention_heads": 96,
		"num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 46, "vocab_size": 151552, "max_position_embeddings": 131072,
		"n_routed_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 1408, "n_shared_experts": 1,
		"first_k_dense_replace": 1, "torch_dtype": "bfloat16"}`,
	"phi-4-14b": `{"model_type": "phi3", "hidden_size": 5120, "intermediate_size": 17920, "num_attention_heads": 40,
		"num_key_value_heads": 10, "num_hidden_layers": 40, "vocab_size": 100352, "max_position_embeddings": 16384,
		"sliding_window": null, "torch_dtype": "bfloat16"}`,
	"minimax-m2.5": `{"model_type": "minimax_m2", "hidden_size": 3072, "intermediate_size": 1536, "num_attention_heads": 48,
		"num_key_value_heads": 8, "head_dim": 128, "num_hidden_layers": 62, "vocab_size": 200064, "max_position_embeddings": 196608,
		"num_local_experts": 256, "num_experts_per_tok": 8, "quantization_config": {"quant_method": "fp8"}}`,
}

// TestReadConfig reads config.json files of models in the catalog and compares the results with their records.
func TestReadConfig(t *testing.T) {
	for name, text := range configs {
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
		want.Encoder = model.Encoder{} // these texts have no vision_config
		if !reflect.DeepEqual(got, want) {
			t.Errorf("read %+v\nwant %+v", got, want)
		}
	}
}

func TestReadConfigDetails(t *testing.T) {
	const llama = `{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4,
		"num_hidden_layers": 6, "vocab_size": 100, "max_position_embeddings": 4096, "dtype": "bfloat16"}`
	with := func(kind, keys string) string {
		return strings.Replace(strings.TrimSuffix(llama, "}"), `"llama"`, `"`+kind+`"`, 1) + ", " + keys + "}"
	}
	for _, c := range []struct {
		text  string
		check func(m *model.LLM) bool
	}{
		{llama, func(m *model.LLM) bool {
			return m.Name == "tiny" && m.KVHeads == 4 && m.HeadDim == 16 && m.Precision == model.BF16
		}},
		{with("mistral", `"sliding_window": 1024`), func(m *model.LLM) bool {
			return windowed(m) == 6 && m.Mixers[0].Window == 1024
		}},
		{with("phi3", `"sliding_window": 262144`), func(m *model.LLM) bool {
			return windowed(m) == 0
		}},
		{with("qwen2", `"sliding_window": 512, "use_sliding_window": true, "max_window_layers": 2`),
			func(m *model.LLM) bool {
				return windowed(m) == 4
			}},
		{with("qwen3", `"sliding_window": 512, "layer_types": ["full_attention", "sliding_attention", "full_attention", "full_attention", "full_attention", "full_attention"]`),
			func(m *model.LLM) bool { return windowed(m) == 1 && m.Mixers[1].Window == 512 }},
		{with("gemma3_text", `"sliding_window_pattern": 3`), func(m *model.LLM) bool {
			return windowed(m) == 0 && m.TiedEmbeddings && m.HeadDim == 256 // a window of all 4,096 tokens
		}},
		{with("gemma3_text", `"sliding_window_pattern": 3, "sliding_window": 512`), func(m *model.LLM) bool {
			return windowed(m) == 4
		}},
		{with("glm4", `"head_dim": 32`), func(m *model.LLM) bool { return m.HeadDim == 32 }},
		{with("qwen2_moe", `"num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 128, "mlp_only_layers": [0, 1]`),
			func(m *model.LLM) bool {
				return m.SharedIntermediate == 128 && m.DenseLayers == 2 && m.MoEPrecision == model.BF16
			}},
		{with("llama", `"quantization_config": {"quant_method": "awq", "bits": 4}`), func(m *model.LLM) bool {
			return m.Precision == model.INT4 && m.MoEPrecision == model.Auto
		}},
		{with("llama", `"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}`),
			func(m *model.LLM) bool {
				return m.Precision == model.NVFP4
			}},
		{with("llama", `"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}}}`),
			func(m *model.LLM) bool { return m.Precision == model.FP8 }},
	} {
		m, err := model.ReadConfig(`C:\models\tiny.json`, []byte(c.text))
		if err != nil || !c.check(&m) {
			t.Errorf("%s\nread %+v, %v", c.text, m, err)
		}
	}

	for text, want := range map[string]string{
		`{`:                       `c.json: line 1: not valid JSON: unexpected end of JSON input`,
		`[]`:                      `c.json: not a JSON object`,
		`null`:                    `c.json: missing key model_type`,
		`{"a": 1}`:                `c.json: missing key model_type`,
		`{"model_type": "mamba"}`: `c.json: model_type "mamba" is not supported (want llama, `,
		`{"model_type": 7}`:       `c.json: model_type is 7 (want a string)`,
		strings.Replace(llama, `"num_hidden_layers": 6, `, "",
			1): `c.json: missing key num_hidden_layers`,
		strings.Replace(llama, `: 6,`, `: "six",`,
			1): `c.json: num_hidden_layers is "six" (want a whole number)`,
		strings.Replace(llama, `: 6,`, `: 6.5,`,
			1): `c.json: num_hidden_layers is 6.5 (want a whole number)`,
		strings.Replace(llama, `: 6,`, `: -6,`,
			1): `c.json: num_hidden_layers is -6 (want a whole number)`,
		strings.Replace(llama, `: 6,`, `: 0,`,
			1): `c.json: num_hidden_layers is 0 (want 1 or more)`,
		strings.Replace(llama, `"hidden_size": 64`, `"hidden_size": 0`,
			1): `c.json: hidden_size is 0 (want 1 or more)`,
		with("llama", `"num_key_value_heads": 0`): `c.json: num_key_value_heads is 0 (want 1 or more)`,
		strings.Replace(llama, `"num_attention_heads": 4`, `"num_attention_heads": 5`,
			1): `c.json: missing key head_dim (hidden_size 64 is not a multiple of num_attention_heads 5)`,
		with("qwen3_moe",
			`"num_experts": 8`): `c.json: missing key num_experts_per_tok`,
		with("qwen3", `"layer_types": ["full_attention"]`): `c.json: layer_types has 1 entries ` +
			`for 6 layers`,
		with("llama", `"quantization_config": {"quant_method": "bitsandbytes"}`): `c.json: quantization_config: ` +
			`quant_method "bitsandbytes" is not supported (want fp8, `,
		with("llama", `"quantization_config": {"quant_method": "gptq", "bits": 8}`): `c.json: quantization_config: gptq ` +
			`with 8 bits is not supported (want 4)`,
		with("llama", `"quantization_config": 3`): `c.json: quantization_config is 3 ` +
			`(want an object)`,
	} {
		_, err := model.ReadConfig("c.json", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

// FuzzReadConfig looks for files that make the reader panic, print more than a line, or return a
// model that cannot be deployed.
func FuzzReadConfig(f *testing.F) {
	for _, text := range configs {
		f.Add([]byte(text))
	}
	for _, text := range kinds {
		f.Add([]byte(text))
	}
	gpu, err := catalog.GPU("h100")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := model.ReadConfig("config.json", data)
		if err != nil {
			m, err = model.ReadUnknownConfig("config.json", data)
		}
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("more than a line: %q", err)
			}
			return
		}
		d, err := model.NewDeployment(m, gpu, model.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.KVBlocks(model.DefaultMemoryKnobs()); err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("more than a line: %q", err)
		}
	})
}

// windowed returns the number of layers with a window.
func windowed(m *model.LLM) (n int) {
	for _, x := range m.Mixers {
		if x.Window > 0 {
			n += x.Layers
		}
	}
	return n
}
