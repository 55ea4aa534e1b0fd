package experiments_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
)

// fleetText is a fleet of unlike replicas.
const fleetText = `
model: llama-3.1-8b
workload: {arrivals: {process: poisson, rate: 40}}
deployment: {router: round-robin}
engine: {max_num_seqs: 64}
pools:
  - {name: large, replicas: 2, deployment: {dtype: fp8}}
  - {name: small, replicas: 3, gpu: l40s, engine: {max_num_batched_tokens: 2048}, cost: {gpu_hour: 1}}
run: {requests: 1500}
`

// TestFleetOfOne wants that a router before one replica changes nothing.
func TestFleetOfOne(t *testing.T) {
	for _, text := range []string{
		"run: {requests: 400}",
		"workload: {arrivals: {process: poisson, rate: 60}}\nrun: {requests: 1500, duration: 20s, warmup: 5s}\nslo: {ttft_p95: 300ms}",
		"workload: {arrivals: {users: 30, think_time: 1s}}\noverheads: {network_in: 20ms, network_out: 10ms}\nrun: {requests: 600}",
		"workload: {arrivals: {process: poisson, rate: 60}}\nengine: {policy: sglang, max_num_queued_reqs: 40, num_gpu_blocks_override: 3000}\n" +
			"clients: {timeout: 3s, retries: 2}\nrun: {requests: 1500}",
	} {
		var results [2][]byte
		var rows [2]bytes.Buffer
		for i, pools := range []string{"", "\npools: [{}]"} {
			res := mustRun(t, mustParse(t, text+pools), experiments.RunOptions{Check: true, Requests: &rows[i]})
			res.Summary.Scenario, res.Summary.Replicas = nil, nil
			results[i], _ = json.MarshalIndent([]any{res.Summary, res.Series}, "", " ")
		}
		if !bytes.Equal(results[0], results[1]) {
			t.Errorf("%s\na fleet of one gives other results: %s", text, firstDifference(results[0], results[1]))
		}
		if !bytes.Equal(rows[0].Bytes(), rows[1].Bytes()) {
			t.Errorf("%s\nthe requests of a fleet of one are others", text)
		}
	}
}

// TestServing: pictures say how many replicas there are, and of what.
func TestServing(t *testing.T) {
	const one = "llama-3.1-8b bf16 on 1 × h100-sxm"
	for text, want := range map[string]string{
		"{}":                        one,
		"deployment: {replicas: 4}": one + ", 4 replicas",
		"lifecycle: {autoscale: {policy: keda, min: 1, max: 8, target: 5}}\nrun: {duration: 60s}": one +
			", 1 to 8 replicas",
		"pools: [{name: prompts, role: prefill, replicas: 2}, {name: answers, role: decode, replicas: 3}]": one +
			", replicas: prompts 2, answers 3",
		"pools: [{name: large, replicas: 2, deployment: {dtype: fp8}}, {name: small, replicas: 3, gpu: l40s}]": "large: 2 × (llama-3.1-8b fp8 on 1 × h100-sxm), small: 3 × (llama-3.1-8b bf16 on 1 × l40s)",
		"deployment: {tensor_parallel_size: 2, replicas: 2}\nengine: {enable_prefix_caching: false}":           "llama-3.1-8b bf16 on 2 × h100-sxm (TP 2), 2 replicas",
	} {
		u, err := mustParse(t, text).Resolve()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := u.Serving(""); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if got := u.Serving("deployment.replicas"); strings.HasPrefix(text, "deployment") &&
			strings.Contains(got, "replicas") {
			t.Errorf("%s, their number varied: %q", text, got)
		}
	}
}

