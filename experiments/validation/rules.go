package validation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"clifftop/internal/pattern"
	"clifftop/model"
	"clifftop/model/catalog"
)

// Rule is something that files of measurements leave open or get wrong, and how it is settled: by a
// property of the source's engine version, of the GPU or of the model, never for one run.
type Rule struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// rules are all that is filled in. The rows of a [Report] carry the codes of those that were applied.
func rules() []Rule { return slices.Concat(engineRules(), sourceRules(), deploymentRules()) }

// engineRules settle what files leave open of a single engine and its client.
func engineRules() []Rule {
	return []Rule{
		{"version", "a run without an engine version is taken for the last vLLM without asynchronous scheduling, " +
			olderVersion + ", without host time: launch scripts of the time asked vLLM 0.10.2 for asynchronous " +
			"scheduling, which hides the host, as the times per token show, but new requests join as early as in a " +
			"synchronous loop; the runs of inference-sim/training, of February 2026, for vllm-0.15, which the same " +
			"group's dated runs carry; those on Blackwell and of gpt-oss, whose published launch scripts ask for " +
			"asynchronous scheduling and fused all-reduces, for " + recipeVersion + ", where both are the default"},
		{"early_async", "asynchronous scheduling before vLLM 0.14, where it is an option, hides the host as the " +
			"times per token show, but new requests join as early as in a synchronous loop: it is simulated as one " +
			"without host time"},
		{"fusion", "all-reduces are fused with norms where the launch script asks for it, but not in a mixture of " +
			"experts before vLLM 0.16, whose times per token show none"},
		{"kv_dtype", "aiconfigurator's runs of vLLM with quantised weights hold KV in 16 bits on H100 and in fp8 on " +
			"Blackwell, whatever the label, as their times per token and their queues show; pools hold it in fp8 " +
			"under TensorRT-LLM, and under SGLang on Blackwell and AMD, as the launch scripts of single engines do"},
		{"capture", "runs of gpt-oss without launch options capture CUDA graphs up to 2,048 tokens, as the published " +
			"launch scripts do"},
		{"sampling",
			"inference-perf leaves sampling to vLLM, which takes top-p from the model's generation_config: on for " +
				strings.Join(topPModels, ", ") + "; other clients ask for temperature 0, which is greedy"},
		{"retokenised", "inference-perf's random text has 5 % more tokens than asked for, with a spread of 2 % to " +
			"either side; the engine produced the nominal number of answer tokens"},
		{"prompts", "the runs of inference-perf with shared prefixes cycle through 100 prompts, ten groups of ten, " +
			"with prefix caching on"},
		{"limits", "runs of inference-perf without max_num_seqs had 128, without max_num_batched_tokens 2048; " +
			"anything else left open is the engine's default"},
		{"cold_start", fmt.Sprintf("a mixture of experts in 16 bits compiles its Triton kernels when a fresh process "+
			"meets its first prompts: the first %d iterations with prefill of an inference-perf run last %g s "+
			"longer; so do the first %d of the opening burst of a closed loop under SGLang, by %g s, and the first "+
			"%d by %g s under TensorRT-LLM with latent attention, and the first %d of replayed sessions with it by "+
			"%g s", tritonStart.steps, tritonStart.seconds, sglangStart.steps,
			sglangStart.seconds, trtllmStart.steps, trtllmStart.seconds, latentStart.steps, latentStart.seconds)},
	}
}

