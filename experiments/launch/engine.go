package launch

import (
	"encoding/json"
	"strings"

	"clifftop/experiments/launch/flags"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
)

var policies = map[string]string{"vllm": "vllm", "sglang": "sglang", "trtllm": "trtllm-guaranteed-no-evict"}

var numberedRelease = pattern.New(`^0\.\d+`)

// oldReleases of vLLM have the V0 engine.
var oldReleases = pattern.New(`^0\.[0-7]$`)

// policy sets the policy and the release of the engine.
func (b *builder) policy() {
	engine := Flag{Name: "image", Value: b.line.Image, File: true, At: b.line.At}
	if b.line.Image == "" {
		engine = Flag{}
	}
	if b.line.Engine != "vllm" {
		b.put("engine.policy", text(policies[b.line.Engine]), Flag{})
	}
	minor := numberedRelease.Get().FindString(b.line.Release)
	switch {
	case b.line.Engine == "vllm" && oldReleases.Get().MatchString(minor):
		b.put("engine.policy", text("vllm-v0"), engine)
		b.assume("vllm-%s is older than 0.8, the oldest release that is known: the step times "+
			"of the newest release are used, with the V0 scheduler", minor)
	case minor != "" && b.line.Engine == "vllm":
		b.put("engine.version", text("vllm-"+minor), engine)
	case minor != "" && b.line.Engine == "sglang":
		b.put("engine.version", text("sglang-"+strings.SplitN(b.line.Release, "rc", 2)[0]), engine)
	default:
		b.assume("no release of %s is named: that of the newest known rules", b.table.Program)
	}
}

// graphs translates the sizes of CUDA graphs. Without any, the host launches every kernel.
func (b *builder) graphs(f Flag) {
	largest := 0
	switch {
	case strings.Contains(strings.ReplaceAll(f.Name, "_", "-"), "capture") || strings.Contains(f.Name, "bs") ||
		strings.Contains(f.Name, "sizes"):
		for part := range strings.SplitSeq(strings.Trim(f.Value, "[]"), ",") {
			n, ok := humanInt(strings.TrimSpace(part))
			if !ok {
				b.noValue(f, "whole numbers")
				return
			}
			largest = max(largest, n)
		}
	default:
		on, ok := readTruth(f.Value)
		if !ok {
			b.noValue(f, "true or false")
			return
		}
		if !on {
			b.account(f, flags.Rule, "CUDA graphs stay on")
			return
		}
		largest = 1
	}
	if b.line.Engine != "vllm" {
		b.account(f, flags.Unmodelled, "CUDA graphs are modelled for vLLM only")
		return
	}
	remark := ""
	if largest <= 1 {
		largest, remark = 1, "the host launches the kernels of iterations of more than one token"
	}
	b.putNote("engine.max_cudagraph_capture_size", whole(largest), f, remark)
	b.account(f, flags.Rule, "engine.max_cudagraph_capture_size: %d", largest)
}

// compilation reads the parts of vLLM's compilation config that matter: the sizes of CUDA graphs.
func (b *builder) compilation(f Flag) {
	values := map[string]any{}
	if strings.HasPrefix(strings.TrimSpace(f.Value), "{") {
		if err := json.Unmarshal([]byte(f.Value), &values); err != nil {
			b.noValue(f, "JSON")
			return
		}
	}
	largest := 0
	if n, ok := values["max_cudagraph_capture_size"].(float64); ok {
		largest = int(n)
	}
	if list, ok := values["cudagraph_capture_sizes"].([]any); ok {
		for _, x := range list {
			if n, ok := x.(float64); ok {
				largest = max(largest, int(n))
			}
		}
	}
	if largest > 0 {
		b.put("engine.max_cudagraph_capture_size", whole(largest), f)
		b.account(f, flags.Rule, "engine.max_cudagraph_capture_size: %d; fusions are those of the release", largest)
		return
	}
	b.account(f, flags.Unmodelled, "compilation passes are those of the release")
}

