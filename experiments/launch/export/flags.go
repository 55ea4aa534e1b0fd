package export

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/launch/flags"
	"clifftop/experiments/scenario/yamldoc"
)

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// say notes that a key is said by a flag.
func (w *lineWriter) say(keys ...string) {
	for _, k := range keys {
		w.done[k] = true
	}
}

// parallelism writes the groups of GPUs in the terms of the engine.
func (w *lineWriter) parallelism(engine string) {
	d := w.pool.Deployment
	tp, pp, dp, ep := d.TensorParallel, d.PipelineParallel, d.DataParallel, d.ExpertParallel
	w.say("deployment.tensor_parallel_size", "deployment.pipeline_parallel_size", "deployment.data_parallel_size",
		"deployment.expert_parallel_size", "deployment.replicas", "deployment.router")
	some := func(n int, name string) {
		if n > 1 {
			w.flag(name, strconv.Itoa(n))
		}
	}
	switch engine {
	case "vllm":
		some(tp, "tensor-parallel-size")
		some(pp, "pipeline-parallel-size")
		some(dp, "data-parallel-size")
		if w.group.Nodes > 1 && dp > 1 {
			w.flag("data-parallel-size-local", strconv.Itoa(max(w.group.GPUsPerNode/max(tp*pp, 1), 1)))
		}
		if ep > 1 {
			w.toggle("enable-expert-parallel")
			if ep != tp*dp {
				w.note("expert_parallel_size %d: vLLM spreads experts over all %d GPUs", ep, tp*dp)
			}
		}
	case "sglang":
		some(tp*dp, "tp-size")
		some(pp, "pp-size")
		if dp > 1 {
			w.flag("dp-size", strconv.Itoa(dp))
			w.toggle("enable-dp-attention")
		}
		some(ep, "ep-size")
		some(w.group.Nodes, "nnodes")
	case "trtllm":
		some(tp*dp, "tp_size")
		some(pp, "pp_size")
		some(ep, "ep_size")
		if dp > 1 {
			if tp > 1 {
				w.note("data_parallel_size %d of %d GPUs each: TensorRT-LLM has ranks of one GPU only", dp, tp)
			}
			w.option("enable_attention_dp", "true")
		}
	}
}

// formats writes the number formats of weights and KV.
func (w *lineWriter) formats(engine string) {
	w.say("deployment.dtype", "deployment.kv_cache_dtype")
	llm := &w.pool.Deployment.LLM
	dtype := w.text("deployment", "dtype")
	if dtype != "" && dtype != "auto" && dtype != llm.Precision.String() && dtype != llm.MoEPrecision.String() {
		w.quantization(engine, dtype)
	}
	kv := w.text("deployment", "kv_cache_dtype")
	if kv == "" || kv == "auto" {
		return
	}
	switch engine {
	case "vllm":
		w.flag("kv-cache-dtype", map[string]string{"bf16": "bfloat16", "fp16": "auto", "fp8": "fp8"}[kv])
	case "sglang":
		w.flag("kv-cache-dtype", map[string]string{"bf16": "auto", "fp16": "auto", "fp8": "fp8_e4m3"}[kv])
	case "trtllm":
		w.option("kv_cache_config.dtype", map[string]string{"bf16": "auto", "fp16": "auto", "fp8": "fp8"}[kv])
	}
}

// quantization asks for a format of the weights that the checkpoint of the catalog does not have.
func (w *lineWriter) quantization(engine, dtype string) {
	switch dtype {
	case "bf16":
		w.flag("dtype", "bfloat16")
	case "fp16":
		w.flag("dtype", "float16")
	default:
		if engine == "trtllm" {
			w.option("quant_config.quant_algo", map[string]string{"fp8": "FP8", "int4": "W4A16_AWQ", "nvfp4": "NVFP4",
				"mxfp4": "W4A8_MXFP4_FP8"}[dtype])
		} else {
			w.flag("quantization", map[string]string{"fp8": "fp8", "int4": "awq", "nvfp4": "modelopt_fp4",
				"mxfp4": "mxfp4"}[dtype])
		}
		if dtype != "fp8" {
			w.note("weights in %s: name a checkpoint in this format", dtype)
		}
	}
}

