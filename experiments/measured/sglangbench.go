package measured

// sglangBenchFormat is the output of python -m sglang.bench_serving --output-file: one JSON object per run and line.
// TPOT is (E2E-TTFT)/(output-1), and ITL are the gaps between chunks of a stream, as in vllm bench. Source:
// sgl-project/sglang python/sglang/bench_serving.py.
func sglangBenchFormat() format {
	return format{
		Format: Format{Name: "sglang-bench", Layout: "JSON lines of python -m sglang.bench_serving --output-file " +
			"FILE; --output-details adds requests",
			Source: "https://docs.sglang.ai/developer_guide/bench_serving.html"},
		is: func(f *file) bool {
			return len(f.lines) > 0 && f.lines[0].has("backend", "total_output_tokens_retokenized")
		},
		read: func(f *file, r *Result) {
			for _, l := range f.lines {
				r.Runs = append(r.Runs, l.sglangBench(r))
			}
		},
	}
}

func (o object) sglangBench(r *Result) Run {
	run := Run{Engine: engineOf(o.text("backend")), Completed: o.count("completed"),
		Duration:     seconds64(o.value("duration")),
		RequestsPerS: o.number("request_throughput"), InputTokensPerS: o.number("input_throughput"),
		OutputTokensPerS: o.number("output_throughput")}
	run.Input.Total, run.Output.Total = o.number("total_input_tokens"), o.number("total_output_tokens")
	server := o.get("server_info")
	run.Model, run.Release = server.text("model_path", "served_model_name"), server.text("version")
	poisson := 1.0
	run.Load = Load{Rate: o.number("request_rate"), Burstiness: &poisson, Concurrency: o.count("max_concurrency")}
	switch {
	case o.text("request_rate") == "trace":
		r.note("the requests followed a trace; the rate is that of completed requests")
		run.Load.Rate = run.RequestsPerS
	case run.Load.Rate == nil && run.Load.Concurrency == nil:
		run.Load.AtOnce = true
	}
	for _, k := range []struct {
		name string
		to   *Statistics
	}{{"ttft", &run.TTFT}, {"tpot", &run.TPOT}, {"itl", &run.ITL}, {"e2e_latency", &run.E2E}} {
		at := func(name string) *float64 { return o.number(name + "_" + k.name + "_ms") }
		*k.to = Statistics{Mean: at("mean"), Std: at("std"), Max: at("max"), P50: at("median"), P90: at("p90"),
			P95: at("p95"),
			P99: at("p99")}
	}
	o.parallelLists(&run)
	if len(run.Requests) > 0 {
		r.note("%s records no times of requests; their order is that of the file", "sglang.bench_serving")
	}
	return run
}

// parallelLists reads requests from lists with one element per request, as vllm bench and sglang.bench_serving write
// them: input_lens, output_lens, ttfts and itls in seconds, start_times, errors.
func (o object) parallelLists(run *Run) {
	inputs, outputs := o.numbers("input_lens"), o.numbers("output_lens")
	ttfts, starts := o.numbers("ttfts"), o.numbers("start_times")
	gaps, _ := o.m["itls"].([]any)
	errors, _ := o.m["errors"].([]any)
	if len(inputs) == 0 {
		return
	}
	if len(inputs) != len(outputs) {
		o.file.fault(o.where, "output_lens", "%d lengths beside %d input_lens are not allowed (want one per request)",
			len(outputs), len(inputs))
		return
	}
	for i := range inputs {
		if !(inputs[i] >= 0 && inputs[i] <= maxTokens && outputs[i] >= 0 && outputs[i] <= maxTokens) {
			o.file.fault(o.where, "input_lens", "request %d has a length that is no number of tokens (want 0 or more)",
				i+1)
			return
		}
		q := Request{Input: int(inputs[i]), Output: int(outputs[i]), Failed: outputs[i] < 1}
		if i < len(errors) {
			text, _ := errors[i].(string)
			q.Failed = q.Failed || text != ""
		}
		if i < len(ttfts) {
			q.TTFT = seconds64(ttfts[i])
		}
		if i < len(gaps) {
			list, _ := gaps[i].([]any)
			total := 0.0
			for _, g := range list {
				x, _ := toNumber(g)
				total += x
			}
			if q.TTFT > 0 {
				q.E2E = q.TTFT + seconds64(total)
			}
		}
		if len(starts) == len(inputs) {
			q.Arrival, q.Timed = seconds64(starts[i]), true
		}
		run.Requests = append(run.Requests, q)
	}
}

// engineOf is the engine behind a backend of a benchmark; empty if the backend does not tell it.
func engineOf(backend string) string {
	for prefix, engine := range map[string]string{"sglang": "sglang", "vllm": "vllm", "trt": "trtllm",
		"tensorrt": "trtllm"} {
		if len(backend) >= len(prefix) && backend[:len(prefix)] == prefix {
			return engine
		}
	}
	return ""
}
