package report

import (
	"slices"

	"clifftop/report/stats"
)

// Metrics returns the catalogue: every number of a [Summary] that is measured, and a few that are computed from them.
// To add one, edit three files: the field of its struct in summary.go, an entry here, and the code in report/collect
// that counts it. The entry and the lists of metric_shown.go say where it is shown:
// Line in the text summary and on the page
// of a run, CSV and csvPaths in curve.csv, inClasses in classes.csv, ComparedMetrics in comparisons, CurveColumns in
// the table of a curve, Tiles in the playground. Then run go test ./report -run TestMetricsPage -update, which writes
// docs/metrics.md.
func Metrics() []Metric {
	all := slices.Concat(requestMetrics(), tokenMetrics(), throughputMetrics(), latencyMetrics(), goodputMetrics(),
		concurrencyMetrics(), systemMetrics(), gpuTimeMetrics(), tierMetrics(), replicaMetrics(), energyMetrics(),
		costMetrics(),
		hourMetrics(), computedMetrics())
	for i := range all {
		if all[i].Of == nil {
			all[i].Of = accessor(all[i].Path)
		}
	}
	return all
}

func requestMetrics() []Metric {
	return []Metric{
		{Path: "requests.offered", Title: "requests offered", Unit: "requests", Pool: Sum, CSV: "offered"},
		{Path: "requests.completed", Title: "requests completed", Unit: "requests", Better: Higher, Pool: Sum,
			CSV: "completed", Prometheus: "vllm:request_success_total"},
		{Path: "requests.rejected", Title: "requests rejected", Unit: "requests", Better: Lower, Pool: Sum,
			CSV: "rejected"},
		{Path: "requests.rejected_too_long", Title: "requests rejected as too long", Unit: "requests", Better: Lower,
			Pool: Sum, Line: RequestsLine, Label: "rejected as too long"},
		{Path: "requests.rejected_busy", Title: "requests rejected by a queue limit", Unit: "requests", Better: Lower,
			Pool: Sum,
			CSV:  "rejected_busy", Line: RequestsLine, Label: "rejected as busy"},
		{Path: "requests.timed_out", Title: "requests timed out", Unit: "requests", Better: Lower, Pool: Sum,
			CSV: "timed_out", Line: RequestsLine, Label: "timed out"},
		{Path: "requests.cancelled", Title: "requests cancelled", Unit: "requests", Better: Lower, Pool: Sum,
			CSV: "cancelled", Line: RequestsLine, Label: "cancelled"},
		{Path: "requests.failed", Title: "requests failed", Unit: "requests", Better: Lower, Pool: Sum,
			Line: RequestsLine, Label: "failed"},
		{Path: "requests.in_system_at_end", Title: "requests in the system at the end", Unit: "requests", Pool: Sum,
			Line: RequestsLine, Label: "in the system at the end"},
		{Path: "requests.attempts", Title: "attempts sent", Unit: "attempts", Pool: Sum, CSV: "attempts"},
		{Path: "requests.retries", Title: "retries", Unit: "attempts", Better: Lower, Pool: Sum, CSV: "retries"},
		{Path: "requests.retried_after.ttft_timeout", Title: "retries after a TTFT timeout", Unit: "attempts",
			Better: Lower, Pool: Sum, Line: AttemptsLine, Label: "TTFT timeouts"},
		{Path: "requests.retried_after.timeout", Title: "retries after a timeout", Unit: "attempts", Better: Lower,
			Pool: Sum, Line: AttemptsLine, Label: "timeouts"},
		{Path: "requests.retried_after.busy", Title: "retries after a rejection", Unit: "attempts", Better: Lower,
			Pool: Sum, Line: AttemptsLine, Label: "refusals"},
		{Path: "requests.retried_after.connection", Title: "retries after a lost connection", Unit: "attempts",
			Better: Lower, Pool: Sum, Line: AttemptsLine, Label: "lost connections"},
		{Path: "sessions.begun", Title: "conversations", Unit: "conversations", Pool: Sum},
		{Path: "sessions.turns", Title: "turns of conversations", Unit: "requests", Pool: Sum},
		{Path: "sessions.too_long", Title: "conversations that reached the longest context", Unit: "conversations",
			Pool: Sum},
		{Path: "sessions.truncated", Title: "turns with dropped messages", Unit: "requests", Pool: Sum},
		{Path: "sessions.overlapping_turns", Title: "overlapping turns", Unit: "requests", Pool: Sum},
		{Path: "sessions.given_up", Title: "conversations given up", Unit: "conversations", Pool: Sum},
	}
}

