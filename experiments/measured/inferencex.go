package measured

import (
	"fmt"
	"strings"
)

// inferenceXFormat are aggregated records of InferenceMAX and InferenceX: one object per run, or a list. Times of the
// first generation are seconds.
// Sources: SemiAnalysisAI/InferenceX utils/process_result.py, SemiAnalysisAI/InferenceX-app packages/db/src.
func inferenceXFormat() format {
	return format{
		Format: Format{Name: "inferencex", Layout: "JSON of InferenceMAX or InferenceX: an aggregated record " +
			"(agg_*.json), a " +
			"list, or lines", Source: "https://github.com/SemiAnalysisAI/InferenceX"},
		is: func(f *file) bool {
			l := f.records()
			return len(l) > 0 && l[0].has("hw", "framework", "conc")
		},
		read: func(f *file, r *Result) {
			for _, o := range f.records() {
				r.Runs = append(r.Runs, o.inferenceX(r))
			}
		},
	}
}

// inferenceXModels are the models behind InferenceX's prefixes.
var inferenceXModels = map[string]string{"dsr1": "deepseek-ai/DeepSeek-R1-0528", "gptoss": "openai/gpt-oss-120b",
	"70b": "meta-llama/Llama-3.3-70B-Instruct"}

// records are the objects of a list, of lines, or the one object of the file.
func (f *file) records() []object {
	if l := f.list(); len(l) > 0 {
		return l
	}
	var out []object
	for _, l := range f.lines {
		out = append(out, l.object)
	}
	return out
}

func (o object) inferenceX(r *Result) Run {
	run := Run{Model: o.text("model", "infmax_model_prefix"), GPU: o.text("hw"),
		Load:     Load{Concurrency: o.count("conc")},
		Duration: seconds64(o.value("duration_seconds")), GPUWatts: o.number("avg_power_w")}
	run.Engine, _, _ = strings.Cut(o.text("framework"), "-")
	tp, dp := o.value("tp"), max(o.value("dp"), 1)
	run.GPUs = int(o.value("num_gpus"))
	if run.GPUs == 0 {
		run.GPUs = int(tp * dp)
	}
	run.Name = fmt.Sprintf("%s %s tp%d concurrency %d", run.GPU, run.Engine, int(tp), int(o.value("conc")))
	if strings.HasPrefix(run.Engine, "trt") {
		run.Engine = "trtllm"
	}
	if name, ok := inferenceXModels[run.Model]; ok {
		run.Model = name
	}
	if tp > 0 && !o.truth("disagg") {
		run.Flags = fmt.Sprintf("--tensor-parallel-size %d", int(tp))
		if run.Engine == "trtllm" {
			run.Flags = fmt.Sprintf("--tp_size %d", int(tp))
		}
	}
	if o.truth("disagg") {
		r.note("prefill and decode are apart; flags of the two roles are not in the record")
	}
	for _, k := range []struct {
		name string
		to   *Statistics
	}{{"ttft", &run.TTFT}, {"tpot", &run.TPOT}, {"itl", &run.ITL}, {"e2el", &run.E2E}} {
		at := func(name string) *float64 { return o.scaled(1e3, name+"_"+k.name) }
		*k.to = Statistics{Mean: at("mean"), Std: at("std"), P50: at("median"), P90: at("p90"), P95: at("p95"),
			P99: at("p99")}
	}
	if v := o.number("median_intvty"); run.TPOT.P50 == nil && v != nil && *v > 0 {
		ms := 1e3 / *v
		run.TPOT.P50 = &ms
	}
	run.OutputTokensPerS = o.number("output_tput_tps")
	if run.OutputTokensPerS == nil && run.GPUs > 0 {
		run.OutputTokensPerS = o.scaled(float64(run.GPUs), "output_tput_per_gpu")
	}
	run.Input.Mean, run.Output.Mean = o.number("isl"), o.number("osl")
	if run.Input.Mean != nil {
		r.note("lengths are the nominal isl and osl of the record; InferenceX draws them from 0.8 to 1 times that in " +
			"many runs")
	} else {
		r.note("the record has no isl and osl: they stand in the name of its file")
	}
	return run
}