// vllm writes the flags that only vLLM has.
func (w *lineWriter) vllm() {
	e := &w.pool.Scenario.Engine
	if e.Policy == "vllm-v0" {
		w.env("VLLM_USE_V1", "0")
	}
	w.say("engine.policy", "engine.kernels", "engine.version")
	if n := w.lookup("deployment", "num_redundant_experts"); n != nil && n.Number > 0 {
		w.toggle("enable-eplb")
		w.flag("eplb-config", fmt.Sprintf(`{"num_redundant_experts": %s}`, n.Text))
	}
	w.say("deployment.num_redundant_experts", "deployment.all2all_backend")
	if b := w.text("deployment", "all2all_backend"); b != "" && b != "auto" {
		if b == "deepep" { // the faster of two kernels, which vLLM does not choose by itself
			b = "deepep_low_latency"
			w.note("all2all_backend deepep: vLLM has the kernels of low latency here")
		}
		w.flag("all2all-backend", b)
	}
	w.drafts(func(method, model string, tokens int) {
		c := map[string]any{"method": map[string]string{"eagle": "eagle", "mtp": "mtp", "draft": "draft_model",
			"ngram": "ngram", "ngram_gpu": "ngram_gpu"}[method], "num_speculative_tokens": tokens}
		if model != "" {
			c["model"] = model
		}
		if method == "eagle" {
			w.note("speculative decoding: add the model of the EAGLE head to --speculative-config")
		}
		text, _ := json.Marshal(c) // strings and numbers
		w.flag("speculative-config", string(text))
	})
	if n := w.lookup("engine", "max_cudagraph_capture_size"); n != nil && n.Number == 1 {
		w.toggle("enforce-eager")
		w.say("engine.max_cudagraph_capture_size")
	}
	w.transfer()
	w.tiers()
}

// transfer writes vLLM's connector of prefill and decode pools.
func (w *lineWriter) transfer() {
	role := map[string]string{"prefill": "kv_producer", "decode": "kv_consumer"}[w.group.Role]
	if role == "" {
		return
	}
	policy := "recompute"
	if d := w.pool.Scenario.Disaggregation; d != nil {
		policy = d.KVLoadFailurePolicy
	}
	w.flag("kv-transfer-config", fmt.Sprintf(
		`{"kv_connector": "NixlConnector", "kv_role": %q, "kv_load_failure_policy": %q}`, role, policy))
}

// tiers writes KV memory on the host. Further tiers have no flag.
func (w *lineWriter) tiers() {
	o := w.pool.Scenario.Offload
	if o == nil || len(o.Tiers) == 0 {
		return
	}
	w.flag("kv-offloading-size", strconv.FormatFloat(float64(o.Tiers[0].Size)/(1<<30), 'g', 10, 64))
	if len(o.Tiers) > 1 {
		w.note("offload: vLLM has one tier, host memory; the others need LMCache")
	}
}

// drafts calls write with speculative decoding, if the scenario has it.
func (w *lineWriter) drafts(write func(method, model string, tokens int)) {
	p := w.pool.Scenario.Engine.Speculative
	for _, key := range []string{"", ".method", ".num_speculative_tokens", ".acceptance", ".model", ".match"} {
		w.say("engine.speculative" + key)
	}
	if p == nil {
		return
	}
	name := ""
	if p.Model != nil {
		name = *p.Model
	}
	write(p.Method, name, p.NumSpeculativeTokens)
}

// ranksReserve is the factor of schedule_conservativeness with data-parallel attention (sglang/srt/server_args.py).
const ranksReserve = 0.3

