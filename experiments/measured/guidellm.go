package measured

import (
	"strings"
	"time"
)

// guideLLMFormat is the report of GuideLLM. Latencies of requests are in seconds, the others in milliseconds.
// inter_token_latency_ms is (last-first)/(n-1) of a request, which is TPOT; time_per_output_token_ms includes the first
// token from 0.4 on, so it is left out.
// Sources: vllm-project/guidellm src/guidellm/benchmark/schemas/report.py, schemas/generative/metrics.py,
// src/guidellm/schemas/request_stats.py.
func guideLLMFormat() format {
	return format{
		Format: Format{Name: "guidellm", Layout: "JSON report of guidellm benchmark run, releases 0.1 to 0.7 " +
			"(benchmarks.json)",
			Requests: true, Source: "https://github.com/vllm-project/guidellm"},
		is: func(f *file) bool {
			l := f.root().items("benchmarks")
			return len(l) > 0 && (strings.HasPrefix(l[0].text("type_"), "generative") ||
				l[0].has("metrics", "requests") || f.root().get("metadata").has("guidellm_version"))
		},
		read: func(f *file, r *Result) {
			root := f.root()
			for _, b := range root.items("benchmarks") {
				r.Runs = append(r.Runs, b.guideLLM(r, root))
			}
		},
	}
}

func (o object) guideLLM(r *Result, root object) Run {
	run := Run{}
	for _, place := range []object{o.get("config", "backend"), root.get("args", "backend_kwargs"), root.get("args"),
		root.get("config", "spec", "backend"), o.get("worker"), o.get("config")} {
		if run.Model == "" {
			run.Model = place.text("model", "backend_model")
		}
	}
	strategy := o.get("config", "strategy")
	if strategy.m == nil {
		strategy = o.get("args", "strategy")
	}
	run.Load = strategy.guideLLMLoad()
	if run.Load == (Load{}) {
		run.Load = root.get("args").guideLLMLoad()
	}
	times := o.get("scheduler_metrics")
	if start, end := times.value("measure_start_time"), times.value("measure_end_time"); end > start && start > 0 {
		run.Duration = seconds64(end - start)
	} else {
		run.Duration = seconds64(o.value("duration"))
	}
	o.guideLLMMetrics(r, &run)
	requests := o.get("requests")
	for _, q := range requests.items("successful") {
		run.addGuideLLM(q, false)
	}
	for _, q := range append(requests.items("errored"), requests.items("incomplete")...) {
		run.addGuideLLM(q, true)
	}
	return run
}

// guideLLMMetrics reads the distributions of a benchmark.
func (o object) guideLLMMetrics(r *Result, run *Run) {
	metrics := o.get("metrics")
	totals := metrics.get("request_totals")
	run.Completed, run.Sent = totals.count("successful"), totals.count("total")
	if n := run.Completed; n != nil && run.Sent != nil {
		failed := *run.Sent - *n
		run.Failed = &failed
	}
	at := func(name string, by float64) Statistics {
		return metrics.get(name, "successful").guideLLMStatistics(by)
	}
	run.Input, run.Output = metrics.get("prompt_token_count", "successful").guideLLMLengths(),
		metrics.get("output_token_count", "successful").guideLLMLengths()
	run.TTFT, run.E2E = at("time_to_first_token_ms", 1), at("request_latency", 1e3)
	gaps := at("inter_token_latency_ms", 1)
	run.ITL.Mean = gaps.Mean
	if len(o.get("requests").items("successful")) == 0 && gaps.Mean != nil {
		run.TPOT = gaps
		r.note("TPOT is GuideLLM's inter_token_latency_ms, which weights requests by their tokens")
	}
	rate := func(name string) *float64 { return metrics.get(name, "successful").number("mean") }
	run.RequestsPerS, run.InputTokensPerS, run.OutputTokensPerS = rate("requests_per_second"),
		rate("prompt_tokens_per_second"),
		rate("output_tokens_per_second")
}

func (o object) guideLLMStatistics(by float64) Statistics {
	p := o.get("percentiles")
	return Statistics{Mean: o.scaled(by, "mean"), Std: o.scaled(by, "std_dev"), Min: o.scaled(by, "min"),
		Max: o.scaled(by, "max"), P50: o.scaled(by, "median"), P90: p.scaled(by, "p90"), P95: p.scaled(by, "p95"),
		P99: p.scaled(by, "p99")}
}

func (o object) guideLLMLengths() Lengths {
	l := Lengths{Statistics: o.guideLLMStatistics(1), Total: o.number("total_sum")}
	if l.Mean == nil {
		l.Mean = quotient(l.Total, o.number("count"))
	}
	return l
}

// guideLLMLoad reads a strategy, or the arguments of the command.
func (o object) guideLLMLoad() Load {
	kind := o.text("type_", "kind", "profile")
	first := func(names ...string) *float64 {
		if l := o.numbers(names[0]); len(l) > 0 {
			return &l[0]
		}
		return o.number(names...)
	}
	var l Load
	switch kind {
	case "constant", "poisson", "async":
		l.Rate, l.Constant = first("rate"), kind == "constant"
		l.Concurrency = o.count("max_concurrency")
		if kind == "poisson" {
			one := 1.0
			l.Burstiness = &one
		}
	case "concurrent":
		l.Concurrency = whole(first("streams", "max_concurrency", "rate"))
	case "synchronous":
		one := 1
		l.Concurrency = &one
	case "throughput":
		l.AtOnce, l.Concurrency = true, o.count("max_concurrency")
		if l.Concurrency != nil {
			l.AtOnce = false
		}
	}
	return l
}

func (run *Run) addGuideLLM(o object, failed bool) {
	timings := o.get("info", "timings")
	start := o.number("request_start_time", "start_time")
	if start == nil {
		start = timings.number("request_start")
	}
	q := Request{Input: o.tokens("prompt_tokens"), Output: o.tokens("output_tokens"), Failed: failed}
	if q.Input == 0 && q.Output == 0 {
		q.Input, q.Output = o.get("input_metrics").tokens("total_tokens", "text_tokens"),
			o.get("output_metrics").tokens("total_tokens", "text_tokens")
	}
	if start != nil {
		q.Arrival, q.Timed = seconds64(*start), true
	}
	q.TTFT = time.Duration(o.value("time_to_first_token_ms") * 1e6)
	q.E2E = seconds64(o.value("request_latency"))
	if end := o.number("request_end_time", "end_time"); q.E2E == 0 && start != nil && end != nil {
		q.E2E = seconds64(*end - *start)
	}
	if info := o.get("info"); info.value("turn_index") > 0 || info.text("conversation_id") != "" {
		q.Session = info.text("conversation_id")
	}
	run.Requests = append(run.Requests, q)
}
