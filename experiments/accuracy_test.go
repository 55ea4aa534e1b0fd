package experiments_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
)

// TestAccuracy says how far a result can be trusted: by runs on the same GPU, else on others of its kind, else not.
func TestAccuracy(t *testing.T) {
	for _, c := range []struct {
		keys  string
		scope string
		exact bool
		runs  bool
	}{
		{"{gpu: h100-sxm}", "measured open-loop runs of dense models on h100-sxm", true, true},
		{"{gpu: h100-sxm, workload: {arrivals: {process: closed, users: 2}}}",
			"measured closed-loop runs of dense models on h100-sxm", true, true},
		{"{engine: {speculative: {method: mtp, num_speculative_tokens: 2, acceptance: 0.6}}}",
			"on h100-sxm; none of them with drafts", false, true},
		{"{gpu: gh200-96}", "not validated on gh200-96; median of ", false, true},
		{"{gpu: b200-sxm}", "measured closed-loop runs of dense models on b200-sxm", false, true},
		{"{gpu: mi300x}", "not validated: there are no measured runs of dense models on mi300x under policy vllm",
			false, false},
		{"{step_time: roofline}", "not validated: only step_time kernels", false, false},
	} {
		s, err := scenario.Parse("s.yaml", []byte(c.keys))
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		a := u.Accuracy()
		if !strings.Contains(a.Scope, c.scope) || a.Exact != c.exact || (a.Runs > 0) != c.runs ||
			(a.TPOT != nil) != c.runs {
			t.Errorf("%s: %+v, want a scope with %q", c.keys, a, c.scope)
		}
		if text := fmt.Sprint(a); c.runs && !strings.HasPrefix(text, "in sample: TTFT ±") {
			t.Errorf("%s: %q", c.keys, text)
		}
	}
	s, err := scenario.Parse("s.yaml", []byte("{step_time: {linear: {a_ms: 1, b_us: 1}}, run: {requests: 10}}"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Summary.Accuracy != nil {
		t.Errorf("a linear step time is no machine's, but has %+v", r.Summary.Accuracy)
	}
}
