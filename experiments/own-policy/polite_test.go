package main

import (
	"testing"

	"clifftop/experiments/scenario"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
)

// TestPolite holds the policy against the naive engine.
func TestPolite(t *testing.T) {
	simtest.Verify(t, simtest.Policy{Name: "polite", New: func(k *simtest.Knobs) sched.Scheduler {
		return &Polite{Share: int32(k.Int("share", 512, 1, 40))}
	}})
}

// TestScenario resolves the scenario under the policy's name, which is known once it is in use.
func TestScenario(t *testing.T) {
	s, err := scenario.Parse("scenario.yaml", scenarioText)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve(); err == nil {
		t.Error("a policy that nobody has told of is known")
	}
	use(s)
	if _, err := s.Resolve(); err != nil {
		t.Error(err)
	}
}
