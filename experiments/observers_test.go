package experiments_test

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/sim/event"
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

// TestHooksChangeNoExample runs the examples with all hooks and outputs at once, and without. The summaries are equal.
func TestHooksChangeNoExample(t *testing.T) {
	files, err := filepath.Glob("examples/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		run := func(all bool) string {
			s, err := scenario.Load(file, scenario.Setting{Key: "run.replications", Value: "1", Flag: "test"},
				scenario.Setting{Key: "run.requests", Value: "400", Flag: "test"})
			if err != nil {
				t.Fatal(err)
			}
			u, err := s.Resolve()
			if err != nil {
				t.Fatal(err)
			}
			o := experiments.RunOptions{}
			told := 0
			if all {
				o = experiments.RunOptions{Check: true, Requests: io.Discard, Detail: true,
					Span: func(*event.Span) { told++ }, Finished: func(*event.Record) { told++ },
					Progress: func(experiments.Progress) {}, Observers: []event.Observer{event.Ignore{}}}
			}
			r, err := experiments.RunSetup(context.Background(), u, o)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if all && told == 0 {
				t.Errorf("%s: no hook is called", file)
			}
			r.Summary.Detail = nil
			js, err := json.Marshal(r.Summary)
			if err != nil {
				t.Fatal(err)
			}
			return string(js)
		}
		if run(false) != run(true) {
			t.Errorf("%s: hooks change the summary", file)
		}
	}
}
