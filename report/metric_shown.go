package report

import "strings"

// csvPaths are the columns of curve.csv after the first, in order.
func csvPaths() []string {
	paths := []string{
		"requests.offered", "requests.completed", "requests.rejected", "requests.rejected_busy", "requests.timed_out",
		"window_s", "stationary", "window_residences",
		"throughput.offered_requests_per_s", "throughput.requests_per_s", "throughput.output_tokens_per_s",
		"throughput.input_tokens_per_s", "throughput.total_tokens_per_s",
	}
	for _, l := range LatencyMetrics() {
		for _, statistic := range [...]string{"mean", "p50", "p90", "p95", "p99"} {
			paths = append(paths, JoinPath(l.Path(), statistic))
		}
	}
	return append(paths,
		"concurrency.in_system.mean", "concurrency.running.mean", "concurrency.decoding.mean",
		"concurrency.queue_depth.mean",
		"system.busy_fraction", "system.mfu", "system.mbu",
		"system.kv_usage.mean", "system.kv_usage.max", "system.kv_usage.reserved_mean", "system.kv_usage.sd",
		"system.preemptions", "system.prefix_hit_rate", "tokens.recomputed", "system.error_rate",
		"system.gap_fraction", "system.gap_fraction_seed",
		"goodput.attainment", "goodput.requests_per_s", "goodput.output_tokens_per_s",
		"cost.usd_per_million_output_tokens_at_load",
		"requests.cancelled", "requests.attempts", "requests.retries",
		"throughput.successful_output_tokens_per_s", "tokens.wasted",
		"energy.gpu_joules_per_output_token", "energy.gpu_watts.mean")
}

// inClasses reports whether classes.csv has the column of curve.csv for a path.
func inClasses(path string) bool {
	switch path {
	case "requests.offered", "requests.completed", "requests.rejected", "throughput.offered_requests_per_s",
		"throughput.requests_per_s", "throughput.output_tokens_per_s", "throughput.input_tokens_per_s",
		"system.prefix_hit_rate", "goodput.attainment", "goodput.requests_per_s", "goodput.output_tokens_per_s":
		return true
	}
	return strings.HasPrefix(path, "latency_ms.") && !strings.HasPrefix(path, "latency_ms.itl.")
}

// ComparedMetrics returns the metrics that a comparison of runs judges, in the order of its table.
func ComparedMetrics() []*Metric {
	return metricsAt("throughput.requests_per_s", "throughput.output_tokens_per_s",
		"latency_ms.ttft.mean", "latency_ms.ttft.p50", "latency_ms.ttft.p95", "latency_ms.ttft.p99",
		"latency_ms.tpot.mean", "latency_ms.tpot.p50", "latency_ms.tpot.p95", "latency_ms.tpot.p99",
		"latency_ms.itl.p99", "latency_ms.e2e.mean", "latency_ms.e2e.p95", "latency_ms.e2e.p99",
		"goodput.requests_per_s", "system.error_rate", "system.gap_fraction", "system.preemptions", "tokens.recomputed",
		"retry_rate", "fairness", "energy.gpu_joules_per_output_token", "energy.gpu_watts.mean",
		"cost.usd_per_million_output_tokens_at_load")
}

// CurveColumn is a column of the table of a curve.
type CurveColumn struct {
	Path, Title string
	Narrow      string // the title in a table of 80 characters per line
	RateOnly    bool   // only if a rate varies
}

// CurveColumns returns the columns after the first, in order.
func CurveColumns() []CurveColumn {
	return []CurveColumn{
		{"throughput.offered_requests_per_s", "offered", "offered", true},
		{"throughput.requests_per_s", "req/s", "req/s", false},
		{"throughput.output_tokens_per_s", "out tok/s", "tok/s", false},
		{"latency_ms.ttft.p50", "TTFT p50 ms", "TTFTp50", false},
		{"latency_ms.ttft.p99", "p99 ms", "p99", false},
		{"latency_ms.tpot.p50", "TPOT p50 ms", "TPOTp50", false},
		{"latency_ms.tpot.p99", "p99 ms", "p99", false},
		{"system.busy_fraction", "busy", "busy", false},
		{"system.kv_usage.max", "KV max", "KVmax", false},
	}
}

// Tile is a number in the playground with a title and a remark. {PATH UNIT DIGITS} in a text stands for a number of the
// summary; the unit is a format of the page: plain, fraction, ms or usd. A tile is hidden if the number in its text is
// unknown, unless Always is set.
type Tile struct {
	Title  string `json:"title"`
	Text   string `json:"text"`
	Remark string `json:"remark"`
	Always bool   `json:"always"`
}

// Tiles returns the tiles of the playground in order.
func Tiles() []Tile {
	return []Tile{
		{"Output tokens/s", "{throughput.output_tokens_per_s plain 3}", "{throughput.requests_per_s plain 3} " +
			"requests/s",
			true},
		{"Time to first token", "{latency_ms.ttft.p50 ms 2} · {latency_ms.ttft.p95 ms 2}", "median · p95", true},
		{"Time per output token", "{latency_ms.tpot.p50 ms 2} · {latency_ms.tpot.p95 ms 2}", "median · p95", true},
		{"In the batch", "{concurrency.running.mean plain 3}",
			"{concurrency.queue_depth.mean plain 1} waiting, on average", true},
		{"KV cache", "{system.kv_usage.mean fraction}",
			"{system.kv_usage.max fraction} at most, {system.preemptions plain} preempted", false},
		{"Power of a GPU", "{energy.gpu_watts.mean plain 3} W",
			"{energy.gpu_joules_per_output_token plain 3} J per output token", false},
	}
}
