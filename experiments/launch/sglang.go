package launch

import (
	"strings"

	"clifftop/experiments/launch/flags"
	"clifftop/model/catalog"
)

// ranksReserve is SGLang's factor on schedule_conservativeness with data-parallel attention (server_args.py).
const ranksReserve = 0.3

// ranks is the number of data-parallel ranks of a replica.
func ranks(b *builder) int {
	if d := b.root.Lookup("deployment", "data_parallel_size"); d != nil {
		return max(int(d.Number), 1)
	}
	return 1
}

// attentionRanks translates what SGLang's data-parallel attention changes beside the groups of GPUs.
func attentionRanks(b *builder, f Flag) {
	b.account(f, flags.Rule, "data-parallel attention with %d ranks", ranks(b))
	if _, given := b.given["schedule-conservativeness"]; !given && b.has("enable-dp-attention") {
		reserve(b, f)
	}
	if _, given := b.given["chunked-prefill-size"]; !given && ranks(b) > 1 {
		if g := b.root.Get("gpu"); g != nil {
			if gpu, err := catalog.GPU(g.Text); err == nil {
				b.putNote("engine.sglang.chunked_prefill_size", whole(max(chunkOf(gpu.MemoryBytes)/ranks(b), 1)), f,
					"the default of the GPU, shared by the ranks")
			}
		}
	}
}

// chunkOf is SGLang's chunked_prefill_size for a GPU with so much memory (server_args.py).
func chunkOf(bytes float64) int {
	const gb = 1e9
	switch {
	case bytes < 35*gb:
		return 2048
	case bytes < 60*gb:
		return 4096
	case bytes < 160*gb:
		return 8192
	}
	return 16384
}

// reserve translates schedule_conservativeness, or its default if the flag is the one of data-parallel attention.
func reserve(b *builder, f Flag) {
	x := 1.0
	if g, given := b.given["schedule-conservativeness"]; given {
		var ok bool
		if x, ok = readNumber(g.Value); !ok || x <= 0 {
			b.noValue(g, "a number above 0")
			return
		}
	}
	remark := ""
	if ranks(b) > 1 {
		x, remark = x*ranksReserve, "0.3 of it with data-parallel attention"
	}
	if x != 1 {
		b.putNote("engine.sglang.schedule_conservativeness", number(x), f, remark)
	}
	if f.Name == b.given["schedule-conservativeness"].Name {
		b.account(f, flags.Rule, "engine.sglang.schedule_conservativeness: %g", x)
	}
}

// exchanges are SGLang's backends of the exchange with experts in the terms of a scenario.
var exchanges = map[string]string{"deepep": "deepep", "deepep_v2": "deepep", "mooncake": "deepep", "mori": "deepep",
	"nixl": "deepep", "pplx": "deepep", "megamoe": "deepep", "flashinfer": "flashinfer_all2allv", "none": "",
	"ascend_fuseep": "deepep", "ascend_tp": ""}

// expertExchange translates moe-a2a-backend, deepep-mode and, in old releases, enable-deepep-moe.
func expertExchange(b *builder, f Flag) {
	backend := strings.ToLower(b.given["moe-a2a-backend"].Value)
	if b.has("enable-deepep-moe") {
		backend = "deepep"
	}
	way, known := exchanges[backend]
	switch {
	case backend == "":
		b.account(f, flags.Rule, "no backend of the exchange is chosen (moe-a2a-backend)")
		return
	case !known:
		b.noValue(b.given["moe-a2a-backend"], "deepep, flashinfer, mooncake, mori or none")
		return
	case !b.isMoE():
		b.account(f, flags.Rule, "the model has no experts")
		return
	case way == "" || ranks(b) == 1:
		b.account(f, flags.Rule, "experts on %d GPUs, without an exchange of ranks", experts(b))
		return
	}
	if way == "deepep" {
		switch strings.ToLower(b.given["deepep-mode"].Value) {
		case "normal":
			way = "deepep_high_throughput"
		case "low_latency":
			way = "deepep_low_latency"
		}
	}
	remark := ""
	if way != exchanges["flashinfer"] && !strings.HasPrefix(backend, "deepep") {
		remark = "its kernels count as those of DeepEP"
	}
	b.putNote("deployment.all2all_backend", text(way), f, remark)
	b.account(f, flags.Rule, "deployment.all2all_backend: %s, experts on %d GPUs", way, experts(b))
}

