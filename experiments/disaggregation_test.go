package experiments_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/sim/clock"
)

// dividedText has two replicas for prompts and two for answers.
const dividedText = `
workload: {arrivals: {process: poisson, rate: 12}, input: {distribution: fixed, value: 2000}, output: {distribution: fixed, value: 100}}
run: {requests: 600}
slo: {ttft_p95: 500ms, tpot_p95: 20ms}
pools:
  - {name: answers, role: decode, replicas: 2}
  - {name: prompts, role: prefill, replicas: 2}
`

// TestDisaggregatedScenario wants prompts not to stall answers, at the price of a transfer and a hop.
func TestDisaggregatedScenario(t *testing.T) {
	divided := mustRun(t, mustParse(t, dividedText), experiments.RunOptions{Check: true}).Summary
	all, _, _ := strings.Cut(dividedText, "pools:")
	together := mustRun(t, mustParse(t, all+"deployment: {replicas: 4}"), experiments.RunOptions{Check: true}).Summary
	for name, sum := range map[string]int64{"divided": divided.Requests.Completed,
		"together": together.Requests.Completed} {
		if sum != 600 {
			t.Errorf("%s: %d of 600 requests completed", name, sum)
		}
	}
	if a, b := *divided.Latency.ITL.P99, *together.Latency.ITL.P99; a > b/3 {
		t.Errorf("the 99th percentile of gaps is %.1f ms, and %.1f ms where replicas do both: prompts stall answers", a,
			b)
	}
	if a, b := *divided.Latency.TTFT.P50, *together.Latency.TTFT.P50; a < b || a > b+60 {
		t.Errorf("half of the first tokens come within %.1f ms, and %.1f ms where replicas do both", a, b)
	}
}

// TestMaxBacklogTokens has prompts computed where they are answered while one is before them at every replica for
// prompts.
func TestMaxBacklogTokens(t *testing.T) {
	handedOn := func(limit string) (n int64) {
		text := strings.Replace(dividedText, "rate: 12", "rate: 30",
			1) + "disaggregation: {max_backlog_tokens: " + limit + "}\n"
		for _, r := range mustRun(t, mustParse(t, text), experiments.RunOptions{Check: true}).Summary.Replicas {
			n += r.Requests.HandedOn
		}
		return n
	}
	if all, some := handedOn("null"), handedOn("2000"); all != 600 || some < 60 || some > 540 {
		t.Errorf("%d of 600 requests were handed on without a limit, and %d with one", all, some)
	}
}

// TestLoadedBeforeHandover has prompts loaded from tiers where they are to be computed: no replica computes what was
// loaded, and the accounts of requests know of it.
func TestLoadedBeforeHandover(t *testing.T) {
	text := strings.Replace(dividedText, "role: prefill", "role: prefill, engine: {num_gpu_blocks_override: 260}", 1) +
		"offload: {fetch: always, tiers: [{name: host, size: 16GiB, bandwidth: 25GB/s}]}\n"
	text = strings.Replace(text, "workload: {",
		"workload: {prefix: {groups: 5, prompts_per_group: 1, shared_tokens: 2000}, ", 1)
	s := mustRun(t, mustParse(t, text), experiments.RunOptions{Check: true}).Summary
	if o := s.System.Offload; o.LoadedInput < s.Tokens.Input/4 || o.LoadMs == nil || *o.LoadMs <= 0 || *o.LoadMs > 100 {
		t.Errorf("of %d prompt tokens %d were loaded, in %s ms each time", s.Tokens.Input, o.LoadedInput,
			layout.Cell(o.LoadMs))
	}
}

// TestBusyBehindPrefill refuses requests whose prompts are computed, because no replica has room for their outputs:
// what was computed is in the accounts, and nothing contradicts it.
func TestBusyBehindPrefill(t *testing.T) {
	text := strings.Replace(dividedText, "rate: 12", "rate: 60", 1) + "engine: {max_num_queued_reqs: 1}\n"
	s := mustRun(t, mustParse(t, text), experiments.RunOptions{Check: true}).Summary
	if vain := s.System.GPUSeconds.Cancelled; s.Requests.Rejected == 0 || vain == nil || *vain == 0 {
		t.Errorf("%d requests are rejected, and %v s of work were of no use", s.Requests.Rejected, layout.Cell(vain))
	}
}

