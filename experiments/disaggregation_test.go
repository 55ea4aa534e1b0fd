package experiments

import (
	"strings"
	"testing"
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
	divided := mustRun(t, mustParse(t, dividedText), RunOptions{Check: true}).Summary
	all, _, _ := strings.Cut(dividedText, "pools:")
	together := mustRun(t, mustParse(t, all+"deployment: {replicas: 4}"), RunOptions{Check: true}).Summary
	for name, sum := range map[string]int64{"divided": divided.Requests.Completed, "together": together.Requests.Completed} {
		if sum != 600 {
			t.Errorf("%s: %d of 600 requests completed", name, sum)
		}
	}
	if a, b := *divided.Latency.ITL.P99, *together.Latency.ITL.P99; a > b/3 {
		t.Errorf("the 99th percentile of gaps is %.1f ms, and %.1f ms where replicas do both: prompts stall answers", a, b)
	}
	if a, b := *divided.Latency.TTFT.P50, *together.Latency.TTFT.P50; a < b || a > b+60 {
		t.Errorf("half of the first tokens come within %.1f ms, and %.1f ms where replicas do both", a, b)
	}
}

// TestDisaggregationFaults reads what is said of divisions that do not work.
func TestDisaggregationFaults(t *testing.T) {
	for _, test := range []struct{ yaml, want string }{
		{"disaggregation: {mode: pull}", "s.yaml:1:17: disaggregation: there are no pools"},
		{"pools: [{}]\ndisaggregation: {mode: pull}", "s.yaml:2:17: disaggregation: no pool has the roles"},
		{"pools: [{role: prefill}]", "s.yaml:1:8: pools: 1 pools compute prompts, 0 answer and 0 do both"},
		{"pools: [{role: prefill}, {role: decode}, {name: c}]", "1 pools compute prompts, 1 answer and 1 do both"},
		{"pools: [{role: decod}]", `pools.0.role: "decod" is not known (want both, prefill or decode)`},
		{"pools: [{role: prefill}, {role: decode, model: qwen3-8b}]", "pools.1.model: qwen3-8b is not that of pool 1"},
		{"pools: [{role: prefill}, {role: decode, deployment: {kv_cache_dtype: fp8}}]", "kv_cache_dtype: fp8 is not that of pool 1"},
		{"pools: [{role: prefill}, {role: decode, engine: {block_size: 32}}]", "block_size: 32 is not that of pool 1"},
		{"disaggregation: {link_gb_per_s: 0}\npools: [{role: prefill}, {role: decode}]", "disaggregation.link_gb_per_s: 0 is not allowed"},
		{"workload: {input: {distribution: fixed, value: 5000}}\npools: [{role: prefill}, {name: small, role: decode, engine: {num_gpu_blocks_override: 200}}]",
			"pool small has room for 3184 tokens, and the shortest of 100 requests needs 5001"},
	} {
		s, err := Parse("s.yaml", []byte(test.yaml))
		if err == nil {
			_, err = s.Resolve()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\n%v\nwant %s", test.yaml, err, test.want)
		}
	}
}
