package compare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/traces"
	"clifftop/internal/testenv"
	"clifftop/report/verdict"
)

// queueOf is a server for two requests at a time; its traffic is to follow.
const queueOf = "step_time: {linear: {a_ms: %g, b_us: 0}}\nengine: {max_num_seqs: 2, enable_prefix_caching: false}\n" +
	"slo: {e2e_p95: 3s}\n"

// served is its traffic: two thirds of what the slow server carries.
const served = "workload: {arrivals: {process: poisson, rate: 1.2}, input: 100, " +
	"output: {distribution: gamma, mean: 100, cv: 1}}\nrun: {requests: %d, seed: %d}\n"

// traceOf writes the traffic of a seed as a trace.
func traceOf(t *testing.T, seed int) string {
	t.Helper()
	s, err := scenario.Parse("traffic", fmt.Appendf(nil, served, 3000, seed))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "trace.csv")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := traces.Generate(context.Background(), u, f, false); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// onTrace compares two servers on a trace.
func onTrace(t *testing.T, path string, fast, slow float64) *verdict.Result {
	t.Helper()
	const served = "workload: {trace: {file: %q}}\nrun: {warmup: none}\n"
	return compareTexts(t, fmt.Sprintf(queueOf+served, fast, path), fmt.Sprintf(queueOf+served, slow, path))
}

// compareTexts compares scenarios, the first of which is the baseline.
func compareTexts(t *testing.T, texts ...string) *verdict.Result {
	t.Helper()
	var variants []Variant
	for i, text := range texts {
		s, err := scenario.Parse("server", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		variants = append(variants, Variant{Name: fmt.Sprint(i), Scenario: s})
	}
	v, err := Run(context.Background(), variants, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestBootstrapCoverage counts how often the interval of one trace holds the difference that long runs have: of 200
// traces of 3,000 requests, 88 % of the intervals of the mean E2E, 86 % of its p95 and 94 % of goodput hold it.
func TestBootstrapCoverage(t *testing.T) {
	n := testenv.Choose(3, 200)
	const fast, slow = 10, 11
	paths := []string{"latency_ms.e2e.mean", "latency_ms.e2e.p95", "goodput.requests_per_s"}
	truth := map[string]float64{}
	for i, step := range []float64{fast, slow} {
		s, err := scenario.Parse("long", fmt.Appendf(nil, queueOf+served, step, testenv.Choose(150_000, 3_000_000), 99))
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		sign := float64(2*i - 1)
		truth[paths[0]] += sign * *r.Summary.Latency.E2E.Mean
		truth[paths[1]] += sign * *r.Summary.Latency.E2E.P95
		truth[paths[2]] += sign * *r.Summary.Goodput.RequestsPerS
	}
	held := map[string]int{}
	for k := range n {
		v := onTrace(t, traceOf(t, 1+k), fast, slow)
		if b := v.Bootstrap; b == nil || b.Blocks < 20 || b.Resamples != experiments.Resamples {
			t.Fatalf("there is no bootstrap: %v", v.Warnings)
		}
		for _, d := range v.Variants[0].Metrics {
			if want, ok := truth[d.Path]; ok && d.CI95 != nil && d.CI95[0] <= want && want <= d.CI95[1] {
				held[d.Path]++
			}
		}
	}
	for _, path := range paths {
		share := float64(held[path]) / float64(n)
		t.Logf("%s: %d of %d intervals (%.1f %%) hold %.5g", path, held[path], n, 100*share, truth[path])
		if share < testenv.Choose(.5, .8) {
			t.Errorf("%s: %.1f %% of the intervals hold the difference", path, 100*share)
		}
	}
}

// TestBootstrapOfEquals compares two servers on a trace whose routers draw other random numbers: they differ by chance
// alone. Of 100 traces, verdicts by chance are as rare as the intervals are wide enough.
func TestBootstrapOfEquals(t *testing.T) {
	n := testenv.Choose(2, 100)
	counted, wrong := map[string]int{}, map[string]int{}
	for k := range n {
		path := traceOf(t, 501+k)
		var texts []string
		for seed := range 2 {
			texts = append(texts, fmt.Sprintf(queueOf+"deployment: {replicas: 2, router: random}\n"+
				"workload: {trace: {file: %q, speedup: 2}}\nrun: {warmup: none, seed: %d}\n", 10., path, 1+seed))
		}
		v := compareTexts(t, texts...)
		for _, d := range v.Variants[0].Metrics {
			if d.CI95 == nil || *d.Difference == 0 {
				continue
			}
			counted[d.Path]++
			if d.Verdict == verdict.Pass || d.Verdict == verdict.Fail {
				wrong[d.Path]++
			}
		}
	}
	for _, path := range []string{"latency_ms.e2e.mean", "latency_ms.e2e.p95", "goodput.requests_per_s"} {
		t.Logf("%s: %d verdicts of %d are by chance", path, wrong[path], counted[path])
		if counted[path] < n*9/10 || float64(wrong[path]) > testenv.Choose(.5, .15)*float64(n) {
			t.Errorf("%s: %d verdicts of %d on equal servers", path, wrong[path], counted[path])
		}
	}
}

// TestBootstrapVerdicts: the same server twice is not told apart, a much slower one fails, and a short trace is said to
// be too short.
func TestBootstrapVerdicts(t *testing.T) {
	path := traceOf(t, 5)
	for _, d := range onTrace(t, path, 10, 10).Variants[0].Metrics {
		if d.Verdict == verdict.Pass || d.Verdict == verdict.Fail {
			t.Errorf("%s of the same server: %s, %v", d.Path, d.Verdict, d.CI95)
		}
	}
	if v := onTrace(t, path, 10, 13); v.Pass || len(v.Seeds) != 1 {
		t.Errorf("a slower server passes: %+v", v.Variants[0].Criteria)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	if err := os.WriteFile(path, []byte(strings.Join(lines[:25], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	v := onTrace(t, path, 10, 13)
	if v.Bootstrap == nil || v.Bootstrap.Resamples != 0 || !strings.Contains(v.Warnings[0].Text, "too few for intervals") {
		t.Errorf("a short trace: %v", v.Warnings)
	}
}
