package export_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report/export"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// scenarios are runs that differ in what happens to requests.
var scenarios = map[string]string{
	"chat":      "workload: {arrivals: {process: poisson, rate: 12}}\nrun: {requests: 300}",
	"preempted": "engine: {num_gpu_blocks_override: 900, scheduler_reserve_full_isl: false, enable_prefix_caching: false}\nworkload: {arrivals: {process: poisson, rate: 20}, input: {distribution: fixed, value: 200}, output: {distribution: lognormal, mean: 300, cv: 1}}\nrun: {requests: 200}",
	"swapped":   "engine: {policy: vllm-v0, num_gpu_blocks_override: 900, enable_prefix_caching: false, swap_space: 4}\nworkload: {arrivals: {process: poisson, rate: 20}, input: {distribution: fixed, value: 200}, output: {distribution: lognormal, mean: 300, cv: 1}}\nrun: {requests: 200}",
	"retries":   "engine: {max_num_seqs: 8, max_num_queued_reqs: 40}\nclients: {timeout: 6s, retries: 2, cancel_on_timeout: true}\nworkload: {arrivals: {process: poisson, rate: 12}}\nrun: {requests: 200}",
	"drafts":    "engine: {speculative: {method: eagle, num_speculative_tokens: 3, acceptance: 0.7}}\nworkload: {arrivals: {process: poisson, rate: 6}}\nrun: {requests: 100}",
	"fleet":     "gpu: a100-80gb-sxm\npools: [{name: small, replicas: 2, engine: {max_num_seqs: 16, num_gpu_blocks_override: 1200}}, {name: large, engine: {max_num_seqs: 64}}]\ndeployment: {router: least-requests}\nworkload: {arrivals: {process: poisson, rate: 20}}\nrun: {requests: 300}",
	"ranks":     "deployment: {data_parallel_size: 2}\nworkload: {arrivals: {process: poisson, rate: 20}}\nrun: {requests: 200}",
	"pipeline":  "deployment: {pipeline_parallel_size: 3, tensor_parallel_size: 2, replicas: 2, router: round-robin}\nengine: {enable_prefix_caching: false, num_gpu_blocks_override: 2000, scheduler_reserve_full_isl: false}\nworkload: {arrivals: {process: closed, users: 200}, input: {distribution: uniform, min: 50, max: 400}, output: {distribution: lognormal, mean: 150, cv: 1}}\nrun: {requests: 600, warmup: 2s}",
	"lives": `
gpu: l40s
pools:
  - {name: large, replicas: 3, deployment: {tensor_parallel_size: 2}}
  - {name: small}
deployment: {router: least-requests}
workload: {arrivals: {process: cox, rate: 14, sigma: 0.8, rho: 0.8, step: 20s}}
clients: {timeout: 60s, retries: 2}
lifecycle:
  cold_start: {distribution: lognormal, mean: 20s, cv: 0.3}
  grace: 5s
  probe: 5s
  failures:
    - {kind: crash, at: 40.003s, pool: large, replica: 2, for: 30s}
    - {kind: crash, at: 170s, pool: large, replica: 1}
    - {kind: rolling-restart, at: 100s, pool: large}
  autoscale: [{pool: small, policy: keda, min: 1, max: 4, metric: concurrency, target: 6, polling_interval: 10s, cooldown_period: 30s, stabilization_window: 20s}]
run: {requests: 2500}`,
	"groups": "engine: {policy: sglang, num_gpu_blocks_override: 3000}\nworkload: {arrivals: {process: poisson, rate: 12}, prefix: {groups: 4, prompts_per_group: 10, shared_tokens: 100}}\nrun: {requests: 200}",
}

// ran is a run with all exports.
type ran struct {
	setup      *scenario.Setup
	result     *experiments.Result
	records    []event.Record
	busy       float64 // microseconds of iterations
	output     int     // tokens that iterations produced
	trace      bytes.Buffer
	iterations bytes.Buffer
	metrics    *export.Metrics
	detailed   *export.Detailed
	states     states
}

// states are those of the replicas of a run, and its iterations.
type states struct {
	event.Ignore
	entered []entered
	spans   []work
}

type (
	entered struct {
		replica int
		at      clock.Time
		state   event.State
	}
	work struct {
		replica    int
		start, end clock.Time
	}
)

// ReplicaState implements [event.LifecycleObserver].
func (s *states) ReplicaState(at clock.Time, replica int, state event.State) {
	s.entered = append(s.entered, entered{replica, at, state})
}

// resolved is a scenario that is ready to run.
func resolved(t *testing.T, described string) *scenario.Setup {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(described))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// runAll runs a scenario with all exports and the simulator's own checks.
func runAll(t *testing.T, described string) *ran {
	t.Helper()
	r := ran{setup: resolved(t, described), states: states{}}
	trace, iterations := experiments.NewTrace(r.setup, &r.trace), export.NewIterations(&r.iterations)
	r.metrics, r.detailed = experiments.NewMetrics(r.setup), export.NewDetailed(0)
	var err error
	r.result, err = experiments.RunSetup(context.Background(), r.setup, experiments.RunOptions{
		Check: true, Observers: []event.Observer{trace, iterations, r.metrics, r.detailed, &r.states},
		Finished: func(rec *event.Record) { r.records = append(r.records, *rec) },
		Span: func(span *event.Span) {
			r.states.spans = append(r.states.spans, work{span.Replica, span.Start, span.End(span.N)})
			r.busy += float64(span.Femtos(span.N)) / 1e9
			r.output += span.N * span.Output()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Close(); err != nil {
		t.Fatal(err)
	}
	if err := iterations.Flush(); err != nil {
		t.Fatal(err)
	}
	return &r
}

// made are the runs of the scenarios; each is made once for all tests.
var made = map[string]*ran{}

// each runs f for every scenario.
func each(t *testing.T, f func(t *testing.T, r *ran)) {
	for name := range scenarios {
		t.Run(name, func(t *testing.T) { f(t, one(t, name)) })
	}
}

// one is the run of a scenario.
func one(t *testing.T, name string) *ran {
	t.Helper()
	if made[name] == nil {
		made[name] = runAll(t, scenarios[name])
	}
	return made[name]
}

// TestNothingChanges makes sure that a result is the same with all exports on and with none.
func TestNothingChanges(t *testing.T) {
	each(t, func(t *testing.T, r *ran) {
		plain, err := experiments.RunSetup(context.Background(), r.setup, experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var a, b strings.Builder
		if err := plain.Summary.WriteCSV(&a); err != nil {
			t.Fatal(err)
		}
		if err := r.result.Summary.WriteCSV(&b); err != nil {
			t.Fatal(err)
		}
		if a.String() != b.String() {
			t.Errorf("without exports\n%s\nand with them\n%s", a.String(), b.String())
		}
	})
}