func tokenMetrics() []Metric {
	return []Metric{
		{Path: "tokens.input", Title: "prompt tokens", Unit: "tokens", Pool: Sum,
			Prometheus: "vllm:prompt_tokens_total"},
		{Path: "tokens.cached_input", Title: "prompt tokens found in the prefix cache", Unit: "tokens", Better: Higher,
			Pool: Sum},
		{Path: "tokens.output", Title: "output tokens", Unit: "tokens", Better: Higher, Pool: Sum,
			Prometheus: "vllm:generation_tokens_total"},
		{Path: "tokens.output_successful", Title: "output tokens of completed requests", Unit: "tokens", Better: Higher,
			Pool: Sum},
		{Path: "tokens.output_good", Title: "output tokens of good requests", Unit: "tokens", Better: Higher,
			Pool: Sum},
		{Path: "tokens.recomputed", Title: "recomputed tokens", Unit: "tokens", Better: Lower, Pool: Sum,
			CSV: "recomputed_tokens"},
		{Path: "tokens.wasted", Title: "output tokens of attempts that did not complete", Unit: "tokens", Better: Lower,
			Pool: Sum,
			CSV:  "wasted_output_tokens"},
	}
}

func throughputMetrics() []Metric {
	return []Metric{
		{Path: "throughput.offered_requests_per_s", Title: "requests/s offered", Unit: "requests/s", Pool: PerWindow,
			CSV: "offered_requests_per_s"},
		{Path: "throughput.requests_per_s", Title: "requests/s", Unit: "requests/s", Better: Higher, Pool: PerWindow,
			CSV: "requests_per_s"},
		{Path: "throughput.output_tokens_per_s", Title: "output tokens/s", Unit: "tokens/s", Better: Higher,
			Pool: PerWindow,
			CSV:  "output_tokens_per_s"},
		{Path: "throughput.input_tokens_per_s", Title: "prompt tokens/s", Unit: "tokens/s", Better: Higher,
			Pool: PerWindow,
			CSV:  "input_tokens_per_s"},
		{Path: "throughput.total_tokens_per_s", Title: "tokens/s", Unit: "tokens/s", Better: Higher, Pool: PerWindow,
			CSV: "total_tokens_per_s"},
		{Path: "throughput.successful_output_tokens_per_s", Title: "output tokens/s of completed requests",
			Unit:   "tokens/s",
			Better: Higher, Pool: PerWindow, CSV: "successful_output_tokens_per_s"},
		{Path: "throughput.output_tokens_per_s_per_gpu", Title: "output tokens/s per GPU", Unit: "tokens/s",
			Better: Higher,
			Pool:   PerWindow},
	}
}

// distributionMetrics are the statistics of a distribution. csv is the prefix of its columns; empty for none.
func distributionMetrics(path, title, unit string, better Better, unbounded bool, csv string) []Metric {
	list := []Metric{{Path: path + ".n", Title: title + " samples", Pool: Sum}}
	for _, statistic := range [...]struct {
		name, title string
		pool        Pooling
		samples     int64
		csv         bool
	}{
		{"mean", "mean", Mean, 0, true}, {"sd", "standard deviation", RootMeanSquare, 0, false},
		{"p50", "p50", Mean, 0, true}, {"p90", "p90", Mean, 0, true}, {"p95", "p95", Mean, 0, true},
		{"p99", "p99", Mean, MinSamplesP99, true}, {"p99_9", "p99.9", Mean, MinSamplesP999, false},
		{"max", "maximum", Max, 0, false},
	} {
		m := Metric{
			Path: JoinPath(path, statistic.name), Title: title + " " + statistic.title, Unit: unit, Better: better,
			Pool: statistic.pool, Unbounded: unbounded, MinSamples: statistic.samples,
		}
		if csv != "" && statistic.csv {
			m.CSV = csv + "_" + statistic.name + "_ms"
		}
		if m.Path == "latency_ms.itl.mean" {
			m.Pool = PerGap
		}
		list = append(list, m)
	}
	return list
}

