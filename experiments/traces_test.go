package experiments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/sweep"
	"clifftop/internal/testenv"
	"clifftop/report"
)

// TestPublicTracesRun: the public traces go through a run and a sweep.
func TestPublicTracesRun(t *testing.T) {
	dir := testenv.Traces(t)
	for _, c := range []struct {
		file, keys string
		offered    int64
	}{
		{"AzureLLMInferenceTrace_code.csv.gz", "limit: 1000", 1000},
		{"mooncake_fast25_synthetic_trace.jsonl.gz", "from: 10m, to: 10m30s", 0},
		{"mooncake_fast25_conversation_trace.jsonl.gz", "rate: 0.3, limit: 100", 100},
		{"vidur_arxiv_summarization.csv.gz", "rate: 2, limit: 200", 200},
		{"servegen-deepseek-r1", "limit: 200", 200},
		{"llmservingsim_example_trace.jsonl", "loop: 3", 30},
		{"fixtures/burstgpt_v1_format_synthetic.csv.gz", "", 0},
		{"fixtures/qwen_bailian_format_synthetic.jsonl", "", 0},
		{"fixtures/azure2025_lmm_format_synthetic.csv.gz", "classes: [image]", 0},
	} {
		s, err := scenario.Parse("recorded",
			fmt.Appendf(nil, "workload: {trace: {file: %q, %s}}\n", filepath.Join(dir, c.file), c.keys))
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		n := r.Summary.Requests
		if n.Completed+n.Rejected != n.Offered || n.Completed == 0 || c.offered > 0 && n.Offered != c.offered {
			t.Errorf("%s: %+v, want %d offered", c.file, n, c.offered)
		}
	}
	// A trace without times is swept over the rates that make its arrivals.
	text := fmt.Sprintf("workload: {trace: {file: %q, rate: 1, limit: 150}}\n",
		filepath.Join(dir, "vidur_arxiv_summarization.csv.gz"))
	s, err := scenario.Parse("recorded", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	curve, err := sweep.Run(context.Background(), s, sweep.Options{Over: "rate", Values: []string{"1", "2"}})
	if err != nil || len(curve.Points) != 2 {
		t.Errorf("sweep of a trace without times: %v", err)
	}
}

// TestResolvedTraceRunsAgain: the scenario of a result is a scenario, though it also sums up the trace.
func TestResolvedTraceRunsAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.csv")
	rows := "arrival_s,input_tokens,output_tokens\n0,100,20\n0.4,300,30\n1.5,200,10\n2,250,40\n"
	if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	text := fmt.Appendf(nil, "workload: {trace: {file: %q, scale: 0.7, speedup: 0.5, loop: 9}}\n", file)
	run := func(text []byte) (*report.Summary, []byte) {
		t.Helper()
		s, err := scenario.Parse("recorded", text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		resolved, err := json.Marshal(r.Summary.Scenario)
		if err != nil {
			t.Fatal(err)
		}
		return r.Summary, resolved
	}
	first, resolved := run(text)
	if !bytes.Contains(resolved, []byte(`"statistics":{"rows":4,`)) {
		t.Errorf("the trace is not summed up in %s", resolved)
	}
	second, again := run(resolved)
	if !bytes.Equal(resolved, again) {
		t.Errorf("resolved twice:\n%s\n%s", resolved, again)
	}
	first.Scenario, second.Scenario, first.EngineDefaults = nil, nil, "" // the resolved scenario names all knobs
	a, _ := json.Marshal(first)
	if b, err := json.Marshal(second); err != nil || !bytes.Equal(a, b) {
		t.Errorf("a run of the resolved scenario differs:\n%s\n%s", a, b)
	}
}
