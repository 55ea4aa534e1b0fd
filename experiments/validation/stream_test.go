package validation

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"clifftop/internal/testenv"
)

// TestMeasuredStreamGaps compares the time between chunks, in units of the TPOT, with runs of DeepSeek-R1 under SGLang
// and TensorRT-LLM that send 10 or 30 tokens at once. Nothing was fitted to these gaps.
func TestMeasuredStreamGaps(t *testing.T) {
	testenv.NeedsLong(t, "about 140 runs")
	ref, err := open(testenv.Reference(t, "inferencex-dsr1.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows := ref.Rows[:0]
	for _, r := range ref.Rows {
		if or(r.StreamInterval, 1) > 1 && or(r.Concurrency, 0) <= 16 && strings.Contains(r.ID, "1024x") {
			rows = append(rows, r)
		}
	}
	ref.Rows = rows
	report, err := Run(context.Background(), ref, Plan(ref), nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var errors []float64
	for i := range report.Rows {
		gap, token := report.Rows[i].comparison("itl_p50_ms"), report.Rows[i].comparison("tpot_p50_ms")
		if token == nil {
			token = report.Rows[i].comparison("tpot_mean_ms")
		}
		if gap != nil && token != nil && gap.Simulated != nil && token.Simulated != nil {
			ratio := *gap.Simulated / *token.Simulated / (*gap.Measured / *token.Measured)
			errors = append(errors, math.Abs(ratio-1))
		}
	}
	if len(errors) < 100 {
		t.Fatalf("%d runs have gaps and a TPOT, want 100 or more", len(errors))
	}
	slices.Sort(errors)
	half, most := errors[len(errors)/2], errors[len(errors)*9/10]
	t.Logf("%d runs: half within %.1f %%, 90 %% within %.1f %%", len(errors), 100*half, 100*most)
	if half > 0.03 || most > 0.10 {
		t.Errorf("half within %.1f %%, 90 %% within %.1f %% (want 3 and 10)", 100*half, 100*most)
	}
}
