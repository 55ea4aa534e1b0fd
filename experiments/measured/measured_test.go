package measured

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"strings"
	"testing"

	"clifftop/experiments/scenario/yamldoc"
)

// recordedTrace has a request that completed, one that was rejected, and one that its client cancelled.
const recordedTrace = "# Recorded by clifftop record.\narrival_s,input_tokens,output_tokens,session,content,class," +
	"priority,cancel_s,outcome,status,received,counted,ttft_s,e2e_s,gap_mean_s,gap_p50_s,gap_p99_s,gap_max_s," +
	"cached_tokens,model\n" +
	"0,40,9,1,#00000000000000aa:16|#00000000000000ab:24,,,,completed,200,9,usage,0.04,0.12,0.01,0.01,0.01,0.01,0,m\n" +
	"0.5,40,0,2,#00000000000000aa:16,,,,rejected,429,0,text,,0.001,,,,,,m\n" +
	"1,60,50,1,#00000000000000aa:16|#00000000000000ab:24|@out:9,,,0.25,cancelled,200,3,chunks,0.1,0.2,,,,,,m\n"

// fixtures have the shape of real files, with other numbers. want are values of the first run.
var fixtures = []struct {
	name, text, tool, want string
}{
	{"sglang.jsonl", `{"backend": "sglang", "request_rate": 2.0, "max_concurrency": null, "duration": 10.0, "completed": 20,
"total_input_tokens": 2000, "total_output_tokens": 400, "total_output_tokens_retokenized": 399, "request_throughput": 2.0,
"mean_e2e_latency_ms": 900.0, "mean_ttft_ms": 80.0, "p99_ttft_ms": 95.0, "mean_tpot_ms": 11.0, "mean_itl_ms": 12.0}
{"backend": "sglang", "request_rate": Infinity, "max_concurrency": 8, "duration": 10.0, "completed": 20,
"total_output_tokens_retokenized": 1}`, "sglang-bench", "ttft 80 tpot 11 itl 12 e2e 900 in 100 out 20 n 20 rate 2"},
	{"guidellm.json", `{"metadata": {"version": 1, "guidellm_version": "0.6.0"}, "args": {"backend_kwargs": {"model": "m"}},
"benchmarks": [{"type_": "generative_benchmark", "config": {"strategy": {"type_": "concurrent", "streams": 4}},
"scheduler_metrics": {"measure_start_time": 100.0, "measure_end_time": 110.0},
"metrics": {"request_totals": {"successful": 20, "errored": 1, "incomplete": 1, "total": 22},
"time_to_first_token_ms": {"successful": {"mean": 50.0, "percentiles": {"p99": 70.0}}, "errored": {"mean": 900.0}},
"request_latency": {"successful": {"mean": 1.5}}, "inter_token_latency_ms": {"successful": {"mean": 7.0}},
"prompt_token_count": {"successful": {"total_sum": 8000, "count": 20}},
"output_token_count": {"successful": {"mean": 30.0, "std_dev": 3.0}}}}]}`, "guidellm",
		"ttft 50 tpot 7 itl 7 e2e 1500 in 400 out 30 n 20 users 4"},
	{"guidellm2.json", `{"metadata": {"version": 2, "guidellm_version": "0.7.3"}, "config": {}, "benchmarks": [{"type_":
"generative_benchmark", "metrics": {"request_totals": {"successful": 2, "total": 3}}, "requests": {"successful": [
{"request_start_time": 1000.5, "request_latency": 1.0, "prompt_tokens": 10, "output_tokens": 5, "time_to_first_token_ms": 200.0},
{"request_start_time": 1000.0, "request_latency": 3.0, "prompt_tokens": 30, "output_tokens": 5, "time_to_first_token_ms": 600.0}],
"errored": [{"request_start_time": 1001.0}]}}]}`, "guidellm", "ttft 400 tpot 400 e2e 2000 in 20 out 5 n 2"},
	{"trace.csv", recordedTrace, "clifftop-record", "ttft 40 tpot 10 e2e 120 in 40 out 9 n 1"},
	{"guidellm.csv", "Run Info,Benchmark,Timings,Request Counts,Request Counts,Request Latency,Time to First Token,Token Metrics," +
		"Token Metrics\nModel,Strategy,Duration,Successful,Total,Successful,Successful,Input Tokens,Output Tokens\n,,Sec,,," +
		"Sec Mean,ms Mean,Successful Mean,Successful Mean\nm,poisson,10,20,21,1.5,50,400,30\n", "guidellm-csv",
		"ttft 50 e2e 1500 in 400 out 30 n 20"},
	{"aiperf.json", `{"schema_version": "1.3", "aiperf_version": "0.10.0", "request_latency": {"unit": "ms", "avg": 900.0, "count": 12},
"time_to_first_token": {"unit": "ms", "avg": 90.0, "p95": 110.0}, "inter_token_latency": {"unit": "ms", "avg": 9.0},
"input_sequence_length": {"unit": "tokens", "avg": 256}, "output_sequence_length": {"unit": "tokens", "avg": 64},
"benchmark_duration": {"unit": "sec", "avg": 6.0}, "input_config": {"models": {"items": [{"name": "m"}]},
"loadgen": {"concurrency": 3}}}`, "aiperf", "ttft 90 tpot 9 e2e 900 in 256 out 64 n 12 users 3"},
	{"aiperf.csv", "Metric,avg,min,max,p50,std\nTime to First Token (ms),90,80,120,88,4\nOutput Sequence Length (tokens),64,60,70,64,2" +
		"\n\nMetric,Value\nRequest Count,12\nBenchmark Duration (sec),6\n", "aiperf-csv", "ttft 90 out 64 n 12"},
	{"aiperf.jsonl", `{"metadata": {"request_start_ns": 1700000000000000000, "benchmark_phase": "profiling", "turn_index": 0},
"metrics": {"input_sequence_length": {"value": 100, "unit": "tokens"}, "output_sequence_length": {"value": 3, "unit": "tokens"},
"time_to_first_token": {"value": 50, "unit": "ms"}, "request_latency": {"value": 0.07, "unit": "sec"},
"inter_chunk_latency": {"value": [8, 12], "unit": "ms"}}, "error": null}
{"metadata": {"request_start_ns": 1700000001000000000, "was_cancelled": true}, "metrics": {"error_isl": {"value": 100}},
"error": {"code": 499}}`, "aiperf-records", "ttft 50 tpot 10 itl 10 e2e 70 in 100 out 3 n 1"},
	{"genai.json", `{"request_latency": {"unit": "ns", "avg": "900000000"}, "time_to_first_token": {"unit": "ns", "avg": "90000000"},
"num_output_token": {"unit": "tokens", "avg": "64"}, "num_input_token": {"unit": "tokens", "avg": "256"},
"input_config": {"subcommand": "profile", "model": ["m"], "concurrency": 2}}`, "genai-perf", "ttft 90 e2e 900 in 256 out 64 users 2"},
	{"stage.json", `{"load_summary": {"count": 6, "requested_rate": 1.0}, "successes": {"count": 6, "latency": {
"request_latency": {"mean": 3.0}, "time_per_output_token": {"mean": 0.008}, "inter_token_latency": null,
"time_to_first_token": {"mean": 0.05, "median": 0.04}}, "throughput": {"requests_per_sec": 0.9},
"prompt_len": {"mean": 200.0, "max": 700}, "output_tokens": {"total": 600, "mean": 100.0}}, "failures": {"count": 0}}`,
		"inference-perf", "ttft 50 tpot 8 e2e 3000 in 200 out 100 n 6 rate 1"},
	{"per_request.json", `[{"start_time": 50.0, "end_time": 52.0, "request": "", "info": {"input_tokens": 100, "output_tokens": 3,
"output_token_times": [50.5, 51.0, 52.0]}, "error": null}]`, "inference-perf-requests", "ttft 500 tpot 750 e2e 2000 in 100 out 3 n 1"},
	{"llmperf.json", `{"version": "2023-08-31", "model": "m", "num_concurrent_requests": 5, "results_ttft_s_mean": 0.5,
"results_end_to_end_latency_s_mean": 4, "results_inter_token_latency_s_mean": 0.02, "results_number_input_tokens_mean": 550,
"results_number_output_tokens_mean": 150, "results_number_output_tokens_min": "100", "results_num_completed_requests": 30,
"results_num_completed_requests_per_min": 60}`, "llmperf", "ttft 500 e2e 4000 in 550 out 150 n 30 users 5"},
	{"individual.json", `[{"error_code": null, "ttft_s": 0.5, "end_to_end_latency_s": 1.5, "number_output_tokens": 101,
"number_input_tokens": 550}]`, "llmperf-requests", "ttft 500 tpot 10 e2e 1500 in 550 out 101 n 1"},
	{"agg.json", `{"hw": "h200", "tp": 8, "framework": "sglang", "conc": 16, "isl": 1024, "osl": 512, "mean_ttft": 0.25,
"mean_tpot": 0.02, "mean_e2el": 11.0}`, "inferencex", "ttft 250 tpot 20 e2e 11000 in 1024 out 512 users 16"},
	{"dynamo.jsonl", `{"timestamp": 5, "event": {"schema": "dynamo.request.trace.v1", "event_type": "request_end", "request":
{"input_tokens": 100, "output_tokens": 11, "request_received_ms": 1000, "ttft_ms": 50, "total_time_ms": 150}}}
{"schema": "dynamo.request.trace.v1", "event_type": "tool_end", "tool": {}}`, "dynamo-requests",
		"ttft 50 tpot 10 e2e 150 in 100 out 11 n 1"},
	{"fpm.jsonl", `{"schema": "dynamo.fpm.trace.v1", "observed_at_unix_ms": 1, "fpm": {"wall_time": 0.02, "scheduled_requests":
{"num_prefill_requests": 1, "num_decode_requests": 3, "sum_prefill_tokens": 100}}}`, "dynamo-iterations", "running 4"},
	{"k6.json", `{"metrics": {"http_req_duration": {"avg": 142.0, "p(95)": 263.0}, "http_reqs": {"count": 100, "rate": 4},
"http_req_failed": {"value": 0.1}, "llm_ttft": {"type": "trend", "values": {"avg": 60}}, "vus_max": {"value": 7}}}`, "k6",
		"ttft 60 e2e 142 n 90 users 7"},
	{"k6.jsonl", `{"type":"Point","data":{"time":"2025-05-09T14:34:45.5+02:00","value":400,"tags":null},"metric":"http_req_duration"}
{"type":"Point","data":{"time":"2025-05-09T14:34:46.5+02:00","value":600,"tags":null},"metric":"http_req_duration"}`, "k6-points",
		"e2e 500 n 2"},
	{"vllm.prom", `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:prompt_tokens_total{model_name="m"} 800
vllm:generation_tokens_total{model_name="m"} 80
vllm:e2e_request_latency_seconds_bucket{le="1.0"} 2
vllm:e2e_request_latency_seconds_bucket{le="2.0"} 4 # {trace_id="a"} 1.5
vllm:e2e_request_latency_seconds_bucket{le="+Inf"} 4
vllm:e2e_request_latency_seconds_sum 5
vllm:e2e_request_latency_seconds_count 4
`, "prometheus", "e2e 1250 in 200 out 20 n 4 running 3 kv 0.25"},
	{"dump.txt", `{__name__="vllm:generation_tokens_total", engine="0"} 100 1700000000000
{__name__="vllm:generation_tokens_total", engine="0"} 400 1700000010000
{__name__="vllm:request_success_total", finished_reason="stop"} 1 1700000000000
{__name__="vllm:request_success_total", finished_reason="stop"} 4 1700000010000
`, "prometheus", "out 100 n 3"},
	{"range.json", `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"sglang:num_running_reqs"},
"values":[[1700000000,"3"],[1700000015,"NaN"],[1700000030.5,"2"]]}]}}`, "prometheus-range", "running 3"},
	{"vllm.log", `(APIServer pid=1) INFO 12-31 23:59:55 [loggers.py:127] Engine 000: Avg prompt throughput: 100.0 tokens/s, Avg ` +
		`generation throughput: 20.0 tokens/s, Running: 4 reqs, Waiting: 1 reqs, GPU KV cache usage: 25.0%, Prefix cache hit rate: 54.2%
INFO 01-01 00:00:05 metrics.py:449] Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s, Running: 3 reqs, ` +
		`Swapped: 0 reqs, Pending: 13 reqs, GPU KV cache usage: 1.5%, CPU KV cache usage: 0.0%.`, "vllm-log",
		"running 4 waiting 1 kv 0.25 hit 0.542 last 10"},
	{"sglang.log", `[2025-07-18 15:32:54 TP0] Decode batch. #running-req: 2, #token: 2266, token usage: 0.82, gen throughput ` +
		`(token/s): 75.25, #queue-req: 3
[2025-07-18 15:32:54 TP1] Decode batch. #running-req: 2, #token: 2266, token usage: 0.82, #queue-req: 3
[2025-07-18 15:32:56 TP0] Prefill batch, #new-seq: 1, #new-token: 100, #cached-token: 300, token usage: 0.50, #running-req: 1, ` +
		`#queue-req: 0, `, "sglang-log", "running 2 waiting 3 kv 0.82 last 2"},
	{"trt.log", `[01/16/2026-06:20:17] [TRT-LLM] [RANK 0] [I] iter = 9, host_step_time = 50.0ms, num_scheduled_requests: 3, states = ` +
		`{'num_ctx_requests': 2, 'num_ctx_tokens': 100, 'num_generation_tokens': 5}`, "trtllm-log", "running 3"},
	{"bench.json", `{"backend": "vllm", "model_id": "m", "request_rate": "inf", "max_concurrency": 4, "completed": 2, "num_prompts": 3,
"duration": 2.0, "total_input_tokens": 200, "total_output_tokens": 20, "mean_ttft_ms": 50, "median_ttft_ms": 49, "mean_tpot_ms": 9,
"input_lens": [90, 110, 100], "output_lens": [10, 10, 0], "start_times": [5.0, 5.5, 6.0]}`, "vllm-bench",
		"ttft 50 tpot 9 in 100 out 10 n 2 users 4"},
	{"stats.json", `[{"iter": 1, "iterLatencyMS": 7.0, "numActiveRequests": 2, "kvCacheStats": {"maxNumBlocks": 100, "usedNumBlocks": 20,
"tokensPerBlock": 32, "cacheHitRate": 0.5}}]`, "trtllm-stats", "running 2 kv 0.2 hit 0.5"},
}