// sglang writes the flags that only SGLang has.
func (w *lineWriter) sglang() {
	w.say("engine.policy", "engine.kernels", "engine.version", "engine.max_num_seqs", "engine.max_num_batched_tokens",
		"engine.sglang.chunked_prefill_size", "engine.enable_chunked_prefill", "deployment.all2all_backend",
		"deployment.num_redundant_experts", "deployment.enable_dbo")
	dp := max(w.pool.Deployment.DataParallel, 1)
	if n := w.lookup("engine", "max_num_seqs"); n != nil {
		w.flag("max-running-requests", strconv.Itoa(int(n.Number)*dp))
	}
	chunk := w.lookup("engine", "sglang", "chunked_prefill_size")
	if chunk == nil {
		chunk = w.lookup("engine", "max_num_batched_tokens")
	}
	if c := w.lookup("engine", "enable_chunked_prefill"); c != nil && !c.Truth {
		w.flag("chunked-prefill-size", "-1")
	} else if chunk != nil {
		w.flag("chunked-prefill-size", strconv.Itoa(int(chunk.Number)*dp))
	} else if n := w.pool.Scenario.Engine.MaxNumBatchedTokens; dp > 1 && n != nil {
		w.flag("chunked-prefill-size", strconv.Itoa(*n*dp)) // SGLang's default is shared by the ranks
	}
	if b := w.text("deployment", "all2all_backend"); strings.HasPrefix(b, "deepep") {
		w.flag("moe-a2a-backend", "deepep")
	}
	if n := w.lookup("deployment", "num_redundant_experts"); n != nil && n.Number > 0 {
		w.flag("ep-num-redundant-experts", n.Text)
	}
	if n := w.lookup("deployment", "enable_dbo"); n != nil && n.Truth {
		w.toggle("enable-two-batch-overlap")
	}
	w.say("engine.sglang.schedule_conservativeness")
	if n := w.lookup("engine", "sglang", "schedule_conservativeness"); n != nil {
		x := n.Number
		if dp > 1 {
			x /= ranksReserve
		}
		if x = math.Round(x*1e6) / 1e6; x != 1 {
			w.flag("schedule-conservativeness", strconv.FormatFloat(x, 'g', -1, 64))
		}
	} else if dp > 1 {
		w.note("SGLang multiplies schedule_conservativeness by %g with data-parallel attention", ranksReserve)
	}
	w.drafts(func(method, model string, tokens int) {
		algorithm, ok := map[string]string{"eagle": "EAGLE3", "mtp": "EAGLE", "draft": "STANDALONE",
			"ngram": "NGRAM"}[method]
		if !ok {
			w.note("engine.speculative.method %s: SGLang has no such drafts", method)
			return
		}
		w.flag("speculative-algorithm", algorithm)
		w.flag("speculative-num-steps", strconv.Itoa(tokens))
		if model != "" {
			w.flag("speculative-draft-model-path", model)
		}
		if method == "eagle" {
			w.note("speculative decoding: add the model of the EAGLE head with --speculative-draft-model-path")
		}
	})
	if w.group.Role != "" {
		w.flag("disaggregation-mode", w.group.Role)
	}
	if w.pool.Scenario.Offload != nil {
		w.note("offload: SGLang's hierarchical cache is not exported")
	}
}

// trtllm writes the options that only TensorRT-LLM has, on the command line and in its file of options.
func (w *lineWriter) trtllm() {
	w.say("engine.policy", "engine.kernels", "engine.version", "engine.max_num_seqs", "engine.max_num_batched_tokens",
		"engine.max_model_len", "engine.enable_prefix_caching", "engine.block_size", "engine.enable_chunked_prefill",
		"engine.stream_interval", "deployment.all2all_backend")
	for _, k := range []struct{ key, flag string }{{"max_num_seqs", "max_batch_size"},
		{"max_num_batched_tokens", "max_num_tokens"}, {"max_model_len", "max_seq_len"}} {
		if n := w.lookup("engine", k.key); n != nil {
			w.flag(k.flag, n.Text)
		}
	}
	if policy := w.pool.Scenario.Engine.Policy; policy != "trtllm-guaranteed-no-evict" && engines[policy] == "trtllm" {
		w.option("scheduler_config.capacity_scheduler_policy",
			strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(policy, "trtllm-"), "-", "_"))+map[bool]string{
				true: "_BATCH"}[policy == "trtllm-static"])
	}
	if n := w.lookup("engine", "enable_prefix_caching"); n != nil {
		w.option("kv_cache_config.enable_block_reuse", strconv.FormatBool(n.Truth))
	}
	for _, k := range []struct{ key, option string }{{"block_size", "kv_cache_config.tokens_per_block"},
		{"stream_interval", "stream_interval"}} {
		if n := w.lookup("engine", k.key); n != nil {
			w.option(k.option, n.Text)
		}
	}
	if n := w.lookup("engine", "enable_chunked_prefill"); n != nil {
		w.option("enable_chunked_prefill", strconv.FormatBool(n.Truth))
	}
	if role := map[string]string{"prefill": "CONTEXT", "decode": "GENERATION"}[w.group.Role]; role != "" {
		w.flag("server_role", role)
		w.option("cache_transceiver_config.backend", "DEFAULT")
	}
	w.trtllmOptions()
	w.drafts(func(method, model string, tokens int) {
		switch method {
		case "mtp":
			w.option("speculative_config.decoding_type", "MTP")
			w.option("speculative_config.num_nextn_predict_layers", strconv.Itoa(tokens))
		case "eagle":
			w.option("speculative_config.decoding_type", "Eagle")
			w.option("speculative_config.max_draft_len", strconv.Itoa(tokens))
			w.note("speculative decoding: add speculative_config.speculative_model_dir, the EAGLE head")
		default:
			w.note("engine.speculative.method %s is not exported for TensorRT-LLM", method)
		}
	})
	if w.pool.Scenario.Offload != nil {
		w.note("offload: TensorRT-LLM's host cache is not exported")
	}
}

