package measured

// llmperfFormat is the summary of llmperf's token_benchmark_ray.py. Times are seconds; the smallest and the largest
// lengths are written as strings. inter_token_latency_s is E2E/output and includes the first token, so that TPOT and
// ITL are unknown.
// Source: ray-project/llmperf token_benchmark_ray.py.
func llmperfFormat() format {
	return format{
		Format: Format{Name: "llmperf", Layout: "JSON summary of llmperf's token_benchmark_ray.py (*_summary.json)",
			Source: "https://github.com/ray-project/llmperf"},
		is: func(f *file) bool { return f.root().has("results_ttft_s_mean", "num_concurrent_requests") },
		read: func(f *file, r *Result) {
			o := f.root()
			at := func(name string, by float64) Statistics {
				n := "results_" + name
				p := n + "_quantiles_p"
				return Statistics{Mean: o.scaled(by, n+"_mean"), Std: o.scaled(by, n+"_stddev"),
					Min: o.scaled(by, n+"_min"),
					Max: o.scaled(by, n+"_max"), P50: o.scaled(by, p+"50"), P90: o.scaled(by, p+"90"),
					P95: o.scaled(by, p+"95"),
					P99: o.scaled(by, p+"99")}
			}
			run := Run{Model: o.text("model"), Load: Load{Concurrency: o.count("num_concurrent_requests")},
				Sent: o.count("results_num_requests_started"), Completed: o.count("results_num_completed_requests"),
				Failed: o.count("results_number_errors"), TTFT: at("ttft_s", 1e3), E2E: at("end_to_end_latency_s", 1e3),
				RequestsPerS:     o.scaled(1.0/60, "results_num_completed_requests_per_min"),
				OutputTokensPerS: o.number("results_mean_output_throughput_token_per_s")}
			run.Input.Statistics, run.Output.Statistics = at("number_input_tokens", 1), at("number_output_tokens", 1)
			r.note("llmperf's inter_token_latency_s includes the first token, so that TPOT and ITL are unknown")
			r.note("lengths are in tokens of llmperf's own tokenizer, which may not be that of the model")
			r.Runs = []Run{run}
		},
	}
}

// llmperfRequestsFormat is the list of individual responses of llmperf.
func llmperfRequestsFormat() format {
	return format{
		Format: Format{Name: "llmperf-requests", Layout: "JSON list of requests of llmperf " +
			"(*_individual_responses.json)",
			Requests: true, Source: "https://github.com/ray-project/llmperf"},
		is: func(f *file) bool { l := f.list(); return len(l) > 0 && l[0].has("ttft_s", "end_to_end_latency_s") },
		read: func(f *file, r *Result) {
			run := Run{Name: "requests"}
			timed := true
			for _, o := range f.list() {
				q := Request{Input: o.tokens("number_input_tokens"), Output: o.tokens("number_output_tokens"),
					TTFT: seconds64(o.value("ttft_s")), E2E: seconds64(o.value("end_to_end_latency_s"))}
				at := o.number("sample_time", "start_time")
				timed = timed && at != nil
				q.Arrival, q.Timed = seconds64(or(at, 0)), at != nil
				q.Failed = o.m["error_code"] != nil || q.Output == 0
				run.Requests = append(run.Requests, q)
			}
			if !timed {
				r.note("the file has no times of requests (want the summary for the number of users)")
			}
			r.note("lengths are in tokens of llmperf's own tokenizer, which may not be that of the model")
			r.Runs = []Run{run}
		},
	}
}
