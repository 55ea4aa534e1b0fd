package experiments_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"clifftop/report"

	"clifftop/experiments"
)

// TestTiersInALifecycle crashes a replica whose eight prompts of 2016 tokens lie in its cache and in a tier. Afterwards
// they are computed again, once each, where the tier was its own memory, and loaded where the tier persists.
func TestTiersInALifecycle(t *testing.T) {
	run := func(tier string) *report.Summary {
		return mustRun(t, mustParse(t, fmt.Sprintf(`
workload:
  arrivals: {process: poisson, rate: 4}
  input: {distribution: fixed, value: 2016}
  output: {distribution: fixed, value: 200}
  prefix: {groups: 8, prompts_per_group: 1, shared_tokens: 2016}
offload: {fetch: always, chunk_tokens: 16, tiers: [{name: store, size: 64GiB, bandwidth: 25GB/s%s}]}
lifecycle: {cold_start: 5s, probe: 0, failures: [{kind: crash, at: 60s, replica: 0, for: 10s}]}
clients: {retries: 3}
run: {requests: 500, warmup: none}
`, tier)), experiments.RunOptions{Check: true}).Summary
	}
	host, store := run(""), run(", persistent: true")
	for name, s := range map[string]*report.Summary{"host": host, "store": store} {
		if r := s.Requests; r.Completed != 500 || r.RetriedAfter.Connection == 0 || s.System.Replicas == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	// What the host's memory gives is what was computed and copied there after the crash.
	computed := func(s *report.Summary) int64 {
		return s.Tokens.Input - s.Tokens.CachedInput - s.System.Offload.LoadedInput
	}
	a, b := computed(host), computed(store)
	if a-b < 7*2000 || store.System.Offload.LoadedInput < 7*2000 {
		t.Errorf("%d tokens of prompts were computed with the host's memory, %d with the store, of which %d were loaded", a, b, store.System.Offload.LoadedInput)
	}
}

// TestUnusedPersistence warns where nothing ends.
func TestUnusedPersistence(t *testing.T) {
	const text = "offload: {tiers: [{name: host, size: 64GiB, bandwidth: 25GB/s, persistent: true}]}\n"
	for _, c := range []struct {
		text string
		want bool
	}{{text, true}, {text + "lifecycle: {}", false}} {
		u, err := mustParse(t, c.text).Resolve()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(fmt.Sprint(u.Warnings), "offload.tiers.0.persistent has no effect"); got != c.want {
			t.Errorf("%s: warnings %v", c.text, u.Warnings)
		}
	}
}

// TestPipelinesInALifecycle crashes a pipeline of two stages with a batch in each: what it had is sent again, nothing
// is lost, and the time of the stages adds up to what was paid for.
func TestPipelinesInALifecycle(t *testing.T) {
	s := pipelineRun(t, `
deployment: {pipeline_parallel_size: 2, replicas: 2, router: least-requests}
engine: {max_num_batched_tokens: 400, max_num_seqs: 16, enable_prefix_caching: false}
step_time: {linear: {a_ms: 20, b_us: 0}}
workload: {arrivals: {process: poisson, rate: 8}, input: {distribution: fixed, value: 100}, output: {distribution: fixed, value: 50}}
lifecycle:
  cold_start: 10s
  failures: [{kind: crash, at: 20s, replica: 0, for: 10s}, {kind: slow, at: 10s, replica: 1, for: 20s, factor: 2}, {kind: rolling-restart, at: 60s}]
clients: {retries: 5}
run: {requests: 800, warmup: none}
`)
	if r := s.Requests; r.Completed != 800 || r.RetriedAfter.Connection == 0 {
		t.Errorf("%+v", r)
	}
	if s.System.PipelineStages == nil {
		t.Error("the stages work on one batch at a time")
	}
	g := s.System.GPUSeconds
	sum := *g.Useful + *g.Recompute + *g.CacheMiss + *g.Cancelled + *g.Rejected + *g.Padding + *g.Swap + *g.Host +
		*g.Bubble + *g.Idle
	if paid := 3600 * *s.System.Replicas.GPUHours; math.Abs(sum-paid) > 1e-9*paid {
		t.Errorf("GPU time adds up to %v s, %v s are paid for", sum, paid)
	}
}