// sourceRules settle what one source of measurements does its own way, and the traffic of rows.
func sourceRules() []Rule {
	return []Rule{
		{"queue_clock", "in runs of LLMServingSim the time to first token counts from the engine's queue: no front " +
			"end, no streaming delay, and requests arrive when they were queued"},
		{"workstation",
			"the RTX PRO 6000 of LLMServingSim's runs is the workstation edition, in a machine that moves 16 GB/s " +
				"between two"},
		{"steady", fmt.Sprintf("a row with the mean batch of a steady state, its time per token and its power is not "+
			"simulated: power follows from iterations of the measured length; prompts of unknown length have %d "+
			"tokens in chat and %d in code", steadyChatTokens, steadyCodeTokens)},
		{"one_rank", fmt.Sprintf("more than %d attention-data-parallel ranks, and those that look for requests only "+
			"once in several iterations, are alike: one is simulated, with every n-th request, or an n-th of the "+
			"clients or of the rate, and its throughput counts n times", allRanks)},
		{"replicas", "dp of an open-loop client is a number of independent replicas behind one address, which share " +
			"the published rate; where a row has a number of replicas, its load and its throughput are per replica"},
		{"repeats", "runs of one configuration with the same load on different days are one point of their cell, " +
			"with the median of their errors; runs marked suspect are in no cell"},
		{"chunks", "where the mean time between chunks is several times that per token, the stream carries several " +
			"tokens a chunk (SGLang's stream_interval), and times between chunks are not compared"},
		{"sessions", "users replay recorded sessions in a closed loop: a turn is sent when the one before has ended " +
			"and the recorded pause is over, the first turn of a session at its recorded time, or where a user has " +
			"several sessions, when the one before is over; prompts have the lengths that the server of runs with " +
			"one user counted, 0.71 of the recorded growth and 1,500 tokens of an answer more from turn to turn; " +
			"sessions go on beyond their last recorded turn with usual turns"},
		{"other_sessions", "a run without a file of its requests replays the first sessions that other runs of the " +
			"file have, and where there are too few, others of the same lengths"},
	}
}

// deploymentRules settle what files leave open of large deployments, pools and drafts.
func deploymentRules() []Rule {
	return []Rule{
		{"host_memory", fmt.Sprintf("KV goes to the memory of the host and back at %d GB/s for each GPU", hostLink)},
		{"share", fmt.Sprintf("of pools with many users one of several equal parts is simulated, with its part of "+
			"the ranks and at least %d of the users, and its throughput counts as often", fewestUsers)},
		{"draft_host", fmt.Sprintf("SGLang prepares and verifies drafts on the host, %d us for each sequence and "+
			"iteration up to 0.5.9, %d in 0.5.10, %d in 0.5.11, %d later, and %d on AMD's GPUs", draftHosts[0].micros,
			draftHosts[1].micros, draftHosts[2].micros, draftHosts[3].micros, draftHostAMD)},
		{"pools", "pools that compute prompts and outputs apart run under vLLM's scheduler, whatever the engine, " +
			"with up to " +
			fmt.Sprintf("%d prompt tokens in an iteration of a rank; a worker with data-parallel attention has a "+
				"rank on each ",
				poolPrefillTokens) + "GPU, and its ranks are balanced; requests take " + poolHop.String() +
			" from one pool to the other"},
		{ruleSplit, "where tp of aiconfigurator's rows exceeds the GPUs that scale-up links join and is divisible by " +
			"ep, it is the product of tensor and expert parallelism"},
		{ruleRecipeDrafts, fmt.Sprintf("the recipes of SGLang 0.5.9 for Qwen3.5-397B in fp8 use four B200 without "+
			"expert parallelism only with multi-token prediction, %d drafts, and the times per token, shorter than "+
			"on eight GPUs, show it; max_num_seqs is then the engine's", recipeDrafts)},
		{"decode_seqs", fmt.Sprintf("decoding ranks of TensorRT-LLM take as many sequences as in published recipes: "+
			"the largest of %v with which all ranks take at most as many as there are users, if the users are not "+
			"more than %g times as many; SGLang's workers beyond a node take %d", recipeBatches,
			recipeUsers, wideSeqs)},
		{ruleClient, fmt.Sprintf("clients of InferenceX add %v and %v per prompt token before vLLM 0.16 too, as "+
			"after it; the shorter front end of older releases was fitted to inference-perf", clientFrontend,
			clientPerToken)},
		{"redundant", fmt.Sprintf("where the ranks of a worker do not divide the experts, %d of them are held twice",
			wideRedundant)},
		{"acceptance", fmt.Sprintf("a layer of multi-token prediction has its drafts accepted with probabilities %v "+
			"by place, as published for DeepSeek-V3 and random prompts in a chat template, and %v in forced outputs "+
			"of %d tokens or more, which repeat themselves", acceptance, longAcceptance, longOutput)},
		{"e2e", "where only TTFT and TPOT were published, the measured end-to-end latency is TTFT + TPOT · (output " +
			"tokens - 1), of the means"},
		{"offload", "offloading of KV to host memory is not simulated"},
	}
}

// olderVersion is the assumed version of a run without one.
const olderVersion = "vllm-0.13"

// recipeVersion is the assumed version of a run without one whose launch script sets later defaults.
const recipeVersion = "vllm-0.18"