// LatencyMetric is a latency whose statistics are in the catalogue. An SLO can limit them.
type LatencyMetric struct {
	Name         string // in paths and in keys of an SLO
	Title, Label string // in sentences; in tables
	PerToken     bool   // a limit may also be given as a speed in tokens per second
	Prometheus   string // as in [Metric]
	Of           func(*Latency) *Distribution
}

// Path is the path of the distribution.
func (l *LatencyMetric) Path() string { return "latency_ms." + l.Name }

// LatencyMetrics returns the latencies in the order of tables.
func LatencyMetrics() []LatencyMetric {
	return []LatencyMetric{
		{"ttft", "TTFT", "TTFT", false, "vllm:time_to_first_token_seconds",
			func(l *Latency) *Distribution { return &l.TTFT }},
		{"tpot", "TPOT", "TPOT", true, "vllm:request_time_per_output_token_seconds",
			func(l *Latency) *Distribution { return &l.TPOT }},
		{"itl", "ITL", "ITL", true, "vllm:inter_token_latency_seconds",
			func(l *Latency) *Distribution { return &l.ITL }},
		{"e2e", "E2E", "E2E", false, "vllm:e2e_request_latency_seconds",
			func(l *Latency) *Distribution { return &l.E2E }},
		{"queue", "queue time", "queue", false, "vllm:request_queue_time_seconds",
			func(l *Latency) *Distribution { return &l.Queue }},
	}
}

// latencyMetric returns the latency of a name; ok is false if there is none.
func latencyMetric(name string) (m LatencyMetric, ok bool) {
	for _, l := range LatencyMetrics() {
		if l.Name == name {
			return l, true
		}
	}
	return LatencyMetric{}, false
}

func latencyMetrics() []Metric {
	var list []Metric
	for _, l := range LatencyMetrics() {
		statistics := distributionMetrics(l.Path(), l.Title, "ms", Lower, true, l.Name)
		statistics[0].Prometheus = l.Prometheus + "_count"
		statistics[1].Prometheus = l.Prometheus + "_sum / " + l.Prometheus + "_count"
		list = append(list, statistics...)
	}
	list = append(list, Metric{Path: "latency_ms.with_failures.failures", Title: "failures counted as infinitely slow",
		Unit:   "requests",
		Better: Lower, Pool: Sum})
	return slices.Concat(list,
		distributionMetrics("latency_ms.with_failures.ttft", "TTFT with failures", "ms", Lower, true, ""),
		distributionMetrics("latency_ms.with_failures.e2e", "E2E with failures", "ms", Lower, true, ""),
		distributionMetrics("stream_tps", "streaming speed", "tokens/s", Higher, false, ""),
		distributionMetrics("e2e_tps_user", "speed for the user", "tokens/s", Higher, true, ""),
		distributionMetrics("e2e_tps_inflight", "speed in the engine", "tokens/s", Higher, false, ""),
		distributionMetrics("pace_surplus", "streaming speed over reading speed", "", Higher, false, ""))
}

func goodputMetrics() []Metric {
	list := []Metric{
		{Path: "goodput.attainment", Title: "SLO attainment", Better: Higher, Pool: ShareOfRequests, CSV: "attainment"},
		{Path: "goodput.requests_per_s", Title: "good requests/s", Unit: "requests/s", Better: Higher, Pool: PerWindow,
			CSV: "goodput_requests_per_s"},
		{Path: "goodput.output_tokens_per_s", Title: "good output tokens/s", Unit: "tokens/s", Better: Higher,
			Pool: PerWindow,
			CSV:  "goodput_output_tokens_per_s"},
		{Path: "goodput.gated_output_tokens_per_s", Title: "output tokens/s if the SLO is met", Unit: "tokens/s",
			Better: Higher,
			Pool:   Recomputed},
		{Path: "goodput.work_fraction", Title: "fraction of computed tokens for good requests", Better: Higher,
			Pool: PerComputedToken},
		{Path: "goodput.gpu_busy_fraction", Title: "fraction of GPU busy time for good requests", Better: Higher,
			Pool: Mean},
		{Path: "goodput.gpu_wall_fraction", Title: "fraction of GPU time for good requests", Better: Higher,
			Pool: Mean},
		{Path: "goodput.product_output_tokens_per_s", Title: "attainment times output tokens/s", Unit: "tokens/s",
			Better: Higher,
			Pool:   PerWindow},
		{Path: "goodput.any_bad_of_10_requests", Title: "probability of a bad request among 10", Better: Lower,
			Pool: Mean},
	}
	for i := range list {
		list[i].Unbounded = true
	}
	return list
}