// drafters are methods of speculative decoding in the engines with those of a scenario.
var drafters = map[string]string{"ngram": "ngram", "ngram_gpu": "ngram_gpu", "suffix": "ngram", "eagle": "eagle",
	"eagle3": "eagle", "mtp": "mtp", "deepseek_mtp": "mtp", "qwen3_next_mtp": "mtp", "qwen3_5_mtp": "mtp",
	"glm4_moe_mtp": "mtp",
	"ernie_mtp":    "mtp", "mimo_mtp": "mtp", "longcat_flash_mtp": "mtp", "draft_model": "draft", "nextn": "mtp",
	"standalone": "draft", "draft_target": "draft", "medusa": "eagle", "mlp_speculator": "eagle"}

// assumedAcceptance is the probability that a draft is accepted, where only a measurement would say it.
const assumedAcceptance = 0.7

// drafts translates speculative decoding. No flag says how often drafts are accepted.
func (b *builder) drafts(f Flag) {
	if b.root.Lookup("engine", "speculative") != nil {
		b.account(f, flags.Rule, "engine.speculative")
		return
	}
	method, tokens, draft, ok := b.draftOptions(f)
	if !ok {
		return
	}
	kind, known := drafters[strings.ToLower(method)]
	switch {
	case method == "" || strings.EqualFold(method, "none"):
		b.account(f, flags.Rule, "no drafts")
		return
	case !known:
		b.account(f, flags.Unmodelled, "drafts by %s", yamldoc.Short(method))
		return
	}
	if strings.EqualFold(method, "eagle") && b.line.Engine == "sglang" && draft == "" {
		kind = "mtp" // SGLang's EAGLE without a draft model is the layer of the model itself
	}
	n := &yamldoc.Node{Kind: yamldoc.Map}
	n.Put("method", f.At, text(kind))
	n.Put("num_speculative_tokens", f.At, whole(max(tokens, 1)))
	n.Put("acceptance", f.At, number(assumedAcceptance))
	if kind == "draft" {
		n.Put("model", f.At, text(draft))
	}
	b.putNote("engine.speculative", n, f, "the acceptance is assumed")
	b.account(f, flags.Rule, "engine.speculative: %s, %d tokens", kind, max(tokens, 1))
	b.assume("engine.speculative.acceptance is %g, a guess: the engine's metrics have the measured one",
		assumedAcceptance)
}

// draftOptions reads the method, the number of draft tokens and the draft model, which stand in one flag or in several.
func (b *builder) draftOptions(f Flag) (method string, tokens int, draft string, ok bool) {
	if b.line.Engine == "vllm" && strings.HasPrefix(strings.TrimSpace(f.Value), "{") {
		var c struct {
			Method string `json:"method"`
			Tokens int    `json:"num_speculative_tokens"`
			Model  string `json:"model"`
		}
		if err := json.Unmarshal([]byte(f.Value), &c); err != nil {
			b.noValue(f, "JSON")
			return "", 0, "", false
		}
		if c.Method == "" && c.Model != "" {
			c.Method = "draft_model"
		}
		return c.Method, c.Tokens, c.Model, true
	}
	pick := func(names ...string) string {
		for _, name := range names {
			if g, ok := b.given[name]; ok {
				return g.Value
			}
		}
		return ""
	}
	method = pick("speculative-algorithm", "speculative-config.decoding-type", "speculative-config.method",
		"spec-method", "speculative-config.type")
	draft = pick("speculative-draft-model-path", "speculative-config.model", "speculative-config.speculative-model-dir",
		"spec-model", "speculative-model")
	count := pick("speculative-num-steps", "speculative-config.num-nextn-predict-layers",
		"speculative-config.max-draft-len", "speculative-config.num-speculative-tokens", "spec-tokens",
		"num-speculative-tokens",
		"speculative-num-draft-tokens")
	if tokens, ok = humanInt(count); !ok && count != "" {
		b.noValue(f, "a whole number of draft tokens")
		return "", 0, "", false
	}
	if method == "" && draft != "" {
		method = "draft_model"
	}
	if count == "" && b.line.Engine == "sglang" {
		tokens = draftSteps(b.isMoE())
	}
	return method, max(tokens, 1), draft, true
}

