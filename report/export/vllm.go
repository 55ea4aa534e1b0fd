package export

import (
	"clifftop/sim/clock"
)

// The names, labels and buckets come from vLLM 0.11 to 0.13 (vllm/v1/metrics/loggers.py, and its design document
// docs/design/metrics.md). vLLM 0.11 renamed time_per_output_token_seconds to inter_token_latency_seconds, and hides
// the older name from 0.12 on. Exports have both, so that dashboards for either work.

// kind is the type of a metric.
type kind int

const (
	gauge kind = iota
	counter
	histogram
)

func (k kind) String() string { return [...]string{"gauge", "counter", "histogram"}[k] }

// family is a metric of vLLM. Counters have their names without _total, as in its source.
type family struct {
	kind kind
	name string
	help string
	// of histograms: the upper bounds of the buckets, in units; the field unit says how many of them are 1
	bounds []int64
	unit   float64
}

// The gauges, counters and histograms, in the order of the families.
const (
	runningRequests = iota
	waitingRequests
	kvUsage
	gauges     // of exports; the rest are for SGLang's servers
	usedTokens = iota - 1
	poolTokens
	throughput
	hitRate
	allGauges
)

const (
	prefixQueries = iota
	prefixHits
	preemptions
	promptTokens
	generationTokens
	successStop
	successLength
	successAbort
	successError
	draftsMade
	draftTokens
	draftsAccepted
	counters     // of exports; the rest are for SGLang's servers, at the ends of requests
	endedPrompts = iota - 1
	endedGeneration
	endedCached
	endedRequests
	abortedRequests
	allCounters
)

const (
	timeToFirstToken = iota
	interTokenLatency
	timePerOutputToken
	requestTimePerOutputToken
	requestLatency
	queueTime
	inferenceTime
	prefillTime
	decodeTime
	requestPromptTokens
	requestGenerationTokens
	histograms      // of exports; the rest are for servers
	iterationTokens = iota - 1
	prefillComputed
	mostTokens
	paramsN
	paramsMaxTokens
	retractions
	allHistograms
)

var gaugeFamilies = [gauges]family{
	runningRequests: {name: "vllm:num_requests_running", help: "Number of requests in model execution batches."},
	waitingRequests: {name: "vllm:num_requests_waiting", help: "Number of requests waiting to be processed."},
	kvUsage:         {name: "vllm:kv_cache_usage_perc", help: "KV-cache usage. 1 means 100 percent usage."},
}

// labelled is a counter. Those of a name differ in the label finished_reason.
type labelled struct {
	family
	reason string
}

var counterFamilies = [counters]labelled{
	prefixQueries: {family: family{kind: counter, name: "vllm:prefix_cache_queries",
		help: "Prefix cache queries, in terms of number of queried tokens."}},
	prefixHits: {family: family{kind: counter, name: "vllm:prefix_cache_hits",
		help: "Prefix cache hits, in terms of number of cached tokens."}},
	preemptions: {family: family{kind: counter, name: "vllm:num_preemptions",
		help: "Cumulative number of preemption from the engine."}},
	promptTokens: {family: family{kind: counter, name: "vllm:prompt_tokens",
		help: "Number of prefill tokens processed."}},
	generationTokens: {family: family{kind: counter, name: "vllm:generation_tokens",
		help: "Number of generation tokens processed."}},
	successStop:   {family: success, reason: "stop"},
	successLength: {family: success, reason: "length"},
	successAbort:  {family: success, reason: "abort"},
	successError:  {family: success, reason: "error"},
	draftsMade: {family: family{kind: counter, name: "vllm:spec_decode_num_drafts",
		help: "Number of spec decoding drafts."}},
	draftTokens: {family: family{kind: counter, name: "vllm:spec_decode_num_draft_tokens",
		help: "Number of draft tokens."}},
	draftsAccepted: {family: family{kind: counter, name: "vllm:spec_decode_num_accepted_tokens",
		help: "Number of accepted tokens."}},
}

var success = family{kind: counter, name: "vllm:request_success", help: "Count of successfully processed requests."}

// histogramFamilies are the histograms, for a model with a context of so many tokens.
func histogramFamilies(maxModelLen int) [allHistograms]family {
	first := []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
		160, 640, 2560}
	token := []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	request := []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	lengths := func(name, help string) family { return counts(name, help, oneTwoFive(int64(maxModelLen))...) }
	return [allHistograms]family{
		timeToFirstToken: times("vllm:time_to_first_token_seconds",
			"Histogram of time to first token in seconds.", first, picos),
		interTokenLatency: times("vllm:inter_token_latency_seconds",
			"Histogram of inter-token latency in seconds.", token, femtos),
		timePerOutputToken: times("vllm:time_per_output_token_seconds",
			"Histogram of time per output token in seconds.", token, femtos),
		requestTimePerOutputToken: times("vllm:request_time_per_output_token_seconds",
			"Histogram of time_per_output_token_seconds per request.", token, picos),
		requestLatency: times("vllm:e2e_request_latency_seconds",
			"Histogram of e2e request latency in seconds.", request, picos),
		queueTime: times("vllm:request_queue_time_seconds",
			"Histogram of time spent in WAITING phase for request.", request, picos),
		inferenceTime: times("vllm:request_inference_time_seconds",
			"Histogram of time spent in RUNNING phase for request.", request, picos),
		prefillTime: times("vllm:request_prefill_time_seconds",
			"Histogram of time spent in PREFILL phase for request.", request, picos),
		decodeTime: times("vllm:request_decode_time_seconds",
			"Histogram of time spent in DECODE phase for request.", request, picos),
		requestPromptTokens:     lengths("vllm:request_prompt_tokens", "Number of prefill tokens processed."),
		requestGenerationTokens: lengths("vllm:request_generation_tokens", "Number of generation tokens processed."),
		iterationTokens: counts("vllm:iteration_tokens_total", "Histogram of number of tokens per engine_step.",
			1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
		prefillComputed: lengths("vllm:request_prefill_kv_computed_tokens",
			"Histogram of new KV tokens computed during prefill (excluding cached tokens)."),
		mostTokens: lengths("vllm:request_max_num_generation_tokens",
			"Histogram of maximum number of requested generation tokens."),
		paramsN: counts("vllm:request_params_n", "Histogram of the n request parameter.", 1, 2, 5, 10, 20),
		paramsMaxTokens: lengths("vllm:request_params_max_tokens",
			"Histogram of the max_tokens request parameter."),
	}
}

// times is a histogram of times with bounds in seconds.
func times(name, help string, bounds []float64, unit float64) family {
	f := family{histogram, name, help, nil, unit}
	for _, b := range bounds {
		f.bounds = append(f.bounds, int64(clock.FromSeconds(b))*int64(unit/picos))
	}
	return f
}

// counts is a histogram of whole numbers.
func counts(name, help string, bounds ...int64) family {
	return family{histogram, name, help, bounds, 1}
}

// Units to a second.
const (
	picos  = 1e12
	femtos = 1e15
)

// oneTwoFive are 1, 2, 5, 10 … up to most.
func oneTwoFive(most int64) []int64 {
	var bounds []int64
	for ten := int64(1); ; ten *= 10 {
		for _, m := range [...]int64{1, 2, 5} {
			if m*ten > most {
				return bounds
			}
			bounds = append(bounds, m*ten)
		}
	}
}
