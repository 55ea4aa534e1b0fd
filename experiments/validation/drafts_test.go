package validation

import (
	"math"
	"strings"
	"testing"
)

// TestDrafts: the number of drafts comes from the launch script, else from the engine's recipes.
func TestDrafts(t *testing.T) {
	for _, c := range []struct {
		engine, method, flags string
		want                  int
		ruled                 bool
	}{
		{"sglang", "", "", 0, false},
		{"sglang", "none", "--speculative-num-steps=3", 0, false},
		{"sglang", "mtp", "--speculative-num-steps=3 --speculative-num-draft-tokens=4", 3, false},
		{"trtllm-guaranteed-no-evict", "MTP", "speculative_config:; decoding_type: MTP; num_nextn_predict_layers: 1", 1, false},
		{"vllm", "mtp", "--method=mtp --num-speculative-tokens=2", 2, false},
		{"vllm", "mtp", "--method=mtp", 1, true},
		{"vllm", "mtp, 1 draft token", "", 1, false},
		{"vllm", "mtp", "--speculative-config.method mtp --speculative-config.num_speculative_tokens 4", 4, false},
		{"dynamo-sglang", "mtp", "", 2, true},
		{"dynamo-trtllm", "mtp", "", 3, true},
	} {
		r := Row{Engine: c.engine, SpecMethod: c.method, EngineFlags: c.flags}
		n, ruled, err := r.drafts(0)
		if n != c.want || ruled != c.ruled || err != nil {
			t.Errorf("%+v: %d drafts, by a rule: %v, %v", c, n, ruled, err)
		}
	}
	for _, r := range []Row{{SpecMethod: "medusa"}, {SpecMethod: "mtp", EngineFlags: "--speculative-num-steps=0"}} {
		if _, _, err := r.drafts(0); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q %q: %v (want an error of one line)", r.SpecMethod, r.EngineFlags, err)
		}
	}
	r := Row{Engine: "sglang", SpecMethod: "mtp", EngineFlags: "--speculative-num-steps=2"}
	if want := 1 + 0.74 + 0.74*0.595; math.Abs(r.yield()-want) > 1e-12 {
		t.Errorf("%v tokens an iteration (want %v)", r.yield(), want)
	}
}
