package experiments_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"clifftop/experiments"
)

// measuredRuns are open-loop runs of dense models whose configuration is documented, by the run_id of
// the reference file. Prompts of about 575 tokens (as re-tokenised by the client) cycle through 100
// distinct ones that share system prompts in groups of ten; answers have 248 tokens; vLLM's defaults
// for top-p apply to Llama and Qwen.
var measuredRuns = []struct {
	id, model, gpu string
	tp             int
	sampling       string
}{
	{"s2r-exp13-s0", "qwen3-14b", "h100-sxm", 1, "top_p"},
	{"s2r-exp13-s1", "qwen3-14b", "h100-sxm", 1, "top_p"},
	{"s2r-exp14-s0", "qwen3-14b", "h100-sxm", 1, "top_p"},
	{"s2r-exp14-s1", "qwen3-14b", "h100-sxm", 1, "top_p"},
	{"s2r-exp16-s0", "llama-3.1-8b", "h100-sxm", 1, "top_p"},
	{"s2r-exp16-s1", "llama-3.1-8b", "h100-sxm", 1, "top_p"},
	{"s2r-exp18-s0", "llama-3.1-8b", "h100-sxm", 1, "top_p"},
	{"s2r-exp18-s1", "llama-3.1-8b", "h100-sxm", 1, "top_p"},
	{"s2r-exp38-s0", "llama-3.1-8b", "a100-80gb-sxm", 1, "top_p"},
	{"s2r-exp38-s1", "llama-3.1-8b", "a100-80gb-sxm", 1, "top_p"},
	{"s2r-exp40-s0", "codellama-34b", "a100-80gb-sxm", 2, "greedy"},
	{"s2r-exp55-s0", "llama-3.1-8b", "l40s", 1, "top_p"},
	{"s2r-exp61-s0", "llama-3.1-70b", "h100-sxm", 4, "top_p"},
	{"s2r-exp61-s1", "llama-3.1-70b", "h100-sxm", 4, "top_p"},
	{"s2r-exp63-s0", "mistral-nemo-12b", "h100-sxm", 1, "greedy"},
	{"s2r-exp63-s1", "mistral-nemo-12b", "h100-sxm", 1, "greedy"},
}

// TestMeasuredRuns holds simulated runs against measured ones: each within 12 % of the mean TPOT and the
// mean TTFT, half of them within 5 %.
func TestMeasuredRuns(t *testing.T) {
	name := os.Getenv("CLIFFTOP_REFERENCE")
	if name == "" {
		t.Skip("CLIFFTOP_REFERENCE does not name a file of measured runs")
	}
	rows := readReference(t, name)
	var ttfts, tpots []float64
	for _, m := range measuredRuns {
		row := rows[m.id]
		if row == nil {
			t.Errorf("%s: no such run in %s", m.id, name)
			continue
		}
		s, err := experiments.Parse(m.id, fmt.Appendf(nil, `
model: %s
gpu: %s
deployment: {tensor_parallel_size: %d}
engine: {version: vllm-0.15, max_num_seqs: 128, max_num_batched_tokens: 2048, max_model_len: 4096, gpu_memory_utilization: 0.9}
workload:
  arrivals: {process: poisson, rate: %s}
  input: {distribution: fixed, value: 575}
  output: {distribution: fixed, value: %s}
  prefix: {groups: 10, prompts_per_group: 10, shared_tokens: 100}
  sampling: %s
run: {duration: %ss, warmup: none}
`, m.model, m.gpu, m.tp, row["rate_rps"], row["output_tokens_nominal"], m.sampling, row["duration_s"]))
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ttft := *r.Summary.Latency.TTFT.Mean/number(t, row, "ttft_mean_ms") - 1
		tpot := *r.Summary.Latency.TPOT.Mean/number(t, row, "tpot_mean_nominal_ms") - 1
		t.Logf("%-13s %-17s %-14s %5s/s  TTFT %6.1f ms (%+5.1f %%)  TPOT %6.2f ms (%+5.1f %%)", m.id, m.model, m.gpu, row["rate_rps"],
			*r.Summary.Latency.TTFT.Mean, 100*ttft, *r.Summary.Latency.TPOT.Mean, 100*tpot)
		if math.Abs(ttft) > 0.12 || math.Abs(tpot) > 0.12 {
			t.Errorf("%s: TTFT off by %.1f %%, TPOT by %.1f %%", m.id, 100*ttft, 100*tpot)
		}
		ttfts, tpots = append(ttfts, math.Abs(ttft)), append(tpots, math.Abs(tpot))
	}
	for what, errs := range map[string][]float64{"TTFT": ttfts, "TPOT": tpots} {
		slices.Sort(errs)
		median := errs[len(errs)/2]
		t.Logf("%s: median error %.1f %%, largest %.1f %%", what, 100*median, 100*errs[len(errs)-1])
		if median > 0.05 {
			t.Errorf("%s: median error %.1f %%", what, 100*median)
		}
	}
}

func readReference(t *testing.T, name string) map[string]map[string]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]map[string]string{}
	for _, line := range all[1:] {
		row := map[string]string{}
		for i, key := range all[0] {
			row[key] = line[i]
		}
		rows[row["run_id"]] = row
	}
	return rows
}

func number(t *testing.T, row map[string]string, key string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(row[key], 64)
	if err != nil {
		t.Fatalf("%s: %s: %v", row["run_id"], key, err)
	}
	return v
}
