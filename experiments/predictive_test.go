package experiments_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report"
)

func predictive(t *testing.T, keys string) *report.Predictive {
	t.Helper()
	s, err := scenario.Parse("s.yaml", []byte(keys))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return u.Predictive()
}

// TestPredictiveOfKinds wants the bars of the kind, wider for what no measured run has.
func TestPredictiveOfKinds(t *testing.T) {
	exact := predictive(t, "{gpu: h100-sxm}")
	if exact.Kind != "vllm, open loop, dense" || len(exact.Widened) > 0 || exact.Throughput != nil || exact.Cells < 9 {
		t.Fatalf("%+v", exact)
	}
	width := func(p *report.Predictive) float64 { return p.TPOTMean.P90[1] - p.TPOTMean.P90[0] }
	last := width(exact)
	for _, c := range []struct {
		keys    string
		widened []string
	}{
		{"{gpu: gh200-96}", []string{"gh200-96"}},
		{"{gpu: gh200-96, deployment: {replicas: 2}}", []string{"gh200-96", "several replicas"}},
		{"{gpu: gh200-96, deployment: {replicas: 2}, engine: {speculative: {method: mtp, num_speculative_tokens: 2, " +
			"acceptance: 0.6}}}", []string{"gh200-96", "drafts", "several replicas"}},
	} {
		p := predictive(t, c.keys)
		if !slices.Equal(p.Widened, c.widened) || width(p) <= last {
			t.Errorf("%s: %q, width %v after %v", c.keys, p.Widened, width(p), last)
		}
		last = width(p)
	}
	closed := predictive(t, "{gpu: h100-sxm, workload: {arrivals: {process: closed, users: 2}}}")
	if closed.Kind != "vllm, closed loop, dense" || closed.Throughput == nil {
		t.Errorf("%+v", closed)
	}
	if p := predictive(t, "{step_time: roofline}"); p != nil {
		t.Errorf("a roofline has %+v", p)
	}
}

// TestOwnRunsInResults wants own runs of the same kind, and no others, to move the bars of a run.
func TestOwnRunsInResults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.yaml")
	text := "clifftop: " + experiments.Version + "\nkinds:\n- engine: vllm\n  load: open\n  gpus: [gh200-96]\n  runs: 3\n" +
		"  errors: {tpot_mean: [0.5, 0.5, 0.5]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	on := predictive(t, "{gpu: gh200-96, accuracy: "+file+"}")
	if len(on.Widened) > 0 {
		t.Errorf("own runs on the GPU, but widened because of %q", on.Widened)
	}
	keys := func(more string) string { return "{accuracy: " + file + ", run: {requests: 50}" + more + "}" }
	p := predictive(t, keys(""))
	if p.OwnRuns != 3 || p.TPOTMean.P90[1] < 0.49 {
		t.Errorf("%+v, bars of TPOT %v", p, *p.TPOTMean)
	}
	other := predictive(t, keys(", workload: {arrivals: {process: closed, users: 2}}"))
	if other.OwnRuns != 0 || other.TPOTMean.P90[1] > 0.49 {
		t.Errorf("own runs of an open loop in a closed one: %+v", other)
	}
	s, err := scenario.Parse("s.yaml", []byte(keys("")))
	if err != nil {
		t.Fatal(err)
	}
	r, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Summary.Predictive.String(); !strings.HasSuffix(got, "validated by 3 runs of yours)") {
		t.Errorf("%q", got)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	with, err := experiments.CacheKey(u)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "0.5", "0.6")), 0o600); err != nil {
		t.Fatal(err)
	}
	if u, err = s.Resolve(); err != nil {
		t.Fatal(err)
	}
	if after, err := experiments.CacheKey(u); err != nil || after == with {
		t.Errorf("the key of a cached result does not depend on the content of the file: %v", err)
	}
}