// TestDisaggregationFaults reads what is said of divisions that do not work.
func TestDisaggregationFaults(t *testing.T) {
	for _, test := range []struct{ yaml, want string }{
		{"disaggregation: {mode: pull}", "s.yaml:1:17: disaggregation: disaggregation needs pools"},
		{"pools: [{}]\ndisaggregation: {mode: pull}",
			"s.yaml:2:17: disaggregation: disaggregation needs at least one pool"},
		{"pools: [{role: prefill}]", "s.yaml:1:8: pools: 1 pools have role prefill, 0 decode and 0 both"},
		{"pools: [{role: prefill}, {role: decode}, {name: c}]", "1 pools have role prefill, 1 decode and 1 both"},
		{"pools: [{role: decod}]", `pools.0.role: "decod" is not known (want both, prefill or decode)`},
		{"pools: [{role: prefill}, {role: decode, model: qwen3-8b}]", "pools.1.model: qwen3-8b differs from pool 1"},
		{"pools: [{role: prefill}, {role: decode, deployment: {kv_cache_dtype: fp8}}]",
			"kv_cache_dtype: fp8 differs from pool 1"},
		{"pools: [{role: prefill}, {role: decode, engine: {block_size: 32}}]",
			"s.yaml:1:62: pools.1.engine.block_size: block_size 32 differs from pool 1"},
		{"disaggregation: {link_gb_per_s: 0}\npools: [{role: prefill}, {role: decode}]",
			"s.yaml:1:33: disaggregation.link_gb_per_s: 0 is not allowed"},
		{"disaggregation: {link_gb_per_s: 1.0e-12}\npools: [{role: prefill}, {role: decode}]",
			"s.yaml:1:33: disaggregation.link_gb_per_s: 1.0e-12 is not allowed (want a number, 0.001 to"},
		{"pools: [{role: prefill}, {role: decode}]\ndisaggregation: {max_backlog_tokens: 0}",
			"s.yaml:2:38: disaggregation.max_backlog_tokens: 0 is not allowed (want 1 to 1000000000000)"},
		{"pools: [{role: prefill, replicas: 0}, {role: decode}]",
			"s.yaml:1:35: pools.0.replicas: 0 is not allowed (want 1 to 4096)"},
		{"pools: []", "s.yaml:1:8: pools: pools is empty"},
		{"workload: {sessions: {}}\npools: [{role: prefill}, {role: decode}]",
			"s.yaml:1:22: workload.sessions.turns: is missing"},
		{"pools: [{role: prefill}, {role: decode, engine: {policy: tgi}}]",
			"s.yaml:1:58: pools.1.engine.policy: policy tgi: it does not support a KV connector (want policy vllm)"},
		{"pools: [{role: prefill}, {role: decode}]\ndisaggregation: {router: session}",
			"s.yaml:2:26: disaggregation.router: session: it needs sessions, but the traffic has none"},
		{"pools: [{role: prefill}, {role: decode, engine: {enable_prefix_caching: false}}]\ndisaggregation: {router: {policy: kv-aware}}",
			"s.yaml:2:26: disaggregation.router: kv-aware: it needs prefix caching, but the replicas have none"},
		{"pools: [{role: prefill}, {role: decode}]\ndisaggregation: {router: {policy: llm-d, scrape: 2s}}\ndeployment: {router: {policy: vllm-dp, scrape: 1s}}",
			"s.yaml:2:50: disaggregation.router.scrape: 2s differs from deployment.router, 1s"},
		{"workload: {input: {distribution: fixed, value: 5000}}\npools: [{name: small, role: prefill, engine: {num_gpu_blocks_override: 200}}, {role: decode}]",
			"s.yaml:2:8: pools: pool small has room for 3184 tokens, and the shortest of 100 requests needs 5001"},
		{"pools: [{role: prefill}, {role: decode}]\ndisaggregation: {outages: [{at: 5s, pool: a}]}",
			"s.yaml:2:28: disaggregation.outages.0: for is missing"},
		{"pools: [{role: prefill}, {role: decode}]\ndisaggregation: {outages: [{at: 5s, for: 1s, pool: a}]}",
			`s.yaml:2:52: disaggregation.outages.0.pool: "a" is not the name of a pool (want 1 or 2)`},
		{"pools: [{role: prefill}, {role: decode}]\ndisaggregation: {outages: [{at: 5s, for: 1s, pool: '2', replica: 1}]}", "s.yaml:2:66: disaggregation.outages.0.replica: there is no replica 1 of pool 2 (want 0 to 0)"},
		{"pools: [{role: prefill}, {role: decode}]\ndisaggregation: {outages: [{at: 5s, for: 1s, pool: '2'}, {at: 5500ms, for: 2s, pool: '2', replica: 0}]}",
			"s.yaml:2:63: disaggregation.outages.1.at: a link of pool 2 has overlapping outages, from 5s and from 5.5s on"},
		{"workload: {trace: {file: examples/trace.csv}}\npools: [{role: prefill}, {name: small, role: decode, engine: {num_gpu_blocks_override: 2}}]", "s.yaml:2:8: pools: pool small has room for 16 tokens"},
		{"workload: {input: {distribution: fixed, value: 5000}}\npools: [{role: prefill}, {name: small, role: decode, engine: {num_gpu_blocks_override: 200}}]",
			"pool small has room for 3184 tokens, and the shortest of 100 requests needs 5001"},
	} {
		s, err := scenario.Parse("s.yaml", []byte(test.yaml))
		if err == nil {
			_, err = s.Resolve()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\n%v\nwant %s", test.yaml, err, test.want)
		}
	}
}

