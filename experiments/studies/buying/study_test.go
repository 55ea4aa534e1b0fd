package main

import (
	"context"
	"strings"
	"testing"

	"clifftop/internal/testenv"
	"clifftop/report/plan"
)

// TestOutcomes asserts the winner of each pair, and that the verdict states the reason.
func TestOutcomes(t *testing.T) {
	testenv.NeedsLong(t, "the plans of the study, 4 s")
	names, list, err := plans(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		winner func(c *plan.Candidate) bool
		loser  string
	}{
		{func(c *plan.Candidate) bool { return c.GPU == "l40s" && c.Replicas > 1 }, "h100-sxm"},
		{func(c *plan.Candidate) bool { return c.GPU == "h100-sxm" }, "l40s"},
		{func(c *plan.Candidate) bool { return c.TensorParallel == 4 }, "h100-sxm"},
		{func(c *plan.Candidate) bool { return c.TensorParallel == 1 && c.Replicas > 1 }, "TP 4"},
	} {
		p := list[i]
		if len(p.Candidates) == 0 || !want.winner(&p.Candidates[0]) {
			t.Errorf("%s: %s", names[i], p.Answer())
			continue
		}
		if len(p.Candidates) > 1 && (len(p.Why) < 2 || !strings.Contains(p.Why[1], want.loser) ||
			!strings.Contains(p.Why[1], "times as much")) {
			t.Errorf("%s is not explained: %q", names[i], p.Why)
		}
		if len(p.Candidates) == 1 && (len(p.Refused) == 0 || !strings.Contains(p.Refused[0].Name, want.loser)) {
			t.Errorf("%s: the other is neither ranked nor refused: %+v", names[i], p.Refused)
		}
	}
}