func concurrencyMetrics() []Metric {
	var list []Metric
	for _, l := range [...]struct{ name, title string }{
		{"in_system", "requests in the system"}, {"running", "running requests"}, {"decoding", "decoding requests"},
		{"queue_depth", "queued requests"},
	} {
		path := "concurrency." + l.name
		list = append(list,
			Metric{Path: path + ".mean", Title: l.title + ", mean", Unit: "requests", Pool: PerWindow,
				CSV: l.name + "_mean"},
			Metric{Path: path + ".p95", Title: l.title + ", p95 of time", Unit: "requests", Pool: Mean},
			Metric{Path: path + ".p99", Title: l.title + ", p99 of time", Unit: "requests", Pool: Mean},
			Metric{Path: path + ".max", Title: l.title + ", maximum", Unit: "requests", Pool: Max})
	}
	for i := range list {
		list[i].Unbounded = true
	}
	return list
}

func systemMetrics() []Metric {
	return []Metric{
		{Path: "system.iterations", Title: "iterations", Unit: "iterations", Pool: Sum},
		{Path: "system.busy_fraction", Title: "fraction of time with a batch running", Pool: PerWindow,
			CSV: "busy_fraction", Line: GPULine, Label: "busy"},
		{Path: "system.mfu", Title: "MFU", Better: Higher, Pool: PerWindow, CSV: "mfu", Line: GPULine, Label: "MFU"},
		{Path: "system.mbu", Title: "MBU", Better: Higher, Pool: PerWindow, CSV: "mbu", Line: GPULine, Label: "MBU"},
		{Path: "system.kv_usage.mean", Title: "KV cache usage, mean", Pool: PerWindow, CSV: "kv_usage_mean",
			Prometheus: "vllm:kv_cache_usage_perc"},
		{Path: "system.kv_usage.max", Title: "KV cache usage, maximum", Pool: Max, CSV: "kv_usage_max"},
		{Path: "system.kv_usage.sd", Title: "KV cache usage, standard deviation", Pool: RootMeanSquare,
			CSV: "kv_usage_sd"},
		{Path: "system.kv_usage.reserved_mean", Title: "KV blocks reserved and empty, mean", Better: Lower,
			Pool: PerWindow,
			CSV:  "kv_reserved_mean"},
		{Path: "system.kv_blocks", Title: "KV blocks", Unit: "blocks", Pool: First},
		{Path: "system.preemptions", Title: "preemptions", Unit: "preemptions", Better: Lower, Pool: Sum,
			CSV: "preemptions", Prometheus: "vllm:num_preemptions_total"},
		{Path: "system.prefix_hit_rate", Title: "prefix cache hit rate", Better: Higher, Pool: PerPromptToken,
			CSV: "prefix_hit_rate", Line: CacheLine, Label: "prefix hits"},
		{Path: "system.error_rate", Title: "error rate", Better: Lower, Pool: ShareOfRequests, CSV: "error_rate"},
		{Path: "system.gap_fraction", Title: "gap fraction", Better: Lower, Pool: PerWindow, CSV: "gap_fraction"},
		{Path: "system.gap_fraction_seed", Title: "gap fraction with free seats", Better: Lower, Pool: PerWindow,
			CSV: "gap_fraction_seed"},
		{Path: "system.gap_by_cause.kv", Title: "waiting for KV blocks", Better: Lower, Pool: PerWindow,
			Line: WaitingLine, Label: "KV"},
		{Path: "system.gap_by_cause.token_budget", Title: "waiting for the token budget", Better: Lower,
			Pool: PerWindow, Line: WaitingLine, Label: "token budget"},
		{Path: "system.gap_by_cause.seats", Title: "waiting for seats", Better: Lower, Pool: PerWindow,
			Line: WaitingLine, Label: "seats"},
		{Path: "system.gap_by_cause.policy", Title: "waiting for the policy", Better: Lower, Pool: PerWindow,
			Line: WaitingLine, Label: "policy"},
		{Path: "system.gap_by_cause.idle", Title: "waiting while nothing runs", Better: Lower, Pool: PerWindow,
			Line: WaitingLine, Label: "idle"},
		{Path: "system.gap_by_cause.boundary", Title: "waiting for the end of an iteration", Better: Lower,
			Pool: PerWindow, Line: WaitingLine, Label: "iteration boundary"},
		{Path: "system.speculative.drafted", Title: "draft tokens", Unit: "tokens", Pool: Sum,
			Prometheus: "vllm:spec_decode_num_draft_tokens_total"},
		{Path: "system.speculative.accepted", Title: "accepted draft tokens", Unit: "tokens", Better: Higher,
			Pool: Sum, Prometheus: "vllm:spec_decode_num_accepted_tokens_total"},
		{Path: "system.speculative.acceptance_rate", Title: "draft acceptance rate", Better: Higher, Pool: Mean},
		{Path: "system.speculative.tokens_per_step", Title: "tokens per decoding step", Unit: "tokens", Better: Higher,
			Pool: Mean},
		{Path: "system.pipeline_stages.*.busy_fraction", Title: "busy fraction of a pipeline stage", Pool: PerWindow},
	}
}

