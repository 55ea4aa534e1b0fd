package experiments_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"clifftop/model"
	"clifftop/report"

	"clifftop/experiments"
)

// pipelineRun runs a scenario for its summary, with all checks on.
func pipelineRun(t *testing.T, format string, args ...any) *report.Summary {
	t.Helper()
	return mustRun(t, mustParse(t, fmt.Sprintf(format, args...)), experiments.RunOptions{Check: true}).Summary
}

// Stages that all have a batch of their own multiply the throughput: n·S equal sequences in S batches of n have a token
// each every S stage times. The budget makes the batches: four prompts of 100 tokens each.
func TestPipelineTheory(t *testing.T) {
	for _, stages := range []int{1, 2, 4} {
		s := pipelineRun(t, `
deployment: {pipeline_parallel_size: %d}
engine: {max_num_batched_tokens: 400, max_num_seqs: %d, enable_prefix_caching: false}
step_time: {linear: {a_ms: 20, b_us: 0}}
workload: {arrivals: {process: closed, users: %d}, input: {distribution: fixed, value: 100}, output: {distribution: fixed, value: 50}}
run: {requests: %d, warmup: 5s}
`, stages, 4*stages, 4*stages, 400*stages)
		// Each request has 50 iterations of 20 ms, of which 20/S ms in each stage.
		want := 4 * float64(stages) / 0.020
		if got := *s.Throughput.OutputTokensPerS; math.Abs(got-want) > 0.01*want {
			t.Errorf("%d stages: %.1f tokens/s, want %.1f", stages, got, want)
		}
		if got := *s.Latency.TPOT.Mean; math.Abs(got-20) > 1e-9 {
			t.Errorf("%d stages: a token each %v ms, want 20", stages, got)
		}
		// But for the first batches and the last ones no stage waits.
		g := s.System.GPUSeconds
		if bubble := g.Bubble; stages == 1 && bubble != nil || stages > 1 && *bubble > 0.01**g.Useful {
			t.Errorf("%d stages: bubbles of %v, useful %v", stages, *bubble, *g.Useful)
		}
	}
}

// The GPU time of a pipeline is that of all its stages, with a lifecycle too.
func TestPipelineWallTime(t *testing.T) {
	const text = `
deployment: {pipeline_parallel_size: 2}
workload: {arrivals: {process: all-at-once}, input: 500, output: 50}
slo: {ttft_p95: 20s}
run: {requests: 400, seed: 1}
%s`
	without, with := pipelineRun(t, text, "").Goodput, pipelineRun(t, text, "lifecycle: {}").Goodput
	if got, want := *with.GPUWallFraction, *without.GPUWallFraction; math.Abs(got-want) > 1e-6*want {
		t.Errorf("good requests take %v of the GPU time with a lifecycle, want %v", got, want)
	}
}

// Two GPUs as a pipeline, as tensor parallelism, and one alone. A single user has one batch: in the pipeline it takes
// as long as on one GPU, and a hop, half of the GPUs' time is a bubble, and two GPUs that share the layers are faster.
// Twice as many users in two batches use both stages: the pipeline does nearly twice what one GPU does for half of
// them. (As many users in two batches would gain little: a batch of half as many sequences reads as many weights.)
func TestPipelineBesideTensorParallel(t *testing.T) {
	run := func(users, pp, tp int) *report.Summary {
		return pipelineRun(t, `
model: llama-3.1-8b
gpu: h100-sxm
deployment: {pipeline_parallel_size: %d, tensor_parallel_size: %d}
engine: {max_num_batched_tokens: 8192, enable_prefix_caching: false}
overheads: {frontend: 0, frontend_per_token: 0, stream_per_sequence: 0}
workload: {arrivals: {process: closed, users: %d}, input: {distribution: fixed, value: 128}, output: {distribution: fixed, value: 128}}
run: {requests: %d, warmup: none}
`, pp, tp, users, 20*users)
	}
	alone, piped, shared := run(1, 1, 1), run(1, 2, 1), run(1, 1, 2)
	one, two, tensor := *alone.Latency.TPOT.Mean, *piped.Latency.TPOT.Mean, *shared.Latency.TPOT.Mean
	if two < one || two > one*1.01 {
		t.Errorf("a user alone: a token each %v ms in the pipeline, %v on one GPU", two, one)
	}
	if tensor > 0.8*one {
		t.Errorf("a user alone: a token each %v ms with tensor parallelism, %v on one GPU", tensor, one)
	}
	if a := piped.Accuracy; a.Exact || !strings.Contains(a.Scope, "none of them with pipeline stages") {
		t.Errorf("the error is said to be known: %+v", a)
	}
	g := piped.System.GPUSeconds
	if part := *g.Bubble / (*g.Bubble + *g.Useful); math.Abs(part-0.5) > 0.01 {
		t.Errorf("a user alone: bubbles are %.3f of the time, want a half", part)
	}
	many, pipedMany := run(64, 1, 1), run(128, 2, 1)
	longest, whole := longestStage(t, 64, 192)
	want := whole / longest // the last stage has the output head, so that this is less than two
	// When one batch has its prompts computed the other one waits behind them.
	if gain := *pipedMany.Throughput.OutputTokensPerS / *many.Throughput.OutputTokensPerS; want > 1.95 ||
		gain > 1.01*want || gain < 0.93*want {
		t.Errorf("64 users for each stage: the pipeline does %.3f times what one GPU does, want %.3f", gain, want)
	}
	if part := *pipedMany.System.GPUSeconds.Bubble / (*pipedMany.System.GPUSeconds.Bubble +
		*pipedMany.System.GPUSeconds.Useful); part > 0.15 {
		t.Errorf("64 users for each stage: bubbles are %.3f of the time", part)
	}
}

