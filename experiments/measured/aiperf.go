package measured

import (
	"strings"
	"time"
)

// aiperfFormat is profile_export_aiperf.json: metrics with unit, avg and percentiles. inter_token_latency is a mean per
// request without the first token, which is TPOT.
// Sources: ai-dynamo/aiperf docs/tutorials/working-with-profile-exports.md, docs.nvidia.com/aiperf/reference.
func aiperfFormat() format {
	return format{
		Format: Format{Name: "aiperf", Layout: "JSON of aiperf profile (profile_export_aiperf.json)",
			Source: "https://docs.nvidia.com/aiperf/reference/json-export-schema"},
		is: func(f *file) bool {
			o := f.root()
			return o.isNVIDIA() && !o.isGenAIPerf()
		},
		read: func(f *file, r *Result) {
			o := f.root()
			run := o.nvidiaMetrics(r)
			config := o.get("input_config")
			run.Model = firstText(config.get("endpoint").m["model_names"])
			if items := config.get("models").items("items"); run.Model == "" && len(items) > 0 {
				run.Model = items[0].text("name")
			}
			generator := config.get("loadgen")
			run.Load = Load{Rate: generator.number("request_rate"), Concurrency: generator.count("concurrency"),
				Constant: generator.text("request_rate_mode") == "constant"}
			if command := config.text("cli_command"); run.Load == (Load{}) && command != "" {
				run.Load = commandLoad(command)
			}
			if o.truth("was_cancelled") {
				r.note("the run was cancelled before its end")
			}
			r.Runs = []Run{run}
		},
	}
}

// isNVIDIA reports whether the object has metrics as AIPerf and genai-perf write them.
func (o object) isNVIDIA() bool {
	for _, name := range []string{"request_latency", "request_throughput", "time_to_first_token"} {
		if m := o.get(name); m.has("unit", "avg") {
			return true
		}
	}
	return false
}

// isGenAIPerf reports whether the result comes from genai-perf, and not from AIPerf.
func (o object) isGenAIPerf() bool {
	if o.has("aiperf_version") || o.has("schema_version") {
		return false
	}
	_, list := o.get("input_config").m["model"].([]any)
	return list || o.get("input_config").has("subcommand") || o.has("output_token_throughput_per_request") ||
		o.has("num_output_token")
}

// genaiPerfFormat is profile_export_genai_perf.json, in its generations. The oldest one writes nanoseconds, and numbers
// as strings.
// Sources: triton-inference-server/perf_analyzer genai-perf/docs/files.md,
// genai-perf/tests/test_exporters/test_json_exporter.py.
func genaiPerfFormat() format {
	return format{
		Format: Format{Name: "genai-perf", Layout: "JSON of genai-perf profile (profile_export_genai_perf.json)",
			Source: "https://github.com/triton-inference-server/perf_analyzer"},
		is: func(f *file) bool { o := f.root(); return o.isNVIDIA() && o.isGenAIPerf() },
		read: func(f *file, r *Result) {
			o := f.root()
			run := o.nvidiaMetrics(r)
			config := o.get("input_config")
			run.Model = firstText(config.m["model"])
			run.Load = Load{Rate: config.number("request_rate"), Concurrency: config.count("concurrency")}
			r.Runs = []Run{run}
		},
	}
}

// nvidiaMetrics reads metrics of AIPerf and genai-perf.
func (o object) nvidiaMetrics(r *Result) Run {
	run := Run{TTFT: o.nvidia("time_to_first_token"), TPOT: o.nvidia("inter_token_latency"),
		E2E: o.nvidia("request_latency"), RequestsPerS: o.get("request_throughput").number("avg"),
		OutputTokensPerS: o.get("output_token_throughput").number("avg"),
		Duration: seconds64(or(o.get("benchmark_duration").scaled(o.get("benchmark_duration").secondsPer(), "avg"),
			0)),
		Completed: o.get("request_count").count("avg"), Failed: o.get("error_request_count").count("avg")}
	for _, name := range []string{"input_sequence_length", "num_input_token"} {
		if o.has(name) {
			run.Input.Statistics = o.nvidia(name)
		}
	}
	for _, name := range []string{"output_sequence_length", "num_output_token"} {
		if o.has(name) {
			run.Output.Statistics = o.nvidia(name)
		}
	}
	if run.Completed == nil {
		run.Completed = o.get("request_latency").count("count")
	}
	run.Input.Total, run.Output.Total = o.get("total_isl").number("avg"), o.get("total_osl").number("avg")
	if run.TPOT.Mean != nil {
		r.note("inter_token_latency is a mean per request without the first token, which is TPOT; the gaps (ITL) are " +
			"unknown")
	}
	watts, n := 0.0, 0
	gpus := o.get("telemetry_data", "endpoints")
	for _, endpoint := range sortedKeys(gpus.m) {
		list := gpus.get(endpoint, "gpus")
		for _, name := range sortedKeys(list.m) {
			gpu := list.get(name)
			run.GPU = gpu.text("gpu_name")
			run.GPUs++
			if w := gpu.get("metrics", "gpu_power_usage").number("avg"); w != nil {
				watts, n = watts+*w, n+1
			}
		}
	}
	if n > 0 {
		mean := watts / float64(n)
		run.GPUWatts = &mean
	}
	return run
}