func gpuTimeMetrics() []Metric {
	var list []Metric
	for _, part := range [...]struct {
		name, title, label string
		better             Better
	}{
		{"useful", "useful", "useful", Higher},
		{"recompute", "recomputed after a preemption", "recompute", Lower},
		{"cache_miss", "recomputed after a prefix cache eviction", "cache misses", Lower},
		{"cancelled", "attempts that did not complete", "cancelled", Lower},
		{"rejected_drafts", "rejected drafts", "rejected drafts", Lower},
		{"padding", "padding", "padding", Lower},
		{"swap", "KV copies to and from the host", "swap", Lower},
		{"host", "waiting for the host", "waiting for the host", Lower},
		{"pipeline_bubble", "pipeline bubbles", "pipeline bubbles", Lower},
		{"idle", "idle", "idle", Lower},
		{"idle_by_cause.no_requests", "idle, no requests", "", Neither},
		{"idle_by_cause.elsewhere", "idle, requests at other replicas", "", Lower},
		{"idle_by_cause.front_end", "idle, requests in the network or front end", "", Lower},
		{"idle_by_cause.starting", "idle, replica starting", "", Lower},
		{"idle_by_cause.down", "idle, replica down", "", Lower},
	} {
		m := Metric{Path: "system.gpu_seconds." + part.name, Title: "GPU time: " + part.title, Unit: "GPU s",
			Better: part.better, Pool: Sum, Label: part.label}
		if m.Label != "" {
			m.Line = GPUTimeLine
		}
		list = append(list, m)
	}
	return list
}

func tierMetrics() []Metric {
	return []Metric{
		{Path: "system.offload.loaded_input", Title: "prompt tokens loaded from tiers", Unit: "tokens", Better: Higher,
			Pool: Sum},
		{Path: "system.offload.hit_rate", Title: "fraction of prompt tokens loaded from tiers", Better: Higher,
			Pool: PerWindow},
		{Path: "system.offload.load_ms", Title: "wait for KV from tiers, mean", Unit: "ms", Better: Lower,
			Pool: PerWindow},
		{Path: "system.offload.tiers.*.stored_blocks", Title: "KV blocks stored in the tier", Unit: "blocks",
			Pool: Sum},
		{Path: "system.offload.tiers.*.stored_bytes", Title: "bytes stored in the tier", Unit: "bytes", Pool: Sum},
		{Path: "system.offload.tiers.*.loaded_blocks", Title: "KV blocks loaded from the tier", Unit: "blocks",
			Pool: Sum},
		{Path: "system.offload.tiers.*.loaded_bytes", Title: "bytes loaded from the tier", Unit: "bytes", Pool: Sum},
		{Path: "system.offload.tiers.*.link_busy_fraction", Title: "fraction of time in which the tier's link is busy",
			Pool: PerWindow},
	}
}