// longestStage is the time in the longest of two stages, and in all, of a batch that decodes so many sequences.
func longestStage(t *testing.T, sequences, context int) (longest, whole float64) {
	t.Helper()
	u, err := mustParse(t, "model: llama-3.1-8b\ngpu: h100-sxm\ndeployment: {pipeline_parallel_size: 2}").Resolve()
	if err != nil {
		t.Fatal(err)
	}
	b := model.Batch{Decodes: sequences, Context: int64(sequences * context), Emit: sequences}
	total, _, _ := u.Pools[0].Config.Timer.Span(&b)
	stages := make([]int64, u.Pools[0].Config.Stages)
	hop := model.DivideStages(u.Pools[0].Config.Timer, &b, total, stages)
	return float64(slices.Max(stages)), float64(total - hop)
}

// What does not go with several batches in flight has one, and a warning that says what it is.
func TestPipelineWithout(t *testing.T) {
	for _, c := range []struct{ with, why string }{
		{"", ""},
		{"engine: {policy: sglang}", "policy sglang"},
		{"engine: {preemption: swap, enable_prefix_caching: false}", "swap"},
		{"engine: {admission: full-length}", "full length"},
		{"engine: {speculative: {method: ngram, num_speculative_tokens: 2, acceptance: 0.5}}", "speculative"},
		{"model: mixtral-8x7b\ndeployment: {data_parallel_size: 2}", "lock step"},
		{"pools: [{name: a, role: prefill}, {name: b, role: decode}]", "prompts and answers"},
	} {
		text := c.with + "\nrun: {requests: 20}\n"
		if strings.Contains(c.with, "deployment: {") {
			text = strings.Replace(text, "deployment: {", "deployment: {pipeline_parallel_size: 2, ", 1)
		} else {
			text += "deployment: {pipeline_parallel_size: 2}\n"
		}
		s := mustRun(t, mustParse(t, text), experiments.RunOptions{Check: true}).Summary
		i := slices.IndexFunc(s.Warnings, func(w report.Warning) bool { return w.Code == "pipeline" })
		if bubble := s.System.GPUSeconds.Bubble; (bubble != nil) != (c.why == "") {
			t.Errorf("%q: bubbles are told: %v", c.with, bubble != nil)
		}
		switch {
		case c.why == "" && i >= 0:
			t.Errorf("%q: warns %q", c.with, s.Warnings[i].Text)
		case c.why != "" && (i < 0 || !strings.Contains(s.Warnings[i].Text, c.why)):
			t.Errorf("%q: warnings are %v, want one that has %q", c.with, s.Warnings, c.why)
		}
	}
}

// A fleet whose pools have different numbers of stages: the GPU time of each adds up, and that of the whole.
func TestPipelinesOfPools(t *testing.T) {
	s := pipelineRun(t, `
workload: {arrivals: {rate: 8}}
pools: [{name: a, replicas: 2, deployment: {pipeline_parallel_size: 2}}, {name: b}]
run: {requests: 2000, duration: 60s, warmup: none}
`)
	g := &s.System.GPUSeconds
	sum := 0.0
	for _, v := range []*float64{g.Useful, g.Recompute, g.CacheMiss, g.Cancelled, g.Rejected, g.Padding, g.Swap, g.Host,
		g.Bubble, g.Idle} {
		sum += *v
	}
	if want := 5 * (s.Window.EndS - s.Window.StartS); math.Abs(sum-want) > 1e-9*want {
		t.Errorf("GPU seconds add up to %v, want %v", sum, want)
	}
	for i, r := range s.Replicas {
		if piped := r.System.GPUSeconds.Bubble != nil; piped != (i < 2) ||
			len(r.System.PipelineStages) != map[bool]int{true: 2}[piped] {
			t.Errorf("replica %d: bubbles told: %v, stages %v", i, piped, r.System.PipelineStages)
		}
	}
}
