package simtest

import (
	"testing"

	"pgregory.net/rapid"
)

// TestNaiveInvariants runs the naive engine on random cases and checks what holds in every run.
func TestNaiveInvariants(t *testing.T) {
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		c := Draw(t)
		cfg := c.Config()
		tape := &StepTape{}
		if err := Naive(cfg, c.Source(), tape); err != nil {
			t.Fatalf("%v\n%v", err, c)
		}
		if err := CheckTape(&cfg, &tape.Tape); err != nil {
			t.Fatalf("%v\n%v", err, c)
		}
		count(seen, &tape.Tape)
	})
	t.Log(seen)
}

// count notes what kinds of things happened in a run.
func count(seen map[string]int, tape *Tape) {
	did := make(map[string]bool)
	for i := range tape.Records {
		rec := &tape.Records[i]
		did[rec.Outcome.String()] = true
		did["hit"] = did["hit"] || rec.CachedTokens > 0
		did["recomputed"] = did["recomputed"] || rec.RecomputedTokens > 0
	}
	did["preempted"] = len(tape.Preemptions) > 0
	did["dropped"] = len(tape.Drops) > 0
	for _, c := range tape.Changes {
		if c.Levels.Blocked != 0 {
			did["blocked: "+c.Levels.Blocked.String()] = true
		}
	}
	seen["runs"]++
	seen["iterations"] += len(tape.Iterations)
	seen["requests"] += len(tape.Records)
	for what, yes := range did {
		if yes {
			seen[what]++
		}
	}
}
