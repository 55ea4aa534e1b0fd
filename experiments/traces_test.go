package experiments_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/sweep"
	"clifftop/internal/testenv"
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
