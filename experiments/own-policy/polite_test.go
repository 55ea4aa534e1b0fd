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

// TestScenario resolves the scenario under the policy's name, which only the rules of this program have.
func TestScenario(t *testing.T) {
	s, err := scenario.Parse("scenario.yaml", scenarioText)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve(); err == nil {
		t.Error("the policy is known without its rule")
	}
	share := scenario.Setting{Key: "engine.polite.share", Value: "64"}
	if s, err = rules().Parse("scenario.yaml", scenarioText, share); err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := u.Fleet(false).Replicas[0].Scheduler.(*Polite); !ok || p.Share != 64 {
		t.Errorf("the scheduler is %+v", p)
	}
}
