package measured

// inferencePerfFormat is summary_lifecycle_metrics.json or stage_N_lifecycle_metrics.json, and the same of Prometheus'
// metrics. All times are seconds. time_per_output_token is (last-first)/(n-1), and inter_token_latency are gaps between
// chunks.
// Source: kubernetes-sigs/inference-perf docs/reports.md.
func inferencePerfFormat() format {
	return format{
		Format: Format{Name: "inference-perf", Layout: "JSON of inference-perf (summary_, " +
			"stage_N_lifecycle_metrics.json, *_prometheus_metrics.json)",
			Source: "https://github.com/kubernetes-sigs/inference-perf"},
		is: func(f *file) bool { return f.root().has("load_summary", "successes", "failures") },
		read: func(f *file, r *Result) {
			r.Runs = []Run{f.root().inferencePerf(r)}
		},
	}
}

func (o object) inferencePerf(r *Result) Run {
	done, load := o.get("successes"), o.get("load_summary")
	latency := done.get("latency")
	if latency.m == nil { // of Prometheus
		latency = done
		r.note("latencies are what Prometheus measured at the engine; time in the network is not in them")
	}
	throughput := done.get("throughput")
	run := Run{Completed: done.count("count"), Failed: o.get("failures").count("count"),
		TTFT:             latency.inferencePerfStatistics("time_to_first_token", 1e3),
		TPOT:             latency.inferencePerfStatistics("time_per_output_token", 1e3),
		ITL:              latency.inferencePerfStatistics("inter_token_latency", 1e3),
		E2E:              latency.inferencePerfStatistics("request_latency", 1e3),
		RequestsPerS:     throughput.number("requests_per_sec"),
		InputTokensPerS:  throughput.number("input_tokens_per_sec"),
		OutputTokensPerS: throughput.number("output_tokens_per_sec"),
		Load: Load{Rate: load.number("requested_rate", "achieved_rate"),
			Concurrency: load.count("concurrency")}}
	if run.RequestsPerS == nil {
		run.RequestsPerS = done.number("rate")
	}
	if run.ITL.Mean != nil {
		r.note("ITL are the gaps between chunks of a stream; a chunk may hold several tokens or none")
	}
	for _, name := range []string{"prompt_len", "prompt_tokens"} {
		if s := done.inferencePerfStatistics(name, 1); s.Mean != nil {
			run.Input = Lengths{s, done.get(name).number("total")}
		}
	}
	for _, name := range []string{"output_len", "output_tokens"} {
		if s := done.inferencePerfStatistics(name, 1); s.Mean != nil {
			run.Output = Lengths{s, done.get(name).number("total")}
		}
	}
	return run
}

func (o object) inferencePerfStatistics(name string, by float64) Statistics {
	m := o.get(name)
	return Statistics{Mean: m.scaled(by, "mean"), Min: m.scaled(by, "min"), Max: m.scaled(by, "max"),
		P50: m.scaled(by, "median", "p50"), P90: m.scaled(by, "p90"), P95: m.scaled(by, "p95"),
		P99: m.scaled(by, "p99")}
}

// inferencePerfRequestsFormat is per_request_lifecycle_metrics.json: a list of requests with times in seconds of a
// clock that does not start in 1970.
func inferencePerfRequestsFormat() format {
	return format{
		Format: Format{Name: "inference-perf-requests", Layout: "JSON list of requests of inference-perf " +
			"(per_request_lifecycle_metrics.json)", Requests: true,
			Source: "https://github.com/kubernetes-sigs/inference-perf"},
		is: func(f *file) bool {
			l := f.list()
			return len(l) > 0 && l[0].has("start_time", "end_time") && (l[0].has("info") || l[0].has("request"))
		},
		read: func(f *file, r *Result) {
			run := Run{Name: "requests"}
			for _, o := range f.list() {
				start, end := o.number("start_time"), o.number("end_time")
				if start == nil || end == nil {
					f.fault(f.name, o.path, "start_time or end_time is missing (want seconds)")
					continue
				}
				info := o.get("info")
				answer := info.get("response_metrics")
				if answer.m == nil {
					answer = info
				}
				in := info.tokens("input_tokens")
				if in == 0 {
					in = info.get("request_metrics", "text").tokens("input_tokens")
				}
				q := Request{Arrival: seconds64(*start), Timed: true, Input: in,
					Output: answer.tokens("output_tokens"), E2E: seconds64(*end - *start),
					Session: o.text("session_id")}
				if at := answer.numbers("output_token_times"); len(at) > 0 {
					q.TTFT = seconds64(at[0] - *start)
				}
				q.Failed = o.get("error").m != nil || q.Output == 0
				run.Requests = append(run.Requests, q)
			}
			oneTurn(run.Requests)
			r.Runs = []Run{run}
		},
	}
}