// versionOfSource is the release behind the unversioned runs of a source.
var versionOfSource = map[string]string{"inference-sim/training": "vllm-0.15"}

var releasePattern = pattern.New(`[0-9]+\.[0-9]+(\.[0-9]+)?`)

// imageRelease is the release in the tag of a container image.
var imageRelease = pattern.New(`(?:^|[-_])(?:v|atom)?([0-9]+\.[0-9]+(?:\.[0-9]+)?)`)

// version is the engine's release as a scenario writes it, and whether a rule gave it.
func (r *Row) version() (name string, ruled bool) {
	if v := releasePattern.Get().FindString(r.EngineVersion); v != "" {
		return r.Engine + "-" + v, false
	}
	if m := imageRelease.Get().FindStringSubmatch(r.Image[strings.LastIndexByte(r.Image, ':')+1:]); m != nil &&
		r.Image != "" {
		return r.Engine + "-" + m[1], false
	}
	if v := releaseOn(dayOf(r)); v != "" && r.Engine == "vllm" {
		return v, true
	}
	if v := versionOfSource[r.Source]; v != "" {
		return v, true
	}
	if gpu, err := catalog.GPU(r.GPU); err == nil && blackwell(&gpu) ||
		strings.Contains(strings.ToLower(r.Model), "gpt-oss") {
		return recipeVersion, true
	}
	return olderVersion, true
}

// asyncMinor is the first minor release of vLLM with asynchronous scheduling by default.
const asyncMinor = 14