// TestKVLoadFailurePolicy has KV leave before there is room for it where it is to be read: its prompt is computed
// again, or its request fails, and clients who try again are served.
func TestKVLoadFailurePolicy(t *testing.T) {
	crowded := strings.Replace(dividedText, "role: decode, replicas: 2",
		"role: decode, replicas: 2, engine: {num_gpu_blocks_override: 900}", 1)
	late := crowded + `
disaggregation: {lease: 300ms%s}
clients: {%s}
`
	run := func(policy, clients string) *report.Summary {
		return mustRun(t, mustParse(t, fmt.Sprintf(late, policy, clients)), experiments.RunOptions{Check: true}).Summary
	}
	again, failed := run("", ""), run(", kv_load_failure_policy: fail", "")
	lost := again.Tokens.Recomputed / 2000
	if again.Requests.Completed != 600 || lost < 20 {
		t.Errorf("computed again: %d requests completed, about %d prompts computed twice", again.Requests.Completed,
			lost)
	}
	// What is computed again takes the room and the time of others, whose KV is lost then.
	if n := failed.Requests.Failed; n < 1 || failed.Requests.Completed+n != 600 || 3*n > lost ||
		failed.Tokens.Recomputed >= again.Tokens.Recomputed/2 {
		t.Errorf("fail: %+v, %d tokens computed again", failed.Requests, failed.Tokens.Recomputed)
	}
	retried := run(", kv_load_failure_policy: fail", "retries: 5, backoff: {base: 10s, cap: 60s}")
	if r := retried.Requests; r.RetriedAfter.Connection < 1 || r.Completed != 600 || r.Attempts != 600+r.Retries {
		t.Errorf("tried again: %+v", r)
	}
}

// TestUnusedLoadFailurePolicy warns of it where no KV can be lost, and of retries then.
func TestUnusedLoadFailurePolicy(t *testing.T) {
	for _, test := range []struct{ lease, want string }{
		{"", "disaggregation.kv_load_failure_policy has no effect: KV is never lost without a lease"},
		{"", "clients.retries has no effect"},
		{", lease: 1s", ""},
	} {
		u, err := mustParse(t, "pools: [{role: prefill}, {role: decode}]\nclients: {retries: 1}\ndisaggregation: {kv_load_failure_policy: fail"+test.lease+"}").Resolve()
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(u.Warnings); !strings.Contains(text, test.want) || test.want == "" &&
			strings.Contains(text, "no effect") {
			t.Errorf("lease %q: warnings %s", test.lease, text)
		}
	}
}

// TestEachRouterGoesByItsPool lets the router for prompts go by prefix caches that the pool that answers does not have,
// and has each router told how things stand.
func TestEachRouterGoesByItsPool(t *testing.T) {
	u, err := mustParse(t, `
pools: [{role: prefill}, {role: decode, engine: {enable_prefix_caching: false}}]
deployment: {router: kv-aware}
disaggregation: {router: vllm-dp}
`).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if f := u.Fleet(false); f.Scrape != 100*clock.Millisecond || f.Disaggregation == nil {
		t.Errorf("replicas tell how they stand every %v, want every 100 ms", f.Scrape)
	}
}