// experts is the number of GPUs over which experts are spread.
func experts(b *builder) int {
	if d := b.root.Lookup("deployment", "expert_parallel_size"); d != nil {
		return max(int(d.Number), 1)
	}
	return 1
}

// draftTree translates the width of a tree of drafts.
func draftTree(b *builder, f Flag) {
	n, ok := b.int(f)
	switch {
	case !ok:
	case n > 1:
		b.account(f, flags.Unmodelled, "drafts are a chain: a tree accepts more tokens and verifies more")
	default:
		b.account(f, flags.Rule, "drafts are a chain")
	}
}

// preemptionThreshold is SGLang's default of priority_scheduling_preemption_threshold.
const preemptionThreshold = 10

// priorityScheduling translates SGLang's scheduling by priority, with preemption.
func priorityScheduling(b *builder, f Flag) {
	if !b.has("enable-priority-scheduling") {
		b.account(f, flags.None, "it needs enable-priority-scheduling")
		return
	}
	on := b.given["enable-priority-scheduling"]
	b.put("engine.scheduling_policy", text("priority"), on)
	if !b.has("disable-priority-preemption") {
		from, n := on, preemptionThreshold
		if g, given := b.given["priority-scheduling-preemption-threshold"]; given {
			var ok bool
			if n, ok = b.int(g); !ok {
				return
			}
			from = g
		}
		b.put("engine.sglang.priority_scheduling_preemption_threshold", whole(n), from)
	}
	b.account(f, flags.Rule, "engine.scheduling_policy: priority")
}

// kvFormats are the formats of the KV cache in the engines with those of a scenario. Those of 4 bits are not modelled.
var kvFormats = map[string]string{"auto": "auto", "bf16": "bf16", "bfloat16": "bf16", "fp16": "fp16", "float16": "fp16",
	"fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "mxfp8": "fp8", "int8": "fp8", "none": "auto",
	"no_quant": "auto",
	"fp4_e2m1": "", "fp4_mx_block16": "", "nvfp4": "", "fp4": ""}

// kvFormat translates the format of the KV cache.
func kvFormat(b *builder, f Flag) {
	format, known := kvFormats[strings.ToLower(f.Value)]
	switch {
	case !known:
		b.noValue(f, "auto, bf16, fp8_e4m3 or fp8_e5m2")
	case format == "":
		b.putNote("deployment.kv_cache_dtype", text("fp8"), f, "4 bits are not modelled")
		b.account(f, flags.Unmodelled, "KV in 4 bits counts as fp8")
	default:
		b.put("deployment.kv_cache_dtype", text(format), f)
		b.account(f, flags.Rule, "deployment.kv_cache_dtype: %s", format)
	}
}

// kvBlocks are the sizes of KV blocks by engine if no flag sets them.
var kvBlocks = map[string]int{"vllm": 16, "sglang": 1, "trtllm": 32}

// kvTokens translates the size of the KV pool in tokens.
func kvTokens(b *builder, f Flag) {
	n, ok := b.int(f)
	if !ok {
		return
	}
	size := b.count("page-size", b.count("kv-cache-config.tokens-per-block", kvBlocks[b.line.Engine]))
	blocks := n/max(size, 1) + 1 // the scenario's number has the block that is never used
	if blocks < 2 {
		b.noValue(f, "room for one block or more")
		return
	}
	b.put("engine.block_size", whole(max(size, 1)), f)
	b.putNote("engine.num_gpu_blocks_override", whole(blocks), f, "the pool is taken to fit")
	b.account(f, flags.Rule, "engine.num_gpu_blocks_override: %d blocks of %d tokens", blocks, max(size, 1))
}