// draftSteps are the steps that SGLang chooses for EAGLE if no flag says them: fewer for models with experts
// (auto_choose_speculative_params in server_args.py).
func draftSteps(moe bool) int {
	if moe {
		return 3
	}
	return 5
}

// merged adds a value to a flag in JSON, as of --speculative-config.method mtp.
func merged(object, path, value string) string {
	all := map[string]any{}
	if object != "" && json.Unmarshal([]byte(object), &all) != nil {
		return value
	}
	var v any
	if json.Unmarshal([]byte(strings.ToLower(value)), &v) != nil || strings.HasPrefix(value, `"`) {
		v = value
	}
	at := all
	names := strings.Split(strings.ReplaceAll(path, "-", "_"), ".")
	for _, name := range names[:len(names)-1] {
		inner, ok := at[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			at[name] = inner
		}
		at = inner
	}
	at[names[len(names)-1]] = v
	text, err := json.Marshal(all)
	if err != nil {
		return value
	}
	return string(text)
}

// chunks translates SGLang's chunked_prefill_size, where -1 means whole prompts.
func chunks(b *builder, f Flag) {
	n, ok := b.int(f)
	switch {
	case !ok:
	case n <= 0:
		b.put("engine.enable_chunked_prefill", truth(false), f)
		b.account(f, flags.Rule, "engine.enable_chunked_prefill: false")
	default:
		if d := b.root.Lookup("deployment", "data_parallel_size"); d != nil && d.Number > 1 {
			n = max(n/int(d.Number), 1)
			b.putNote("engine.sglang.chunked_prefill_size", whole(n), f, "shared by the ranks")
		} else {
			b.put("engine.sglang.chunked_prefill_size", whole(n), f)
		}
		b.account(f, flags.Rule, "engine.sglang.chunked_prefill_size: %d", n)
	}
}

// seatsOfRanks translates a limit of requests of all data-parallel ranks to that of one.
func seatsOfRanks(b *builder, f Flag) {
	n, ok := b.int(f)
	if !ok {
		return
	}
	remark := ""
	if d := b.root.Lookup("deployment", "data_parallel_size"); d != nil && d.Number > 1 {
		n, remark = max(n/int(d.Number), 1), "shared by the ranks"
	}
	b.putNote("engine.max_num_seqs", whole(n), f, remark)
	b.account(f, flags.Rule, "engine.max_num_seqs: %d", n)
}

// capacity translates TensorRT-LLM's capacity_scheduler_policy.
func capacity(b *builder, f Flag) {
	policy, ok := map[string]string{"guaranteed_no_evict": "trtllm-guaranteed-no-evict",
		"max_utilization": "trtllm-max-utilization", "static_batch": "trtllm-static"}[strings.ToLower(f.Value)]
	if !ok {
		b.noValue(f, "GUARANTEED_NO_EVICT, MAX_UTILIZATION or STATIC_BATCH")
		return
	}
	b.put("engine.policy", text(policy), f)
	b.account(f, flags.Rule, "engine.policy: %s", policy)
}

// oldEngineRule is the rule of VLLM_USE_V1. What follows from the flags depends on it.
const oldEngineRule = "old engine"

// oldEngine translates VLLM_USE_V1=0.
func (b *builder) oldEngine(f Flag) {
	if on, ok := readTruth(f.Value); ok && !on {
		b.put("engine.policy", text("vllm-v0"), f)
		if e := b.root.Get("engine"); e != nil {
			e.Put("version", f.At, nil)
		}
		b.account(f, flags.Rule, "engine.policy: vllm-v0")
		return
	}
	b.account(f, flags.Rule, "the V1 engine")
}