// trtllmOptions are the options of the section engine.trtllm.
func (w *lineWriter) trtllmOptions() {
	for _, k := range []struct{ key, option string }{
		{"free_gpu_memory_fraction", "kv_cache_config.free_gpu_memory_fraction"},
		{"context_chunking_policy", "scheduler_config.context_chunking_policy"},
		{"attention_dp_enable_balance", "attention_dp_config.enable_balance"},
		{"attention_dp_timeout_iters", "attention_dp_config.timeout_iters"},
		{"attention_dp_batching_wait_iters", "attention_dp_config.batching_wait_iters"},
	} {
		w.say("engine.trtllm." + k.key)
		if n := w.lookup("engine", "trtllm", k.key); n != nil {
			w.option(k.option, scalar(n))
		}
	}
}

func scalar(n *yamldoc.Node) string {
	if n.Kind == yamldoc.Bool {
		return strconv.FormatBool(n.Truth)
	}
	return n.Text
}

// others writes the keys that a flag of the engine's table says directly, and notes those that none says.
func (w *lineWriter) others(engine string) {
	table, err := flags.Of(engine)
	if err != nil {
		table = &flags.Table{}
	}
	for _, section := range []string{"deployment", "engine"} {
		n := w.lookup(section)
		if n == nil {
			continue
		}
		w.section(table, section, n)
	}
}

// section writes the keys of a section, and those of the sections in it.
func (w *lineWriter) section(table *flags.Table, prefix string, n *yamldoc.Node) {
	for _, f := range n.Fields {
		key := prefix + "." + f.Name
		switch {
		case w.done[key] || f.Value.Kind == yamldoc.Null:
			continue
		case f.Value.Kind == yamldoc.Text && f.Value.Text == "auto":
			continue
		case f.Value.Kind == yamldoc.Map && !w.done[key]:
			w.section(table, key, f.Value)
			continue
		}
		if !w.byTable(table.Flags, key, f.Value, w.flag) && !w.byTable(table.File, key, f.Value, w.option) {
			w.note("%s: %s has no flag", key, cmpOr(table.Program, "the engine"))
		}
	}
}

func (w *lineWriter) byTable(list []flags.Flag, key string, v *yamldoc.Node, add func(name, value string)) bool {
	off := v.Kind == yamldoc.Bool && !v.Truth
	var plain, negated *flags.Flag
	for i := range list {
		switch f := &list[i]; {
		case f.Sets != key:
		case f.Negated && negated == nil:
			negated = f
		case !f.Negated && plain == nil:
			plain = f
		}
	}
	switch {
	case off && negated != nil:
		w.toggle(negated.Name)
	case plain == nil:
		return negated != nil // the switch only turns it off, and it is on
	case plain.Type != "bool" || len(list) > 0 && v.Kind != yamldoc.Bool:
		add(plain.Name, written(plain, scalar(v)))
	case off:
		w.toggle("no-" + plain.Name)
	default:
		w.toggle(plain.Name)
	}
	return true
}

func written(f *flags.Flag, value string) string {
	if to, ok := f.Values[value]; ok && to == value {
		return value
	}
	for _, from := range sortedKeys(f.Values) {
		if f.Values[from] == value {
			return from
		}
	}
	return value
}
