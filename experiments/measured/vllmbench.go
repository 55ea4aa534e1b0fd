package measured

// vllmBenchFormat is the output of vllm bench serve --save-result: one JSON object. With --save-detailed it has lists
// with one element for each request. TPOT is (E2E-TTFT)/(output-1), and ITL are the gaps between chunks of a stream.
// Source: vllm-project/vllm vllm/benchmarks/serve.py.
func vllmBenchFormat() format {
	return format{
		Format: Format{Name: "vllm-bench", Layout: "JSON of vllm bench serve --save-result; --save-detailed adds " +
			"requests",
			Requests: true, Source: "https://docs.vllm.ai/en/latest/cli/bench/serve"},
		is: func(f *file) bool {
			o := f.root()
			for _, key := range []string{"mean_ttft_ms", "mean_tpot_ms", "mean_e2el_ms", "mean_itl_ms"} {
				if o.has(key) {
					return true
				}
			}
			return o.has("total_input_tokens", "total_output_tokens", "completed") || o.has("request_rate")
		},
		read: func(f *file, r *Result) { r.Runs = []Run{f.root().vllmBench(r)} },
	}
}

func (o object) vllmBench(r *Result) Run {
	run := Run{Engine: engineOf(o.text("backend")), Model: o.text("model_id"), Sent: o.count("num_prompts"),
		Completed: o.count("completed"), Failed: o.count("failed"), Duration: seconds64(o.value("duration")),
		RequestsPerS: o.number("request_throughput"), OutputTokensPerS: o.number("output_throughput")}
	run.Input.Total, run.Output.Total = o.number("total_input_tokens"), o.number("total_output_tokens")
	run.Load = Load{Burstiness: o.number("burstiness"), Concurrency: o.count("max_concurrency"),
		Rate: o.number("request_rate")}
	switch {
	case run.Load.Rate != nil && *run.Load.Rate == 0:
		o.file.fault(o.where, "request_rate", `0 is not allowed (want a number above 0, or "inf")`)
	case run.Load.Rate == nil && run.Load.Concurrency == nil:
		run.Load.AtOnce = true
	}
	if o.text("ramp_up_strategy") != "" {
		r.note("the rate ramped up; the rate given is taken for all of the run")
	}
	for _, k := range []struct {
		name string
		to   *Statistics
	}{{"ttft", &run.TTFT}, {"tpot", &run.TPOT}, {"itl", &run.ITL}, {"e2el", &run.E2E}} {
		at := func(names ...string) *float64 {
			for i := range names {
				names[i] += "_" + k.name + "_ms"
			}
			return o.number(names...)
		}
		*k.to = Statistics{Mean: at("mean"), Std: at("std"), P50: at("median", "p50"), P90: at("p90"), P95: at("p95"),
			P99: at("p99")}
	}
	o.parallelLists(&run)
	return run
}
