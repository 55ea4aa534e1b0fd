package calibration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/validation"
	"clifftop/model"
	"clifftop/model/catalog"
	"clifftop/sim/engine"
)

// slower is a machine with slower memory and a larger step overhead than in the catalog.
func slower() *catalog.CalibratedRecord {
	r := &catalog.CalibratedRecord{Name: "slower", Base: "a100-80gb-sxm"}
	memory, compute, step := 0.85, 0.9, 0.6
	r.Calibration.GEMMMemory, r.Calibration.GEMMCompute, r.Calibration.StepMilliseconds = &memory, &compute, &step
	return r
}

func resolve(t *testing.T, text string) *scenario.Setup {
	t.Helper()
	s, err := scenario.Parse("s.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestSteps recovers the constants of a machine from its simulated iterations.
func TestSteps(t *testing.T) {
	u := resolve(t, "{model: llama-3.1-8b, gpu: a100-80gb-sxm}")
	own := *u.Pools[0].Deployment
	slower().Correct(&own.GPU)
	timer, err := model.NewKernels(&own, u.Pools[0].KernelOptions())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("decode_seqs,sum_context,prefill_tokens,prefill_cached,seconds\n")
	for _, decodes := range []int{1, 4, 16, 64, 128} {
		for _, chunk := range []int32{0, 256, 2048, 8000} {
			batch := model.Batch{Decodes: decodes, Context: int64(700 * decodes), Emit: decodes}
			if chunk > 0 {
				batch.Chunks, batch.Emit = []model.Chunk{{New: chunk}}, decodes+1
			}
			first, _, _ := timer.Span(&batch)
			fmt.Fprintf(&b, "%d,%d,%d,0,%.9f\n", decodes, 700*decodes, chunk, float64(first)/1e15)
		}
	}
	steps, err := model.ReadIterations("steps.csv", strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	r, err := FitIterations(context.Background(), "steps.csv", u, steps,
		Options{Fit: []string{"gemm_memory", "gemm_compute", "step_ms"}})
	if err != nil {
		t.Fatal(err)
	}
	// All iterations of a model read the same weights, so that bandwidth and step overhead can replace each other: the
	// overhead is not identified, and the interval of the bandwidth is wide. Compute is separate.
	for i, c := range []struct{ want, near float64 }{{0.85, 0.05}, {0.9, 0.01}} {
		p := r.Parameters[i]
		if math.Abs(p.Value-c.want) > c.near || !p.Identified || !(*p.Low < c.want && c.want < *p.High) {
			t.Errorf("%s is %.3f (%.3f to %.3f), want %v", p.Name, p.Value, *p.Low, *p.High, c.want)
		}
	}
	if p := r.Parameters[2]; p.Name != "step_ms" || p.Identified || p.Value != 0 || p.Low != nil || p.High != nil {
		t.Errorf("%+v, want a constant that is not identified", p)
	}
	if e := r.Errors[0]; e.Before.Median < 0.05 || e.After.Median > 0.005 || e.LeftOut.Median > 0.01 ||
		e.N != len(steps) {
		t.Errorf("errors %+v", e)
	}
}

// reference returns runs of the slower machine at a few loads, as measured runs.
func reference(t *testing.T) *validation.Reference {
	t.Helper()
	var b strings.Builder
	b.WriteString("run_id,engine,engine_version,model,gpu,load_mode,rate_rps,duration_s,n_requests,input_token_spec,output_token_spec,input_tokens_mean,output_tokens_nominal,ttft_mean_ms,tpot_mean_ms\n")
	for i, rate := range []float64{0.5, 2, 4} {
		u := resolve(t, fmt.Sprintf(`
model: llama-3.1-8b
gpu: a100-80gb-sxm
engine: {version: vllm-0.15}
overheads: {frontend: 7ms}
workload:
  arrivals: {process: poisson, rate: %v}
  input: {distribution: fixed, value: 600}
  output: {distribution: fixed, value: 100}
run: {requests: 300}
`, rate))
		own := *u.Pools[0].Deployment
		slower().Correct(&own.GPU)
		timer, err := model.NewKernels(&own, u.Pools[0].KernelOptions())
		if err != nil {
			t.Fatal(err)
		}
		u = u.Configured(func(c *engine.Config) { c.Timer = timer })
		res, err := experiments.RunSetup(context.Background(), u, experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l := res.Summary.Latency
		fmt.Fprintf(&b, "run%d,vllm,0.15.1,llama-3.1-8b,A100-80GB,open,%v,%v,300,fixed 600,fixed 100,600,100,%.4f,%.4f\n", i, rate, 300/rate, *l.TTFT.Mean, *l.TPOT.Mean)
	}
	ref, err := validation.Read("ref.csv", strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// TestRuns fits runs of the slower machine. The errors become small, also for runs left out of the fit, and the record
// can be read back.
func TestRuns(t *testing.T) {
	ref := reference(t)
	r, err := FitRuns(context.Background(), ref, validation.Plan(ref), nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Errors {
		if e.N != 3 || e.Before.Median < 0.08 || e.After.Median > 0.03 || e.LeftOut.Median > 0.06 {
			t.Errorf("errors %+v", e)
		}
	}
	var b bytes.Buffer
	if err := r.WriteRecord(&b, "mine"); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Parameters {
		if want := map[string]float64{"gemm_memory": 0.85, "gemm_compute": 0.9, "step_ms": 0.6}[p.Name]; p.Identified &&
			want > 0 && !(*p.Low < want && want < *p.High) {
			t.Errorf("%s is %.3f to %.3f, want %v within", p.Name, *p.Low, *p.High, want)
		}
	}
	if !r.Calibrated || r.Runs != 3 || !strings.Contains(b.String(), "not_identified:") {
		t.Errorf("3 runs of 6 numbers: %d, calibrated %t, record\n%s", r.Runs, r.Calibrated, b.String())
	}
	g, err := catalog.ReadGPU("mine.yaml", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	base, err := catalog.GPU("a100-80gb-sxm")
	if err != nil {
		t.Fatal(err)
	}
	if g.Name != "mine" || g.Kernels.GEMM[model.BF16].Memory >= base.Kernels.GEMM[model.BF16].Memory ||
		!g.Own.Validates() || g.Own.TPOT == nil || g.Calibrated != model.Calibrated {
		t.Errorf("%s: memory %v, frontend %v", g.Name, g.Kernels.GEMM[model.BF16].Memory, g.FrontendSeconds)
	}
}

// benchFile simulates the slower machine at a rate, and returns its result as vllm bench serve writes it.
func benchFile(t *testing.T, rate float64) []byte {
	t.Helper()
	u := resolve(t, fmt.Sprintf(`
model: llama-3.1-8b
gpu: a100-80gb-sxm
workload: {arrivals: {process: poisson, rate: %v}, input: 600, output: 100}
run: {requests: 300, warmup: none}
`, rate))
	own := *u.Pools[0].Deployment
	slower().Correct(&own.GPU)
	timer, err := model.NewKernels(&own, u.Pools[0].KernelOptions())
	if err != nil {
		t.Fatal(err)
	}
	u = u.Configured(func(c *engine.Config) { c.Timer = timer })
	res, err := experiments.RunSetup(context.Background(), u, experiments.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(res.VLLMBench())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestBenchFiles fits results of vllm bench of the slower machine. The interval of each identified constant holds the
// truth. The overloaded run is not used, and the record names the model.
func TestBenchFiles(t *testing.T) {
	s, err := scenario.Parse("s.yaml", []byte("gpu: a100-80gb-sxm"))
	if err != nil {
		t.Fatal(err)
	}
	all := &validation.Reference{Name: "results"}
	var cases []*validation.Case
	for _, rate := range []float64{0.5, 2, 4, 6, 8, 500} {
		ref, more, err := validation.ReadResult(fmt.Sprintf("rate-%v.json", rate), benchFile(t, rate), s)
		if err != nil {
			t.Fatal(err)
		}
		all.Rows, cases = append(all.Rows, ref.Rows...), append(cases, more...)
	}
	r, err := FitRuns(context.Background(), all, cases, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Source != "5 of 6 runs of results" || len(r.Skipped) != 1 ||
		r.Skipped[0] != (Skipped{Run: "rate-500", Reason: overloaded}) {
		t.Errorf("source %q, not used %+v", r.Source, r.Skipped)
	}
	truth := map[string]float64{"gemm_compute": 0.9, "gemm_memory": 0.85, "attention_compute": 1, "attention_memory": 1,
		"step_ms": 0.6, "per_sequence_us": 0}
	identified := 0
	for _, p := range r.Parameters {
		if want, known := truth[p.Name]; known && p.Identified {
			identified++
			if !(*p.Low < want && want < *p.High) {
				t.Errorf("%s is %.3f (%.3f to %.3f), want %v within", p.Name, p.Value, *p.Low, *p.High, want)
			}
		}
	}
	if e := r.Errors[1]; identified == 0 || e.Metric != "tpot_mean_ms" || e.Before.Median < 0.08 || e.After.Median > 0.01 {
		t.Errorf("%d constants identified, errors %+v", identified, r.Errors)
	}
	if e := r.record.Evidence; len(e.Models) != 1 || e.Models[0] != "llama-3.1-8b" || e.Runs != 5 {
		t.Errorf("evidence %+v", e)
	}
	var b strings.Builder
	if err := r.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nconstant,gemm_memory,,×,1.000000,0.8", ",not identified\n", "\nerror,rate-2,ttft_mean_ms,",
		"\nnot used,rate-500,,,,,,,," + overloaded + "\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestBadSteps asserts that errors name the line, what was found and what is wanted.
func TestBadSteps(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"decode_seqs,sum_context,seconds\n1,2,3\n", "s.csv:1: column prefill_tokens is missing"},
		{"decode_seqs,sum_context,prefill_tokens,seconds\n1,100,0,0.01\nx,100,0,0.01\n", `s.csv:3: decode_seqs is "x"`},
		{"decode_seqs,sum_context,prefill_tokens,seconds\n1,100,0,0\n", "s.csv:2: impossible iteration"},
		{"decode_seqs,sum_context,prefill_tokens,seconds\n1,100,0,1\n", "s.csv: 1 iterations are too few"},
		{"", "s.csv: the header cannot be read"},
	} {
		if _, err := model.ReadIterations("s.csv", strings.NewReader(c.text)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// TestChoose rejects constants that the measurements cannot determine.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		names     []string
		moe, runs bool
		want      string
	}{
		{[]string{"magic"}, true, true, `"magic" is not known`},
		{[]string{"moe_compute"}, false, true, "moe_compute cannot be determined"},
		{[]string{"frontend_ms"}, true, false, "frontend_ms cannot be determined"},
	} {
		if _, err := choose(c.names, c.moe, c.runs); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.names, err, c.want)
		}
	}
	if all, err := choose(nil, true, true); err != nil || len(all) != len(Parameters()) {
		t.Errorf("%d parameters, %v", len(all), err)
	}
}
