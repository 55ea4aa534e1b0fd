package export

// The names, labels and buckets come from SGLang (python/sglang/srt/metrics/collector.py at commit 00ae9c15 of
// sgl-project/sglang). Its servers have no label engine: each replica is a server, and the label distinguishes them.

var sglangGauges = [allGauges]family{
	runningRequests: {name: "sglang:num_running_reqs", help: "The number of running requests."},
	waitingRequests: {name: "sglang:num_queue_reqs", help: "The number of requests in the waiting queue."},
	kvUsage:         {name: "sglang:token_usage", help: "The token usage."},
	usedTokens:      {name: "sglang:num_used_tokens", help: "The number of used tokens."},
	poolTokens: {name: "sglang:max_total_num_tokens",
		help: "Maximum total number of tokens in the KV cache pool."},
	throughput: {name: "sglang:gen_throughput", help: "The generation throughput (token/s)."},
	hitRate:    {name: "sglang:cache_hit_rate", help: "The prefix cache hit rate."},
}

var sglangCounters = [allCounters]labelled{
	preemptions: {family: family{kind: counter, name: "sglang:num_retracted_requests",
		help: "Total number of retracted requests."}},
	endedPrompts: {family: family{kind: counter, name: "sglang:prompt_tokens",
		help: "Number of prefill tokens processed."}},
	endedGeneration: {family: family{kind: counter, name: "sglang:generation_tokens",
		help: "Number of generation tokens processed."}},
	endedCached: {family: family{kind: counter, name: "sglang:cached_tokens",
		help: "Number of cached prompt tokens."}},
	endedRequests: {family: family{kind: counter, name: "sglang:num_requests",
		help: "Number of requests processed."}},
	abortedRequests: {family: family{kind: counter, name: "sglang:num_aborted_requests",
		help: "Number of requests aborted."}},
}

// sglangHistograms are the histograms of SGLang.
func sglangHistograms() (list [allHistograms]family) {
	request := []float64{0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600,
		1200, 1800, 2400}
	token := []float64{0.002, 0.004, 0.006, 0.008, 0.010, 0.015, 0.020, 0.025, 0.030, 0.035, 0.040, 0.060, 0.080, 0.100,
		0.200, 0.400, 0.600, 0.800, 1, 2, 4, 6, 8}
	queue := []float64{0, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80, 90, 100, 200, 300, 400, 500,
		600, 700, 800, 900, 1000, 1200, 1400, 1600, 1800, 2000, 2500, 3000}
	list[timeToFirstToken] = times("sglang:time_to_first_token_seconds", "Histogram of time to first token in seconds.",
		request[:18], picos)
	list[interTokenLatency] = times("sglang:inter_token_latency_seconds",
		"Histogram of inter-token latency in seconds.", token, femtos)
	list[requestLatency] = times("sglang:e2e_request_latency_seconds",
		"Histogram of End-to-end request latency in seconds", request, picos)
	list[queueTime] = times("sglang:queue_time_seconds", "Histogram of queueing time in seconds.", queue, picos)
	list[retractions] = counts("sglang:num_retractions", "Histogram of retraction counts per request.",
		0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 75, 100)
	return list
}

// recentBatches has the numbers of the latest batches that SGLang's scheduler logs.
type recentBatches struct {
	decodes   int   // batches that only decode, since the throughput was computed
	tokens    int64 // that they and the batches between gave
	since     int64 // the instant in picoseconds
	cached    int64 // prompt tokens that the cache gave the next batch
	rate, hit float64
}

// decodeLogInterval is decode_log_interval: how many batches SGLang's throughput is the mean of.
const decodeLogInterval = 40

// batch notes an iteration that gives tokens and computes some of a prompt up to an instant.
func (r *recentBatches) batch(end int64, output, prompt int64) {
	r.tokens += output
	if prompt > 0 {
		r.hit = float64(r.cached) / float64(r.cached+prompt)
		r.cached = 0
		return
	}
	if r.decodes++; r.decodes >= decodeLogInterval {
		if end > r.since {
			r.rate = float64(r.tokens) / float64(end-r.since) * picos
		}
		r.decodes, r.tokens, r.since = 0, 0, end
	}
}

// idle says that no request runs.
func (r *recentBatches) idle(at int64) { *r = recentBatches{since: at, cached: r.cached, hit: r.hit} }
