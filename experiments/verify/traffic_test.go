package verify_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clifftop/experiments/measured"
	"clifftop/experiments/scenario"
	"clifftop/experiments/verify"
)

const (
	openRun = `{"request_rate": 4, "completed": 200, "num_prompts": 200, "total_input_tokens": 204800,
"total_output_tokens": 40000, "duration": 50, "mean_ttft_ms": 60, "mean_tpot_ms": 8}`
	closedRun = `{"request_rate": "inf", "max_concurrency": 16, "completed": 200, "num_prompts": 200, "total_input_tokens": 204800,
"total_output_tokens": 40000, "duration": 50, "mean_ttft_ms": 60, "mean_tpot_ms": 8}`
)

// TestContradictions refuses runs whose traffic is not that of the scenario, in one line, and takes those that agree.
func TestContradictions(t *testing.T) {
	dir := t.TempDir()
	var trace strings.Builder
	trace.WriteString("arrived_at,num_prefill_tokens,num_decode_tokens\n")
	for i := range 100 {
		trace.WriteString(strings.Replace("AT.0,300,200\n", "AT", string(rune('0'+i/10))+string(rune('0'+i%10)), 1))
	}
	if err := os.WriteFile(filepath.Join(dir, "t.csv"), []byte(trace.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ workload, result, want string }{
		{"arrivals: {users: 16}", closedRun, ""},
		{"arrivals: {users: 8}", closedRun, "arrivals: a closed loop of 8 users, but r.json measured a closed loop of 16 users"},
		{"arrivals: {users: 8}", openRun, "a closed loop of 8 users, but r.json measured an open loop of 4 requests per second"},
		{"arrivals: {process: poisson, rate: 4}", closedRun,
			"an open loop of 4 requests per second, but r.json measured a closed loop of 16 users"},
		{"arrivals: {process: all-at-once}", openRun, "all requests at once, but r.json measured an open loop"},
		{"arrivals: {process: poisson, rate: 4}", openRun, ""},
		{"preset: code-azure23", openRun, "workload.preset: the prompts have"},
		{"input: {distribution: lognormal, mean: 8000, cv: 0.5}", openRun,
			"workload.input: the prompts have 8000 tokens in the mean, but r.json measured 1024"},
		{"input: {distribution: lognormal, mean: 1100, cv: 0.5}", openRun, ""},
		{"output: {distribution: geometric, mean: 20}", openRun, "workload.output: the outputs have 20 tokens in the mean"},
		{"trace: {file: t.csv}", openRun, "workload.trace: the prompts have 300 tokens in the mean, but r.json measured 1024"},
	} {
		path := filepath.Join(dir, "scenario.yaml")
		yaml := "model: llama-3.1-8b\ngpu: h100\nworkload: {" + c.workload + "}\n"
		if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := scenario.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := measured.Read("r.json", []byte(c.result))
		if err != nil {
			t.Fatal(err)
		}
		_, err = verify.New(context.Background(), s, []*measured.Result{m}, verify.Options{NoCauses: true})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.workload, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v, want %q", c.workload, err, c.want)
		}
	}
}