// summary writes what is known of a run.
func summary(run *Run) string {
	var b strings.Builder
	put := func(name string, x *float64) {
		if x != nil {
			fmt.Fprintf(&b, " %s %g", name, math.Round(*x*1e6)/1e6)
		}
	}
	put("ttft", run.TTFT.Mean)
	put("tpot", run.TPOT.Mean)
	put("itl", run.ITL.Mean)
	put("e2e", run.E2E.Mean)
	put("in", run.Input.Mean)
	put("out", run.Output.Mean)
	put("n", float(run.Completed))
	put("rate", run.Load.Rate)
	put("users", float(run.Load.Concurrency))
	if n := len(run.Series); n > 0 {
		put("running", run.Series[0].Running)
		put("waiting", run.Series[0].Waiting)
		put("kv", run.Series[0].KVUse)
		put("hit", run.Series[0].HitRate)
		seconds := run.Series[n-1].At.Seconds()
		put("last", &seconds)
	}
	return strings.TrimSpace(b.String())
}

func TestRead(t *testing.T) {
	for _, c := range fixtures {
		r, err := Read(c.name, []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := summary(&r.Runs[0])
		for _, zero := range []string{" last 0", " waiting 0"} {
			got = strings.ReplaceAll(got+" ", zero+" ", " ")
			got = strings.TrimSpace(got)
		}
		if r.Tool != c.tool || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s: %s\nwant %s: %s", c.name, r.Tool, got, c.tool, c.want)
		}
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		w.Write([]byte(c.text))
		w.Close()
		if zipped, err := Read(c.name, z.Bytes()); err != nil || summary(&zipped.Runs[0]) != summary(&r.Runs[0]) {
			t.Errorf("%s: gzipped: %v", c.name, err)
		}
	}
	read := map[string]bool{}
	for _, c := range fixtures {
		read[c.tool] = true
	}
	for _, f := range Formats() {
		if !read[f.Name] {
			t.Errorf("no fixture of %s", f.Name)
		}
	}
}