func replicaMetrics() []Metric {
	list := []Metric{
		{Path: "system.replicas.mean", Title: "replicas paid for, mean", Unit: "replicas", Pool: PerWindow},
		{Path: "system.replicas.max", Title: "replicas paid for, maximum", Unit: "replicas", Pool: Max},
		{Path: "system.replicas.ready", Title: "replicas ready, mean", Unit: "replicas", Pool: PerWindow},
		{Path: "system.replicas.starting", Title: "replicas starting, mean", Unit: "replicas", Pool: PerWindow},
		{Path: "system.replicas.draining", Title: "replicas draining, mean", Unit: "replicas", Pool: PerWindow},
		{Path: "system.replicas.down", Title: "replicas down, mean", Unit: "replicas", Pool: PerWindow},
		{Path: "system.replicas.gpu_hours", Title: "GPU hours paid for", Unit: "GPU h", Better: Lower, Pool: Sum},
		{Path: "system.replicas.idle_gpu_hours", Title: "idle GPU hours", Unit: "GPU h", Better: Lower, Pool: Sum},
		{Path: "system.replicas.requests_per_gpu_hour", Title: "requests per GPU hour", Unit: "requests/GPU h",
			Better: Higher, Pool: PerGPUHour},
		{Path: "system.replicas.output_tokens_per_gpu_hour", Title: "output tokens per GPU hour", Unit: "tokens/GPU h",
			Better: Higher, Pool: PerGPUHour},
		{Path: "system.replicas.held", Title: "requests held at the router, mean", Unit: "requests", Better: Lower,
			Pool: PerWindow},
		{Path: "imbalance.busy_max_over_mean", Title: "busiest replica over the mean", Better: Lower, Pool: Mean},
		{Path: "imbalance.requests_max_over_mean", Title: "replica with most requests over the mean", Better: Lower,
			Pool: Mean},
		{Path: "replicas.*.index", Title: "number of the replica", Pool: First},
		{Path: "replicas.*.gpus", Title: "GPUs of the replica", Unit: "GPUs", Pool: First},
		{Path: "replicas.*.requests.sent", Title: "attempts sent to the replica", Unit: "attempts", Pool: Sum},
		{Path: "replicas.*.requests.handed_on", Title: "requests handed to a decode replica", Unit: "requests",
			Pool: Sum},
		{Path: "stages.*.start_s", Title: "start of the traffic phase", Unit: "s", Pool: Mean},
		{Path: "stages.*.end_s", Title: "end of the traffic phase", Unit: "s", Pool: Mean},
	}
	return list
}

func energyMetrics() []Metric {
	return []Metric{
		{Path: "energy.gpu_joules", Title: "energy of the GPUs", Unit: "J", Better: Lower, Pool: Sum},
		{Path: "energy.gpu_joules_per_request", Title: "J per request", Unit: "J", Better: Lower, Pool: Mean},
		{Path: "energy.gpu_joules_per_output_token", Title: "J per output token", Unit: "J", Better: Lower,
			Pool: Mean, CSV: "joules_per_output_token"},
		{Path: "energy.gpu_joules_per_token", Title: "J per token", Unit: "J", Better: Lower, Pool: Mean},
		{Path: "energy.gpu_watts.mean", Title: "W per GPU", Unit: "W", Better: Lower, Pool: PerWindow,
			CSV: "gpu_watts"},
		{Path: "energy.gpu_watts.max", Title: "W per GPU, maximum of an iteration", Unit: "W", Better: Lower,
			Pool: Max},
		{Path: "energy.system_watts.mean", Title: "W of all servers", Unit: "W", Better: Lower,
			Pool: PerWindow},
		{Path: "energy.system_watts.max", Title: "W of all servers, maximum", Unit: "W", Better: Lower, Pool: Max},
		{Path: "energy.co2e_g_per_million_output_tokens", Title: "grams of CO2e per million tokens", Unit: "g",
			Better: Lower, Pool: Mean},
		{Path: "energy.usd_per_million_output_tokens", Title: "$ of electricity per million tokens", Unit: "$",
			Better: Lower, Pool: Mean},
	}
}

