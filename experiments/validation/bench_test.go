package validation

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
)

// A run in the keys of vllm bench serve, held against the same scenario, has no errors.
func TestBenchAgreesWithItself(t *testing.T) {
	for name, text := range map[string]string{
		"open":   "workload: {arrivals: {process: poisson, rate: 6}, input: {distribution: uniform, min: 50, max: 900}, output: {distribution: uniform, min: 5, max: 90}}\nrun: {requests: 300, warmup: none}",
		"closed": "workload: {arrivals: {process: closed, users: 5}, input: {distribution: uniform, min: 50, max: 900}, output: {distribution: fixed, value: 40}}\nrun: {requests: 100, warmup: none}",
	} {
		s, err := scenario.Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		run, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(run.VLLMBench())
		if err != nil || !IsResult("r.json", data) {
			t.Fatal(err)
		}
		ref, cs, err := ReadResult("x/"+name+".json", data, s)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(context.Background(), ref, cs, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		row := r.Rows[0]
		if row.Status != Scored || len(row.Metrics) != 21 || row.Load != name || row.Model != "llama-3.1-8b" {
			t.Fatalf("%s: %s %s, %d metrics, %s", name, row.Status, row.Reason, len(row.Metrics), row.Load)
		}
		for _, m := range row.Metrics {
			if m.Error == nil || math.Abs(*m.Error) > 1e-9 {
				t.Errorf("%s: %s: %v measured, %v simulated", name, m.Metric, *m.Measured, *m.Simulated)
			}
		}
	}
}

// Runs at several loads are simulated one by one.
func TestBenchOfSeveralLoads(t *testing.T) {
	s, err := scenario.Parse("here", []byte("gpu: l40s"))
	if err != nil {
		t.Fatal(err)
	}
	const text = `{"model_id": "llama-3.1-8b", "request_rate": %d, "num_prompts": 100, "completed": 100, "total_input_tokens": 50000,
		"total_output_tokens": 5000, "mean_ttft_ms": 60, "mean_tpot_ms": 20}`
	var cases []*Case
	all := &Reference{}
	for _, rate := range []int{1, 6} {
		ref, more, err := ReadResult(fmt.Sprintf("%d.json", rate), fmt.Appendf(nil, text, rate), s)
		if err != nil {
			t.Fatal(err)
		}
		all.Rows, cases = append(all.Rows, ref.Rows...), append(cases, more...)
	}
	r, err := Run(context.Background(), all, cases, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	slow, fast := r.Rows[0].comparison("tpot_mean_ms"), r.Rows[1].comparison("tpot_mean_ms")
	if *fast.Simulated < 1.1**slow.Simulated {
		t.Errorf("TPOT is %v ms at 1 request per second and %v ms at 6", *slow.Simulated, *fast.Simulated)
	}
}

func TestBenchFillsInWhatTheScenarioLeavesOpen(t *testing.T) {
	const detailed = `{"model_id": "meta-llama/Llama-3.1-8B-Instruct", "request_rate": 2.0, "burstiness": 1.0, "max_concurrency": null, "num_prompts": 3,
		"completed": 3, "total_input_tokens": 600, "total_output_tokens": 60, "mean_ttft_ms": 20, "median_ttft_ms": 19, "p99_ttft_ms": 30,
		"mean_tpot_ms": 7, "request_throughput": 2, "input_lens": [100, 200, 300], "output_lens": [10, 20, 30], "start_times": [1000.5, 1000, 1001]}`
	s, err := scenario.Parse("here", []byte("gpu: l40s\nengine: {version: vllm-0.15}"))
	if err != nil {
		t.Fatal(err)
	}
	_, cs, err := ReadResult("r.json", []byte(detailed), s)
	if err != nil {
		t.Fatal(err)
	}
	c := cs[0]
	if got := c.setup.Scenario; got.Model != "llama-3.1-8b" || got.GPU != "l40s" || *got.Run.Requests != 3 {
		t.Errorf("%s on %s, %d requests", got.Model, got.GPU, *got.Run.Requests)
	}
	if len(c.list) != 3 || c.list[0].InputTokens != 200 || c.list[1].Arrival.Seconds() != 0.5 ||
		c.list[2].OutputTokens != 30 {
		t.Errorf("requests %+v", c.list)
	}
	for _, k := range [][2]string{
		{`"request_rate": 2.0`, `"request_rate": "inf"`},
		{`"max_concurrency": null`, `"max_concurrency": 7`},
	} {
		closed := strings.Replace(strings.Replace(detailed, `"request_rate": 2.0`, `"request_rate": "inf"`, 1), k[0],
			k[1], 1)
		_, cs, err := ReadResult("r.json", []byte(closed), s)
		if err != nil {
			t.Fatal(err)
		}
		c := cs[0]
		want := "all-at-once"
		if strings.Contains(closed, `"max_concurrency": 7`) {
			want = "closed"
		}
		if got := c.setup.Scenario.Workload.Arrivals.Stages[0].Process; got != want {
			t.Errorf("%s: %s (want %s)", k[1], got, want)
		}
	}
	for text, want := range map[string]string{
		`{"a": `:               "the JSON ends early",
		`{"request_rate": 1}`:  "no metric is known",
		`{"mean_ttft_ms": -1}`: "mean_ttft_ms: -1",
		`{"mean_ttft_ms": 5}`:  "lengths",
		`{"mean_ttft_ms": 5, "request_rate": "fast"}`: `request_rate: "fast"`,
		`{"mean_ttft_ms": 5, "request_rate": 0}`:      "request_rate: 0",
		`{"mean_ttft_ms": 5, "completed": "x"}`:       `completed: "x"`,
	} {
		if _, _, err := ReadResult("r.json", []byte(text), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v (want %q)", text, err, want)
		}
	}
}

// FuzzReadResult wants no file to make the reader panic.
func FuzzReadResult(f *testing.F) {
	s, err := scenario.Parse("here", []byte("{}"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"model_id": "llama-3.1-8b", "request_rate": "inf", "burstiness": 0.5, "max_concurrency": 4, "num_prompts": 2, "completed": 2, "total_input_tokens": 9, "total_output_tokens": 9, "mean_ttft_ms": 1}`))
	f.Add([]byte(`{"request_rate": 3, "num_prompts": 2, "mean_ttft_ms": 1, "input_lens": [1, 2], "output_lens": [1e9, 0], "start_times": [1e300, 0]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		ref, cs, err := ReadResult("r.json", data, s)
		if err == nil && (len(ref.Rows) != len(cs) || len(cs) == 0 || cs[0].setup == nil) {
			t.Error("neither a case nor an error")
		}
	})
}