// vllmBefore reports whether the engine is a release of vLLM before 0.n.
func (r *Row) vllmBefore(n int) bool {
	v, _ := r.version()
	_, minor, _ := strings.Cut(strings.TrimPrefix(v, "vllm-"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	release, err := strconv.Atoi(minor)
	return r.Engine == "vllm" && err == nil && release < n
}

// earlyAsync reports whether a release of vLLM was asked for asynchronous scheduling before it was the default.
func (r *Row) earlyAsync() bool { return r.AsyncScheduling == "on" && r.vllmBefore(asyncMinor) }

// asyncScheduling is on or off, or empty for the release's default.
func (r *Row) asyncScheduling() string {
	if r.earlyAsync() {
		return "off"
	}
	return r.AsyncScheduling
}

var fusionFlag = pattern.New(`(?:enable_fi_allreduce_fusion|fuse_allreduce_rms)["']?[:=] *(true|false)`)

// fusedExpertsMinor is the first minor release of vLLM that fuses the all-reduces of a mixture of experts.
const fusedExpertsMinor = 16

// fusedAllReduce is on or off by the launch script, or empty for the engine's default.
func (r *Row) fusedAllReduce() string {
	m := fusionFlag.Get().FindStringSubmatch(r.EngineFlags)
	switch {
	case m != nil && m[1] == "true" && r.vllmBefore(fusedExpertsMinor):
		if llm, err := catalog.LLM(r.Model); err == nil && llm.Experts > 0 {
			return "off"
		}
		return "on"
	case m != nil && m[1] == "true", r.Launch.has("enable_flashinfer_allreduce_fusion"):
		return "on"
	case m != nil:
		return "off"
	}
	return ""
}

// releases are the days on which releases of vLLM were published; those before 0.22 are recalled (verify).
var releases = []struct{ day, name string }{
	{"2025-05-28", "vllm-0.9"}, {"2025-07-24", "vllm-0.10"}, {"2025-10-02", "vllm-0.11"}, {"2025-12-03", "vllm-0.12"},
	{"2025-12-18", "vllm-0.13"}, {"2026-01-20", "vllm-0.14"}, {"2026-01-29", "vllm-0.15"}, {"2026-02-25", "vllm-0.16"},
	{"2026-03-07", "vllm-0.17"}, {"2026-03-20", "vllm-0.18"}, {"2026-04-03", "vllm-0.19"}, {"2026-04-23", "vllm-0.20"},
	{"2026-05-15", "vllm-0.21"}, {"2026-05-27", "vllm-0.22"}, {"2026-06-13", "vllm-0.23"}, {"2026-06-30", "vllm-0.24"},
}

// releaseOn is the release that was the latest on a day; empty if the day is not known or before all of them.
func releaseOn(day string) (name string) {
	for _, r := range releases {
		if day >= r.day {
			name = r.name
		}
	}
	return name
}

var dayPattern = pattern.New(`20[0-9]{2}-[0-9]{2}-[0-9]{2}`)

// dayOf returns the day of the run, or of its launch script; empty if unknown.
func dayOf(r *Row) string {
	if r.Date != "" {
		return r.Date
	}
	return dayPattern.Get().FindString(r.FlagsFrom)
}

// capturedByScripts is the largest step in tokens for which launch scripts of gpt-oss capture CUDA graphs.
const capturedByScripts = 2048

// capture is the largest step for which vLLM captures CUDA graphs, and whether a rule says so; 0 is the default.
func (r *Row) capture() (tokens int, ruled bool) {
	n := or(r.Launch.number("max_cudagraph_capture_size", "cuda_graph_sizes"), 0)
	switch {
	case r.Engine != "vllm" || n > 1<<16:
		return 0, false
	case n == 0 && !r.perf() && r.EngineFlags == "" && strings.Contains(strings.ToLower(r.Model), "gpt-oss"):
		return capturedByScripts, true
	}
	return n, false
}

// kvDtype is the format of the KV cache, and whether a rule overrode what the file says.
func (r *Row) kvDtype(gpu *model.GPU) (dtype string, ruled bool) {
	dtype = r.KVDtype
	if dtype == "" {
		dtype = "auto"
	}
	if r.Pools() && r.KVDtype == "" {
		held := r.Engine != "vllm" && (r.Engine == trtllmEngine || blackwell(gpu) || strings.HasPrefix(gpu.Name, "mi"))
		if held {
			return "fp8", true
		}
		return dtype, false
	}
	quantised := r.WeightDtype == "fp8" || r.WeightDtype == "nvfp4"
	if r.Engine != "vllm" || !quantised || !strings.HasPrefix(r.Source, "ai-dynamo/aiconfigurator") {
		return dtype, false
	}
	held := dtype
	switch {
	case blackwell(gpu):
		held = "fp8"
	case gpu.Name == "h100-sxm":
		held = "bf16"
	}
	said := strings.Replace(dtype, "auto", "bf16", 1)
	return held, held != said
}

// gpu is the record of the run's GPU, and whether a rule says which.
func (r *Row) gpu() (g model.GPU, ruled bool, err error) {
	if g, err = catalog.GPU(r.GPU); err == nil && g.Name == "rtx-pro-6000-se" && r.queueClock() {
		g, err = catalog.GPU("rtx-pro-6000-ws")
		return g, true, err
	}
	return g, false, err
}

// blackwell reports whether the GPU computes in 4-bit floats, as NVIDIA's do from that generation on.
func blackwell(gpu *model.GPU) bool {
	return strings.HasPrefix(gpu.Name, "b") || strings.HasPrefix(gpu.Name, "gb") ||
		strings.HasPrefix(gpu.Name, "rtx-pro-6000")
}

// topPModels are the beginnings of the names of models whose generation_config.json has top_p or top_k.
var topPModels = []string{"llama-2", "llama-3", "llama-4", "qwen2.5", "qwen3"}

// sampling is how the engine picked tokens, and whether a rule says so.
func (r *Row) sampling(llm *model.LLM) (how string, ruled bool) {
	begins := func(name string) bool { return strings.HasPrefix(llm.Name, name) }
	switch {
	case r.Sampling != "":
		return r.Sampling, false
	case r.perf() && r.Engine == "vllm" && slices.ContainsFunc(topPModels, begins):
		return "top_p", true
	}
	return "greedy", true
}

// perf reports whether the load came from inference-perf, which asks for random text by its number of tokens.
func (r *Row) perf() bool { return strings.HasPrefix(r.Source, "inference-sim/") }

// replicated reports whether dp is a number of independent replicas, as in runs of open-loop clients.
func (r *Row) replicated() bool {
	return or(r.DP, 1) > 1 && r.DPAttention != "on" && r.perf() && r.LoadMode == "open"
}

// queueClock reports whether latencies count from the engine's queue.
func (r *Row) queueClock() bool { return strings.HasSuffix(r.Source, "/LLMServingSim") }

// Inference-perf's text, tokenised again.
const (
	retokenised       = 1.05
	retokenisedSpread = 0.02
)

// Shared prefixes of inference-perf.
const (
	promptGroups   = 10
	promptsInGroup = 10
)

// Limits of the engines behind inference-perf.
const (
	perfMaxNumSeqs          = 128
	perfMaxNumBatchedTokens = 2048
)
