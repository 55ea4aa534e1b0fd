package experiments_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/steady"
	"clifftop/internal/testenv"
	"clifftop/report"
)

// station is a fast system of n servers, each with services of one second on average.
const station = `
step_time: {linear: {a_ms: 1, b_us: 0}}
engine: {max_num_seqs: %d}
workload:
  arrivals: %s
  input: {distribution: fixed, value: 1}
  output: {distribution: gamma, mean: 1000, cv: 1}
`

func settled(t *testing.T, text string, o experiments.RunOptions) *experiments.Result {
	t.Helper()
	r, err := experiments.Settled(context.Background(), mustParse(t, text), o)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return r
}

// TestContinuedRuns: a run that was continued gives the bytes of one that had its length from the start.
func TestContinuedRuns(t *testing.T) {
	const lengths = "input: {distribution: fixed, value: 20}, output: {distribution: fixed, value: 20}"
	for name, text := range map[string]string{
		"poisson": fmt.Sprintf(station, 4, "{process: poisson, rate: 2.4}"),
		"gamma":   fmt.Sprintf(station, 4, "{process: gamma, cv: 2, rate: 2}"),
		"chat": strings.Replace(fmt.Sprintf(station, 4,
			"{process: cox, rate: 1, sigma: 0.2, rho: 0.5, step: 10s, mean_over: hour}"),
			"gamma, mean: 1000, cv: 1", "fixed, value: 500", 1),
		"clients": fmt.Sprintf(station, 8, "{process: poisson, rate: 4}") + "clients: {timeout: 4s, retries: 2}\n",
		"fleet": "step_time: {linear: {a_ms: 10, b_us: 500}}\nengine: {max_num_seqs: 16}\n" +
			"workload: {arrivals: {process: poisson, rate: 80}, " + lengths + "}\n" +
			"deployment: {replicas: 3, router: least-requests}\n",
		"conversations": `
step_time: {linear: {a_ms: 1, b_us: 0}}
workload:
  arrivals: {process: poisson, rate: 5}
  sessions:
    turns: {distribution: geometric, mean: 3}
    first_prompt: {distribution: lognormal, mean: 50, cv: 3}
    later_user_tokens: {distribution: fixed, value: 10}
    think_time: {distribution: exponential, mean: 1s}
  output: {distribution: lognormal, mean: 100, cv: 6}
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var rows, wantRows bytes.Buffer
			r := settled(t, text, experiments.RunOptions{Requests: &rows, Detail: true})
			n := r.Summary.Requests.Offered
			if n <= steady.LeastRequests {
				t.Fatalf("%d requests: nothing was continued", n)
			}
			fixed := text + fmt.Sprintf("run: {requests: %d}\n", n)
			want := settled(t, fixed, experiments.RunOptions{Requests: &wantRows, Detail: true})
			a, err := json.Marshal(r.Summary)
			if err != nil {
				t.Fatal(err)
			}
			b, err := json.Marshal(want.Summary)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a, b) {
				t.Errorf("continued:\n%s\nat once:\n%s", a, b)
			}
			if !reflect.DeepEqual(r.Series, want.Series) || !bytes.Equal(rows.Bytes(), wantRows.Bytes()) {
				t.Error("the series, or the requests, differ")
			}
			if !reflect.DeepEqual(r.Summary.Detail, want.Summary.Detail) {
				t.Error("the details differ")
			}
		})
	}
}

// TestEffortOfRuns: a run searches with a tenth of its requests at most and repeats nothing, and one that has no
// request to spare for a search does not fail.
func TestEffortOfRuns(t *testing.T) {
	texts := map[string]string{}
	files, _ := filepath.Glob("examples/*.yaml")
	if len(files) < 10 {
		t.Fatalf("%d examples", len(files))
	}
	for _, f := range files {
		s, err := scenario.Load(f)
		if err != nil {
			t.Fatal(err)
		}
		check(t, f, s)
	}
	rng := rand.New(rand.NewPCG(20, 5))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	for i := range testenv.Choose(20, 60) {
		servers := 1 + rng.IntN(40)
		rate := float64(servers) * (.2 + 1.3*rng.Float64())
		arrivals := pick("process: poisson", "process: gamma, cv: 3", "process: constant",
			"process: cox, sigma: 0.2, rho: 0.8, step: 60s",
			"process: cox, sigma: 0.3, rho: 0.5, step: 30s, mean_over: process")
		text := fmt.Sprintf(station, servers, fmt.Sprintf("{%s, rate: %.3f}", arrivals, rate)) +
			pick("run: {requests: 1}", "run: {requests: 300}", "run: {requests: 8000}", "run: {requests: 25000}",
				"run: {duration: 600s}", "run: {requests: null}", "run: {requests: 3000, replications: 3}",
				"deployment: {replicas: 3, router: least-requests}") + "\n"
		texts[fmt.Sprint(i)] = text
	}
	texts["users"] = "workload: {arrivals: {process: closed, users: 30, think_time: 1s}}\n"
	for name, text := range texts {
		check(t, name+": "+text, mustParse(t, text))
	}
}

func check(t *testing.T, name string, s *scenario.Scenario) {
	t.Helper()
	run, err := experiments.NewSettled(context.Background(), s, steady.Options{Runs: max(1, s.Run.Replications)})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var sum *report.Summary
	if s.Replicated() {
		sum, err = run.Replicate(context.Background(), experiments.ReplicateOptions{})
	} else {
		var r *experiments.Result
		if r, err = run.Run(context.Background(), experiments.RunOptions{}); err == nil {
			sum = r.Summary
		}
	}
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	e := sum.Effort
	if e.Requests != sum.Requests.Offered || 10*e.SearchRequests > e.Requests || e.RepeatedRequests != 0 {
		t.Errorf("%s: effort %+v", name, e)
	}
	undetermined := sum.Window.State == report.Undetermined
	warned := slices.ContainsFunc(sum.Warnings, func(w report.Warning) bool { return w.Code == "not_determined" })
	if undetermined != warned || undetermined != (e.SearchNeedsRequests > 0) {
		t.Errorf("%s: state %s, warned %v, effort %+v", name, sum.Window.State, warned, e)
	}
	if r := sum.Scenario.(*scenario.Scenario).Run; r.Requests != nil && *r.Requests == 1 &&
		(sum.Window.State != report.Finite || e.SearchRequests > 0) {
		t.Errorf("%s: one request gives the state %s, effort %+v", name, sum.Window.State, e)
	}
}

// TestOverloadShowsItself: a load above saturation is never called steady, and without a search a long run shows it by
// its backlog.
func TestOverloadShowsItself(t *testing.T) {
	for _, servers := range []int{1, 8} {
		for _, load := range []float64{1.01, 1.1, 1.3} {
			for _, requests := range []int{200, 2_000, 20_000} {
				arrivals := fmt.Sprintf("{process: poisson, rate: %v}", load*float64(servers))
				text := fmt.Sprintf(station, servers, arrivals) +
					fmt.Sprintf("run: {requests: %d}\n", requests)
				s := settled(t, text, experiments.RunOptions{}).Summary
				w := &s.Window
				if w.State == report.Settled {
					t.Errorf("%d servers at a load of %v, %d requests: %+v", servers, load, requests, w)
				}
				if load < 1.1 || requests < 20_000 {
					continue
				}
				if r := s.Saturation; w.State != report.Overloaded || s.Effort.SearchRequests != 0 || r == nil ||
					r.LowCI95[0] > float64(servers) || r.LowCI95[1] < float64(servers) ||
					r.LowCI95[1] > 1.05*float64(servers) {
					t.Errorf("%d servers at a load of %v, %d requests: %+v, saturation %+v, effort %+v", servers, load,
						requests, w, r, s.Effort)
				}
			}
		}
	}
}

// TestUndetermined: a run that looks settled is not called steady if it is too short for the search. A search without
// bounds decides, and so does a longer run.
func TestUndetermined(t *testing.T) {
	text := fmt.Sprintf(station, 64, "{process: poisson, rate: 40}") + "run: {requests: %d}\n"
	s := settled(t, fmt.Sprintf(text, 4_000), experiments.RunOptions{}).Summary
	if s.Window.State != report.Undetermined || s.Saturation != nil || s.Effort.SearchRequests != 0 ||
		s.Effort.SearchNeedsRequests < 640 {
		t.Fatalf("%+v, effort %+v", s.Window, s.Effort)
	}
	n := 10 * s.Effort.SearchNeedsRequests
	long := settled(t, fmt.Sprintf(text, n), experiments.RunOptions{}).Summary
	if e := long.Effort; long.Window.State != report.Settled || e.SearchRequests == 0 || 10*e.SearchRequests > n {
		t.Errorf("%d requests: %+v, effort %+v", n, long.Window, e)
	}
	run, err := experiments.NewSettled(context.Background(), mustParse(t, fmt.Sprintf(text, 4_000)),
		steady.Options{Search: steady.First})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Run(context.Background(), experiments.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Summary; s.Window.State == report.Undetermined || s.Effort.SearchRequests < 40_000 {
		t.Errorf("with a search: %+v, effort %+v", s.Window, s.Effort)
	}
}