// firstDifference shows the first lines that differ.
func firstDifference(a, b []byte) string {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(x), len(y)) {
		if !bytes.Equal(x[i], y[i]) {
			return fmt.Sprintf("line %d is %q in one and %q in the other, after %q", i, x[i], y[i], x[max(0, i-1)])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

// TestPoolsInherit looks at what pools say, and at what they leave to the scenario.
func TestPoolsInherit(t *testing.T) {
	u, err := mustParse(t, fleetText).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	large, small := u.Scenario.Pools[0], u.Scenario.Pools[1]
	for what, ok := range map[string]bool{
		"GPUs":             *large.GPU == "h100-sxm" && *small.GPU == "l40s",
		"number formats":   large.Deployment.Dtype == "fp8" && small.Deployment.Dtype == "bf16",
		"seats":            *large.Engine.MaxNumSeqs == 64 && *small.Engine.MaxNumSeqs == 64,
		"budgets":          *large.Engine.MaxNumBatchedTokens == 8192 && *small.Engine.MaxNumBatchedTokens == 2048,
		"seats of all":     u.Report.MaxNumSeqs == 5*64,
		"prices":           u.Report.USDPerHour == 2**large.Cost.GPUHour+3,
		"replicas":         u.Report.Replicas == 5 && u.Report.GPUs == 5,
		"schedulers":       u.Fleet(false).Replicas[0].Scheduler != u.Fleet(false).Replicas[1].Scheduler,
		"timers":           u.Fleet(false).Replicas[0].Timer == u.Fleet(false).Replicas[1].Timer,
		"timers of others": u.Fleet(false).Replicas[0].Timer != u.Fleet(false).Replicas[2].Timer,
	} {
		if !ok {
			t.Errorf("%s are not right: %+v", what, u.Report)
		}
	}
	if n := u.Fleet(false).Replicas[4].NumGPUBlocks; n != u.Pools[1].Memory.Blocks || n >= u.Pools[0].Memory.Blocks {
		t.Errorf("the small GPU has %d KV blocks", n)
	}
}

// TestFleetReadsBack wants that the resolved scenario of a fleet gives the same fleet.
func TestFleetReadsBack(t *testing.T) {
	first := mustRun(t, mustParse(t, fleetText), experiments.RunOptions{Check: true})
	text, err := json.Marshal(first.Summary.Scenario)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte(`"name":"",`), nil)
	second := mustRun(t, mustParse(t, string(text)), experiments.RunOptions{})
	first.Summary.Scenario, second.Summary.Scenario = nil, nil
	first.Summary.Warnings, second.Summary.Warnings = nil, nil // of what was lowered
	first.Summary.EngineDefaults = ""                          // the resolved scenario names all knobs
	a, _ := json.MarshalIndent(first.Summary, "", " ")
	b, _ := json.MarshalIndent(second.Summary, "", " ")
	if !bytes.Equal(a, b) {
		t.Error(firstDifference(a, b))
	}
}

// TestPoolFaults wants faults of pools at their place, under their key, and those of all pools once.
func TestPoolFaults(t *testing.T) {
	for _, k := range []struct{ text, want string }{
		{"pools: []", "s.yaml:1:8: pools: pools is empty: list at least one pool or remove the key"},
		{"deployment: {replicas: 2}\npools: [{}]",
			"s.yaml:1:24: deployment.replicas: 2 cannot be combined with pools (set replicas in each pool)"},
		{"pools: [{name: a}, {name: a}]", `s.yaml:1:20: pools.1: the name "a" is given twice (want another one)`},
		{"pools: [{role: prompts}]", `s.yaml:1:16: pools.0.role: "prompts" is not known (want both, prefill or decode)`},
		{"pools: [{}, {gpu: h1000}]", "s.yaml:1:19: pools.1.gpu: "},
		{"pools: [{}, {engine: {policy: vlm}}]", "s.yaml:1:31: pools.1.engine.policy: "},
		{"pools: [{}, {engine: {version: vlm}}]", "s.yaml:1:32: pools.1.engine.version: "},
		{"pools: [{}, {engine: {max_num_seqs: 10000}}]", "s.yaml:1:37: pools.1.engine.max_num_seqs: "},
		{"pools: [{engine: {max_num_seqs: 0}}]",
			"s.yaml:1:33: pools.0.engine.max_num_seqs: 0 is not allowed (want 1 to 1048576)"},
		{"pools: [{}, {overheads: {network_in: 3ms}}]",
			"s.yaml:1:38: pools.1.overheads.network_in: the network latency to clients differs"},
		{"engine: {policy: vlm}\npools: [{}, {gpu: l40s}]", `s.yaml:1:18: engine.policy: "vlm" is not known`},
		{"model: llama-3.1-70b\npools: [{}, {gpu: l40s}]",
			"s.yaml:1:8: model: llama-3.1-70b bf16 on 1 × l40s does not fit: "},
		{"pools: [{replicas: 4000}, {replicas: 4000}]",
			"s.yaml:1:8: pools: there are 8000 replicas (want 4096 or less)"},
		{"deployment: {router: nearest}", `s.yaml:1:22: deployment.router: "nearest" is not known (want round-robin`},
		{"deployment: {router: {policy: round-robin, front_ends: 0}}",
			"s.yaml:1:56: deployment.router.front_ends: 0 is not allowed (want 1 to 1024)"},
		{"deployment: {router: {front_ends: 3}}", "s.yaml:1:22: deployment.router: policy is missing (want a rule"},
		{"deployment: {replicas: 2, router: least-kv}\nstep_time: {linear: {a_ms: 10}}",
			"s.yaml:1:35: deployment.router: least-kv: it needs a finite KV cache (set num_gpu_blocks_override)"},
		{"deployment: {replicas: 2, router: session}",
			"s.yaml:1:35: deployment.router: session: it needs sessions, but the traffic has none"},
		{"deployment: {replicas: 2, router: {policy: session, by: prefix}}",
			`s.yaml:1:57: deployment.router.by: "prefix" is not known (want session or user)`},
		{"deployment: {replicas: 2, router: {policy: bounded-hash, factor: 0.5}}",
			"s.yaml:1:66: deployment.router.factor: 0.5 is not allowed (want a number, 1 to 1000000)"},
		{"deployment: {replicas: 2, router: {policy: random, factor: 2}}",
			"s.yaml:1:52: deployment.router.factor: this key is not allowed with policy random"},
	} {
		s, err := scenario.Parse("s.yaml", []byte(k.text))
		if err == nil {
			_, err = s.Resolve()
		}
		if err == nil || !strings.Contains(err.Error(), k.want) || strings.Count(err.Error(), k.want) != 1 {
			t.Errorf("%s\ngot  %v\nwant %s", k.text, err, k.want)
		}
	}
}
