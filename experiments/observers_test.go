package experiments_test

import (
	"encoding/json"
	"testing"

	"clifftop/sim/event"

	"clifftop/experiments"
)

// TestHooksChangeNothing runs a scenario that loads KV from host memory, with and without hooks. The summaries are
// equal.
func TestHooksChangeNothing(t *testing.T) {
	const text = `
workload:
  arrivals: {process: poisson, rate: 4}
  input: {distribution: fixed, value: 2016}
  output: {distribution: fixed, value: 200}
  prefix: {groups: 40, prompts_per_group: 1, shared_tokens: 2016}
engine: {num_gpu_blocks_override: 1500}
offload: {fetch: always, tiers: [{name: host, size: 64GiB, bandwidth: 25GB/s}]}
run: {requests: 300, warmup: none}
`
	run := func(o experiments.RunOptions) string {
		s := mustRun(t, mustParse(t, text), o).Summary
		if loaded := s.System.Offload.Tiers[0].LoadedBlocks; loaded == 0 {
			t.Errorf("no blocks are loaded with %+v", o)
		}
		js, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return string(js)
	}
	plain := run(experiments.RunOptions{})
	for name, o := range map[string]experiments.RunOptions{
		"span":     {Span: func(*event.Span) {}},
		"finished": {Finished: func(*event.Record) {}},
		"progress": {Progress: func(experiments.Progress) {}},
	} {
		if got := run(o); got != plain {
			t.Errorf("the hook %s changes the summary", name)
		}
	}
}