// TestOutage has all links out of the pool for prompts down for five seconds: nothing that is computed meanwhile is
// answered, and with a lease of two seconds what waits longest is computed again.
func TestOutage(t *testing.T) {
	run := func(text string) *report.Summary {
		whole := strings.Replace(dividedText, "requests: 600", "requests: 600, warmup: none", 1)
		return mustRun(t, mustParse(t, whole+"disaggregation: {"+text+"}"), experiments.RunOptions{Check: true}).Summary
	}
	const down = "outages: [{at: 20s, for: 5s, pool: prompts}]"
	usual, waiting, again := run(""), run(down), run("lease: 2s, "+down)
	failed := run("lease: 2s, kv_load_failure_policy: fail, " + down)
	if a, b := *usual.Latency.TTFT.Max, *waiting.Latency.TTFT.Max; a > 2000 || b < 4800 || b > 7000 ||
		waiting.Requests.Completed != 600 {
		t.Errorf("the longest TTFT is %.0f ms, and %.0f ms with the outage; %+v", a, b, waiting.Requests)
	}
	if usual.Tokens.Recomputed != 600 || waiting.Tokens.Recomputed != 600 || again.Tokens.Recomputed < 600+10*2000 ||
		again.Requests.Completed != 600 {
		t.Errorf("%d, %d and %d tokens are computed again", usual.Tokens.Recomputed, waiting.Tokens.Recomputed,
			again.Tokens.Recomputed)
	}
	// 12 requests come each second, and the links are down for three beyond the lease.
	if n := failed.Requests.Failed; n < 25 || n > 50 || failed.Requests.Completed+n != 600 {
		t.Errorf("fail: %+v", failed.Requests)
	}
}

// Two routers that read metrics have one time between scrapes, so that the resolved scenario can be read again. One
// that reads none does not change it.
func TestRoutersScrapeTogether(t *testing.T) {
	const pools = "pools: [{role: prefill, replicas: 2}, {role: decode, replicas: 2}]\n"
	for _, c := range []struct{ routers, want string }{
		{"deployment: {router: vllm-dp}\ndisaggregation: {router: llm-d}", "100ms"}, // whose own is 50 ms
		{"deployment: {router: {policy: vllm-dp, scrape: 2s}}\ndisaggregation: {router: llm-d}", "2s"},
		{"deployment: {router: vllm-dp}\ndisaggregation: {router: {policy: llm-d, scrape: 30ms}}", "30ms"},
		{"deployment: {router: llm-d}\ndisaggregation: {router: {policy: round-robin, scrape: 9s}}", "50ms"},
		{"deployment: {router: {policy: round-robin, scrape: 9s}}\ndisaggregation: {router: llm-d}", "50ms"},
	} {
		resolve := func(text string) *scenario.Setup {
			u, err := mustParse(t, text).Resolve()
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			return u
		}
		u := resolve(pools + c.routers)
		written, err := json.Marshal(u.Scenario)
		if err != nil {
			t.Fatal(err)
		}
		again := resolve(string(written))
		for _, v := range []*scenario.Setup{u, again} {
			if got := time.Duration(v.StandingFleet(false).Scrape.Seconds() * 1e9); got.String() != c.want {
				t.Errorf("%s: %v between scrapes, want %s", c.routers, got, c.want)
			}
		}
	}
}

// TestWideWorkers: a worker of data-parallel ranks is one engine. Eight ranks with eight times the users decode as fast
// as one rank with its share, but for the exchange between them, and have eight times the KV.
func TestWideWorkers(t *testing.T) {
	run := func(ranks, users int) *report.Summary {
		return mustRun(t, mustParse(t, fmt.Sprintf(`
model: qwen3-30b-a3b
gpu: h200-sxm
pools:
- {role: prefill, replicas: 4}
- {role: decode, deployment: {data_parallel_size: %d}}
workload:
  arrivals: {process: closed, users: %d}
  input: {distribution: fixed, value: 500}
  output: {distribution: fixed, value: 200}
run: {requests: %d, warmup: none}
`, ranks, users, 4*users)), experiments.RunOptions{Check: true}).Summary
	}
	one, eight := run(1, 16), run(8, 128)
	if a, b := *one.System.KVBlocks, *eight.System.KVBlocks; b <= a {
		t.Errorf("%d blocks with 8 ranks, %d with one", b, a)
	}
	a, b := *one.Latency.TPOT.Mean, *eight.Latency.TPOT.Mean
	t.Logf("TPOT %.2f ms with one rank and 16 users, %.2f ms with 8 and 128", a, b)
	if b < 0.6*a || b > 2.5*a {
		t.Errorf("TPOT %.2f ms with one rank and 16 users, %.2f ms with 8 and 128", a, b)
	}
}
