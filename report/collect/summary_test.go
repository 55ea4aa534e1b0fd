package collect

import (
	"encoding/json"
	"strings"
	"testing"

	"clifftop/sim/clock"
)

// The keys of the JSON form are a promise to those who read it.
func TestSummaryKeys(t *testing.T) {
	c := New(Options{SLO: limited("ttft", 95, clock.Second), USDPerHour: 1})
	play(c, served(0, 0, 1, 2, 10))
	var top map[string]any
	if err := json.Unmarshal([]byte(marshal(t, c.Summary())), &top); err != nil {
		t.Fatal(err)
	}
	distribution := "n mean sd p50 p90 p95 p99 p99_9 max"
	level := "mean p95 p99 max"
	for path, keys := range map[string]string{
		"": "effort energy schema clifftop scenario seed partial window requests tokens throughput latency_ms " +
			"stream_tps e2e_tps_user e2e_tps_inflight pace_surplus goodput concurrency system cost stages " +
			"accuracy warnings ci95 replications",
		"window":                        "start_s end_s warmup_s stationary",
		"requests":                      "offered completed rejected rejected_busy rejected_too_long timed_out cancelled failed in_system_at_end attempts retries retried_after",
		"requests.retried_after":        "ttft_timeout timeout busy connection",
		"tokens":                        "input cached_input output output_successful output_good recomputed wasted",
		"throughput":                    "offered_requests_per_s requests_per_s output_tokens_per_s input_tokens_per_s total_tokens_per_s successful_output_tokens_per_s output_tokens_per_s_per_gpu",
		"latency_ms":                    "ttft tpot itl e2e queue with_failures",
		"latency_ms.ttft":               distribution,
		"latency_ms.with_failures":      "failures ttft e2e",
		"latency_ms.with_failures.ttft": distribution,
		"stream_tps":                    distribution,
		"goodput":                       "slo met limits attainment requests_per_s output_tokens_per_s gated_output_tokens_per_s work_fraction product_output_tokens_per_s any_bad_of_10_requests gpu_busy_fraction gpu_wall_fraction",
		"concurrency":                   "in_system running decoding queue_depth",
		"concurrency.queue_depth":       level,
		"system": "iterations busy_fraction mfu mbu kv_usage kv_blocks preemptions prefix_hit_rate error_rate gap_fraction " +
			"gap_fraction_seed gap_by_cause gpu_seconds speculative",
		"system.kv_usage":     "mean max sd reserved_mean",
		"system.gap_by_cause": "kv token_budget seats policy idle boundary",
		"system.gpu_seconds":  "useful recompute cache_miss cancelled rejected_drafts padding swap host idle idle_by_cause",
		"cost":                "usd_per_hour usd_per_million_output_tokens_at_load usd_per_million_output_tokens_good usd_per_million_output_tokens_at_capacity",
	} {
		node := top
		for part := range strings.SplitSeq(path, ".") {
			if part != "" {
				node, _ = node[part].(map[string]any)
			}
		}
		want := strings.Fields(keys)
		for _, key := range want {
			if _, ok := node[key]; !ok {
				t.Errorf("%s: no %q", path, key)
			}
		}
		if len(node) != len(want) {
			t.Errorf("%s: %d keys, want %d: %v", path, len(node), len(want), node)
		}
	}
}
