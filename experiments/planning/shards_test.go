package planning_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/grid"
	"clifftop/experiments/planning"
	"clifftop/internal/testenv"
	"clifftop/report/plan"
)

// task searches a part of a scenario's candidates and keeps the runs in dir.
func task(t *testing.T, text string, k, n int, resume bool, dir string) experiments.Tally {
	t.Helper()
	g, err := planning.Divide(context.Background(), parse(t, text), planning.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := grid.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	tally, err := g.Run(context.Background(),
		experiments.Part{Store: store, Shard: grid.Shard{Index: k, Count: n}, Resume: resume})
	if err != nil {
		t.Fatal(err)
	}
	return tally
}

func merge(t *testing.T, dirs ...string) (*plan.Result, error) {
	t.Helper()
	runs, err := grid.Join(dirs)
	if err != nil {
		t.Fatal(err)
	}
	return planning.Merge(context.Background(), runs, planning.Options{})
}

func bytesOf(t *testing.T, p *plan.Result) string {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// divided has runs that take little time.
const divided = `
step_time: roofline
workload: {arrivals: {process: poisson, rate: 30}, input: {distribution: fixed, value: 900}, output: {distribution: fixed, value: 60}}
slo: {ttft_p90: 900ms}
plan: {gpus: [h100-sxm, l40s], dtypes: [auto, fp8], tensor_parallel_sizes: [1]}
`

// staffing asks for seats, which a search with replications finds.
const staffing = `
step_time: {linear: {a_ms: 1, b_us: 0}}
workload: {arrivals: {process: poisson, rate: 0.5}, input: {distribution: fixed, value: 1}, output: {distribution: gamma, mean: 1000, cv: 1}}
slo: {wait_probability: 0.1}
plan: {fewest: max_num_seqs}
`

// Tasks that divide a plan come to what one process gives, to the byte; the last one completes it.
func TestShardsOfAPlan(t *testing.T) {
	for text, counts := range testenv.Choose(map[string][]int{divided: {3}},
		map[string][]int{divided: {1, 3, 7}, staffing: {2}}) {
		want := bytesOf(t, planned(t, text))
		for _, n := range counts {
			dir := t.TempDir()
			order := slices.Repeat([]int{0}, n)
			for k := range order {
				order[k] = n - 1 - k // out of order
			}
			searched := 0
			for i, k := range order {
				tally := task(t, text, k, n, false, dir)
				searched += tally.Searched
				if text == divided && tally.Complete != (i == n-1) {
					t.Errorf("task %d of %d: complete is %v", i, n, tally.Complete)
				}
				if i == n-1 && searched != tally.Candidates {
					t.Errorf("%d of %d candidates were searched", searched, tally.Candidates)
				}
			}
			p, err := merge(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			if bytesOf(t, p) != want {
				t.Errorf("%d shards give another plan", n)
			}
		}
	}
}

// A task that was killed leaves runs that are missing: they are named, and made again, and nothing else is.
func TestLostShardOfAPlan(t *testing.T) {
	want := bytesOf(t, planned(t, divided))
	dir := t.TempDir()
	task(t, divided, 0, 3, true, dir)
	task(t, divided, 1, 3, true, dir)
	p, err := merge(t, dir)
	var missing *planning.MissingError
	if !errors.As(err, &missing) || missing.Of != 4 || len(missing.Labels) != 1 ||
		!strings.Contains(err.Error(), "runs of 1 of 4 candidates are missing: h100-sxm fp8 at 35.29 requests/s") {
		t.Fatalf("a merge without the last shard: %v", err)
	}
	if !p.Partial || len(p.Candidates) == 0 {
		t.Errorf("what is there is no partial plan: %+v", p)
	}
	if tally := task(t, divided, 2, 3, true, dir); tally.There != 0 || !tally.Complete {
		t.Errorf("the last shard: %+v", tally)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(names) < 15 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	lost := 0
	for i, name := range names {
		if i%5 == 0 && filepath.Base(name) != "manifest.json" {
			lost++
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := merge(t, dir); !errors.As(err, &missing) {
		t.Errorf("the error is %v", err)
	}
	if tally := task(t, divided, 0, 1, true, dir); tally.Made != lost || !tally.Complete {
		t.Errorf("%d runs were lost: %+v", lost, tally)
	}
	if p, err = merge(t, dir); err != nil || bytesOf(t, p) != want {
		t.Errorf("a resumed plan is another: %v", err)
	}
}

// Results of another scenario, and of other candidates, are refused.
func TestShardsOfOtherPlans(t *testing.T) {
	dir := t.TempDir()
	staffing := strings.Replace(staffing, "rate: 0.5", "rate: 0.3", 1)
	task(t, staffing, 0, 1, false, dir)
	for text, want := range map[string]string{
		divided: "of 1 runs, not 4",
		strings.Replace(staffing, "rate: 0.3", "rate: 0.35", 1): "was run from another scenario",
	} {
		g, err := planning.Divide(context.Background(), parse(t, text), planning.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Run(context.Background(), experiments.Part{Store: grid.Read(dir)}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		runs, err := grid.Join([]string{dir})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Plan(context.Background(), runs); err == nil ||
			!strings.Contains(err.Error(), "holds results of something else") {
			t.Errorf("%v", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"),
		[]byte(`{"schema":"clifftop.grid/1","command":"plan","request":7}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := merge(t, dir); err == nil ||
		!strings.Contains(err.Error(), "the manifest's request is not that of a plan") {
		t.Errorf("%v", err)
	}
}