// A trace of clifftop record keeps what requests share and when clients cancelled.
func TestRecordedTrace(t *testing.T) {
	r, err := Read("trace.csv", []byte(recordedTrace))
	if err != nil {
		t.Fatal(err)
	}
	run := &r.Runs[0]
	if len(run.Trace) != 2 || run.Trace[1].Turn != 1 || run.Trace[1].Content.Tokens() != 49 ||
		run.Trace[1].Client.Cancel.Seconds() != 0.25 || run.Model != "m" || *run.Failed != 2 {
		t.Errorf("%+v", run)
	}
	var b bytes.Buffer
	if n, err := run.WriteTrace(&b, "trace.csv"); n != 2 || err != nil ||
		!strings.Contains(b.String(), "\n1,60,50,1,#00000000000000aa:16|#00000000000000ab:24|@out:9,,,0.25\n") {
		t.Errorf("%d %v\n%s", n, err, b.String())
	}
	for text, want := range map[string]string{
		strings.Replace(recordedTrace, "0.04", "x", 1):     `trace.csv:3`,
		strings.Replace(recordedTrace, "1,60", "1,-60", 1): "-60",
		strings.Replace(recordedTrace, "1,60", "60", 1):    "CSV is damaged",
	} {
		if _, err := Read("trace.csv", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestBadFiles(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", " \n", "the file is empty"},
		{"unknown", `{"a": 1}`, "no known result"},
		{"truncated", fixtures[1].text[:300], "ends early"},
		{"negative", strings.Replace(fixtures[0].text, `"mean_ttft_ms": 80.0`, `"mean_ttft_ms": -80.0`, 1), "mean_ttft_ms: -80"},
		{"word", strings.Replace(fixtures[0].text, `"mean_ttft_ms": 80.0`, `"mean_ttft_ms": "fast"`, 1), `"fast" is not allowed`},
		{"none completed", strings.Replace(fixtures[0].text, `"completed": 20`, `"completed": 0`, 1), "no request completed"},
		{"zstd", "\x28\xb5\x2f\xfdabc", "compressed with zstd"},
		{"gzip", "\x1f\x8babc", "gzip data ends early"},
		{"other metrics", `{"status":"success","data":{"result":[{"metric":{"__name__":"up"},"values":[[1,"1"]]}]}}`, "no series is"},
		{"query error", `{"status":"error","error":"timed out","data":{}}`, "timed out"},
	} {
		_, err := Read(c.name, []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !yamldoc.BadInput(err) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v (want %q)", c.name, err, c.want)
		}
	}
}

func TestTwoSnapshots(t *testing.T) {
	before := "vllm:prompt_tokens_total 100\nvllm:generation_tokens_total 10\nvllm:request_success_total{finished_reason=\"stop\"} 1\n"
	after := "vllm:prompt_tokens_total 500\nvllm:generation_tokens_total 50\nvllm:request_success_total{finished_reason=\"stop\"} 3\n"
	list, err := ReadAll([]Named{{"a", []byte(before)}, {"b", []byte(after)}})
	if err != nil || len(list) != 1 || summary(&list[0].Runs[0]) != "in 200 out 20 n 2" {
		t.Fatal(list, err)
	}
}

func TestTraffic(t *testing.T) {
	for _, c := range []struct {
		run  Run
		want string
	}{
		{Run{Load: Load{Concurrency: new(8)}, Input: mean(500, 250), Output: mean(100, 0)},
			"workload: arrivals: {process: closed, users: 8} input: {distribution: lognormal, mean: 500, cv: 0.5} " +
				"output: {distribution: fixed, value: 100}"},
		{Run{Load: Load{Rate: new(2.0), Burstiness: new(0.25)}, Input: mean(500, -1), Output: mean(100, -1)},
			"workload: arrivals: {process: gamma, rate: 2, cv: 2} input: {distribution: fixed, value: 500} " +
				"output: {distribution: fixed, value: 100}"},
		{Run{Load: Load{Rate: new(2.0)}, Output: mean(100, -1)}, "no lengths of prompts"},
		{Run{Input: mean(100, -1), Output: mean(100, -1)}, "neither a rate nor"},
	} {
		traffic, err := c.run.Traffic("f")
		got := fmt.Sprint(err)
		if err == nil {
			root := &yamldoc.Node{Kind: yamldoc.Map}
			root.Put("workload", yamldoc.Place{}, traffic.Workload)
			var words []string
			for _, l := range strings.Split(string(yamldoc.Marshal(root)), "\n") {
				l, _, _ = strings.Cut(l, "  #")
				words = append(words, strings.Fields(l)...)
			}
			got = strings.Join(words, " ")
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}

func mean(x, std float64) Lengths {
	l := Lengths{Statistics: Statistics{Mean: &x}}
	if std >= 0 {
		l.Std = &std
	}
	return l
}

// TestFit recovers laws from their own quantiles.
func TestFit(t *testing.T) {
	var exponential, uniform, lognormal []float64
	const n = 1000
	for i := range n {
		u := (float64(i) + 0.5) / n
		exponential = append(exponential, -math.Log(1-u)/4)
		uniform = append(uniform, math.Round(100+400*u))
		lognormal = append(lognormal, math.Round(math.Exp(6+0.5*math.Sqrt2*math.Erfinv(2*u-1))))
	}
	if d := distance(exponential, func(x float64) float64 { return gammaBelow(1, 4*x) }); d > 0.001 {
		t.Errorf("exponential: KS %g", d)
	}
	if p := gammaBelow(2.5, 3); math.Abs(p-0.6938) > 5e-4 { // χ² of 5 degrees: P(6) = 0.6938
		t.Errorf("P(2.5, 3) = %g", p)
	}
	if k := fitLengths(uniform); k.spec.Distribution != "uniform" {
		t.Errorf("uniform: %s", k.words)
	}
	if k := fitLengths(lognormal); k.spec.Distribution != "lognormal" || math.Abs(k.spec.CV-0.533) > 0.01 {
		t.Errorf("lognormal: %s", k.words)
	}
	traffic := &Traffic{}
	if node, how := traffic.fitted(exponential, 4, ""); node.Get("process").Text != "poisson" {
		t.Errorf("gaps: %s", how)
	}
}

// TestWriteTrace replays what was measured.
func TestWriteTrace(t *testing.T) {
	r, err := Read("g.json", []byte(fixtures[2].text))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if n, err := r.Runs[0].WriteTrace(&b, "g.json"); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if want := "arrival_s,input_tokens,output_tokens\n0,30,5\n0.5,10,5\n"; b.String() != want {
		t.Errorf("%s\nwant %s", b.String(), want)
	}
	for i := range r.Runs[0].Requests {
		r.Runs[0].Requests[i].Session = "s"
	}
	b.Reset()
	r.Runs[0].WriteTrace(&b, "g.json")
	if want := "0,30,5,1,,,\n0.5,10,5,1,,,\n"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("%s\nwant %s", b.String(), want)
	}
}

func FuzzRead(f *testing.F) {
	for _, c := range fixtures {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Read("f", []byte(text))
		if err != nil {
			if !yamldoc.BadInput(err) {
				t.Fatal(err)
			}
			return
		}
		for i := range r.Runs {
			traffic, err := r.Runs[i].Traffic("f")
			if err == nil && len(traffic.Fits) > 0 {
				traffic.Picture("f")
			}
			r.Runs[i].WriteTrace(&bytes.Buffer{}, "f")
		}
	})
}