func costMetrics() []Metric {
	return []Metric{
		{Path: "cost.usd_per_hour", Title: "$ per hour", Unit: "$/h", Better: Lower, Pool: Recomputed},
		{Path: "cost.usd_per_million_output_tokens_at_load", Title: "$ per million tokens", Unit: "$", Better: Lower,
			Pool: Recomputed,
			CSV:  "usd_per_million_output_tokens"},
		{Path: "cost.usd_per_million_output_tokens_good", Title: "$ per million good tokens", Unit: "$", Better: Lower,
			Pool: Recomputed},
		{Path: "cost.usd_per_million_output_tokens_at_capacity", Title: "$ per million tokens at capacity", Unit: "$",
			Better: Lower,
			Pool:   Recomputed},
		{Path: "window.start_s", Title: "start of the measurement window", Unit: "s", Pool: Recomputed},
		{Path: "window.end_s", Title: "end of the measurement window", Unit: "s", Pool: Recomputed},
		{Path: "window.warmup_s", Title: "warm-up", Unit: "s", Pool: Recomputed},
		{Path: "window.growth_requests_per_s", Title: "growth of the queue under overload", Unit: "requests/s",
			Better: Lower, Pool: Recomputed},
		{Path: "window.backlog.requests_per_s", Title: "completed requests while some wait, under overload",
			Unit: "requests/s", Better: Higher, Pool: Recomputed},
		{Path: "window.needs_s", Title: "time that a window needs to show a steady state", Unit: "s", Pool: Recomputed},
		{Path: "traffic.dispersion_60s", Title: "index of dispersion of arrivals over 60 s", Pool: Recomputed},
		{Path: "traffic.dispersion_asymptotic", Title: "index of dispersion of arrivals in the long run",
			Pool: Recomputed},
		{Path: "traffic.minute_rate.p05", Title: "rate of a minute, p05", Unit: "requests/s", Pool: Recomputed},
		{Path: "traffic.minute_rate.p50", Title: "rate of a minute, p50", Unit: "requests/s", Pool: Recomputed},
		{Path: "traffic.minute_rate.p95", Title: "rate of a minute, p95", Unit: "requests/s", Pool: Recomputed},
		{Path: "slo_hours.met", Title: "hours or minutes of the run that meet the SLO", Better: Higher,
			Pool: Recomputed},
		{Path: "slo_hours.of", Title: "hours or minutes of the run that were judged", Pool: Recomputed},
		{Path: "slo_hours.share_low", Title: "lower bound of the share of hours that meet the SLO", Better: Higher,
			Pool: Recomputed},
		{Path: "slo_hours.horizon_s", Title: "length of an hour or minute that was judged", Unit: "s",
			Pool: Recomputed},
		{Path: "saturation.low_requests_per_s", Title: "rate below which a backlog is worked off", Unit: "requests/s",
			Better: Higher, Pool: Recomputed},
		{Path: "saturation.high_requests_per_s", Title: "rate with which an empty system keeps up", Unit: "requests/s",
			Better: Higher, Pool: Recomputed},
	}
}

// computedMetrics are not fields of a summary.
func computedMetrics() []Metric {
	return []Metric{
		{Path: "window_s", Title: "length of the window", Unit: "s", Pool: Recomputed, CSV: "window_s",
			Of: func(s *Summary) *float64 { return stats.Finite(s.Window.EndS - s.Window.StartS) }},
		{Path: "stationary", Title: "1 if the system is in a steady state, 0 if not", Pool: Recomputed,
			CSV: "stationary",
			Of:  func(s *Summary) *float64 { return oneOrZero(s.Window.Stationary) }},
		{Path: "window_residences", Title: "length of the window over the mean time of a request in the engine",
			Pool: Recomputed,
			CSV:  "window_residences", Of: func(s *Summary) *float64 { return stats.Finite(s.Residences()) }},
		{Path: "retry_rate", Title: "retries per request", Better: Lower, Pool: Recomputed, Of: (*Summary).RetryRate},
		{Path: "fairness", Title: "fairness (Jain)", Better: Higher, Pool: Recomputed, Of: (*Summary).Fairness},
	}
}