// nvidia reads a metric; times become milliseconds.
func (o object) nvidia(name string) Statistics {
	m := o.get(name)
	by := 1.0
	if s := m.secondsPer(); s != 1 || strings.HasPrefix(m.text("unit"), "s") {
		by = s * 1e3
	}
	if unit := m.text("unit"); unit == "tokens" {
		by = 1
	}
	return Statistics{Mean: m.scaled(by, "avg"), Std: m.scaled(by, "std"), Min: m.scaled(by, "min"), Max: m.scaled(by,
		"max"),
		P50: m.scaled(by, "p50"), P90: m.scaled(by, "p90"), P95: m.scaled(by, "p95"), P99: m.scaled(by, "p99")}
}

// secondsPer returns the unit of a metric in seconds; 1 if it is not a time.
func (o object) secondsPer() float64 { return secondsPer(o.text("unit")) }

func secondsPer(unit string) float64 {
	switch strings.ToLower(unit) {
	case "ms", "milliseconds":
		return 1e-3
	case "us", "µs", "microseconds":
		return 1e-6
	case "ns", "nanoseconds":
		return 1e-9
	}
	return 1
}

// aiperfRecordsFormat is profile_export.jsonl of AIPerf: one request per line. Times are nanoseconds since 1970, and
// the metrics carry their units.
func aiperfRecordsFormat() format {
	return format{
		Format: Format{Name: "aiperf-records", Layout: "JSON lines of aiperf profile, one request each " +
			"(profile_export.jsonl)",
			Requests: true, Source: "https://github.com/ai-dynamo/aiperf"},
		is: func(f *file) bool {
			return len(f.lines) > 0 && f.lines[0].has("metadata", "metrics") &&
				f.lines[0].get("metadata").has("request_start_ns")
		},
		read: readAIPerfRecords,
	}
}

func readAIPerfRecords(f *file, r *Result) {
	run := Run{Name: "records"}
	var gaps []float64
	warmup := 0
	for _, l := range f.lines {
		m, v := l.get("metadata"), l.get("metrics")
		if phase := m.text("benchmark_phase"); phase != "" && phase != "profiling" {
			warmup++
			continue
		}
		at := func(name string) float64 { k := v.get(name); return k.value("value") * k.secondsPer() }
		start := m.number("request_start_ns")
		if start == nil {
			f.fault(l.where, "metadata.request_start_ns", "the start of the request is missing (want nanoseconds)")
			continue
		}
		q := Request{Arrival: time.Duration(*start), Timed: true, Input: v.get("input_sequence_length").tokens("value"),
			Output: v.get("output_sequence_length").tokens("value"), TTFT: seconds64(at("time_to_first_token")),
			E2E: seconds64(at("request_latency"))}
		if q.Output == 0 {
			q.Output = v.get("output_token_count").tokens("value")
		}
		q.Failed = m.truth("was_cancelled") || l.get("error").m != nil || q.Output == 0
		if q.Failed && q.Input == 0 {
			q.Input = v.get("error_isl").tokens("value")
		}
		if m.value("turn_index") > 0 || m.text("conversation_id") != "" {
			q.Session = m.text("conversation_id")
		}
		chunks := v.get("inter_chunk_latency")
		if list := chunks.numbers("value"); len(list) == q.Output-1 {
			for _, g := range list {
				gaps = append(gaps, g*chunks.secondsPer()*1e3)
			}
		}
		run.Requests = append(run.Requests, q)
	}
	if warmup > 0 {
		r.note("%d requests of the warm-up are left out", warmup)
	}
	oneTurn(run.Requests)
	fill(&run.ITL, gaps)
	r.Runs = []Run{run}
}

// oneTurn removes the names of conversations that have one turn each.
func oneTurn(list []Request) {
	turns := map[string]int{}
	for _, q := range list {
		turns[q.Session]++
	}
	for i := range list {
		if turns[list[i].Session] == 1 {
			list[i].Session = ""
		}
	}
}

// firstText is a text, or the first one of a list.
func firstText(v any) string {
	if l, ok := v.([]any); ok && len(l) > 0 {
		v = l[0]
	}
	s, _ := v.(string)
	return s
}

func commandLoad(command string) (l Load) {
	words := strings.Fields(command)
	for i, w := range words {
		name, value, ok := strings.Cut(strings.TrimLeft(w, "-"), "=")
		if !ok && i+1 < len(words) {
			value = words[i+1]
		}
		x, isNumber := toNumber(strings.Trim(value, `"'`))
		if !isNumber || x <= 0 {
			continue
		}
		switch name {
		case "concurrency":
			l.Concurrency = whole(&x)
		case "request-rate":
			l.Rate = &x
		}
	}
	return l
}
