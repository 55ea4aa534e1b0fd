package experiments_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
)

// TestEveryRouterRuns gives each rule a fleet whose traffic and replicas have all that rules go by, with the invariants
// asserted, and wants the same from two runs.
func TestEveryRouterRuns(t *testing.T) {
	options := map[string][]string{
		"power-of-two": {"load: scraped, scrape: 50ms"}, "least-requests": {"ties: first", "front_ends: 3"},
		"least-tokens": {"assumed_output: 200", "uncached: true"},
		"least-queue":  {"running: true, local: true, ties: random, scrape: 1s"}, "session": {"by: user"},
		"bounded-hash": {"by: prefix, factor: 1.1", "by: user"},
		"prefix":       {"min_tokens: 64, max_blocks: 1000"},
		"sglang": {"cache_threshold: 0.5, balance_abs_threshold: 32, " +
			"balance_rel_threshold: 1.0001, smallest_tree: true"},
		"llm-d": {"picker: weighted-random, precise: true, affinity: {}",
			"scorers: {session: 1, active-requests: 2}, picker: random"},
		"dynamo": {"approximate: true, ttl: 10s", "temperature: 0.5, overlap_weight: 2"},
	}
	for _, k := range scenario.BuiltIn().Routers {
		for _, more := range append([]string{""}, options[k.Name]...) {
			t.Run(fmt.Sprintf("%s %s", k.Name, more), func(t *testing.T) {
				t.Parallel()
				if more != "" {
					more = ", " + more
				}
				text := fmt.Sprintf(`
deployment: {replicas: 3, router: {policy: %s%s}}
engine: {num_gpu_blocks_override: 4000}
workload:
  sessions: {turns: 3, first_prompt: 300, later_user_tokens: 50, system_prompt: 100, think_time: 1s}
  arrivals: {users: 30}
  output: {distribution: fixed, value: 60}
run: {requests: 300}
`, k.Name, more)
				var results [2][]byte
				for i := range results {
					res := mustRun(t, mustParse(t, text), experiments.RunOptions{Check: i == 0})
					s := res.Summary
					var sent int64
					for _, r := range s.Replicas {
						sent += r.Requests.Sent
					}
					if sent != 300 || s.Requests.Completed != 300 || len(s.Replicas) != 3 || s.Imbalance == nil {
						t.Fatalf("%d requests sent to %d replicas, %d completed", sent, len(s.Replicas),
							s.Requests.Completed)
					}
					results[i], _ = json.Marshal(s)
				}
				if !bytes.Equal(results[0], results[1]) {
					t.Error("two runs differ")
				}
			})
		}
	}
}

// TestRoutersReadBack wants that what is written of a router is what was read.
func TestRoutersReadBack(t *testing.T) {
	for text, want := range map[string]string{
		"random": `"random"`, "{policy: random}": `"random"`,
		"{policy: random, front_ends: 2}":                    `{"policy":"random","front_ends":2}`,
		"{policy: llm-d, scorers: {queue: 1}, scrape: 10ms}": `{"policy":"llm-d","front_ends":1,"scrape":"10ms","scorers":{"queue":1}}`,
	} {
		got, err := json.Marshal(mustParse(t, "deployment: {router: "+text+"}").Deployment.Router)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}
