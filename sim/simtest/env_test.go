package simtest

import (
	"context"
	"testing"

	"github.com/cockroachdb/datadriven"

	"clifftop/sim"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

// TestScenarios runs the scenario files of every policy on the naive engine and on the real one.
func TestScenarios(t *testing.T) {
	for _, engine := range []struct {
		name     string
		run      Runner
		policies []Policy
	}{
		{"naive", naive.Run, append(Policies(), script)},
		{"engine", runEngine, append(Policies(), script)},
	} {
		for _, p := range engine.policies {
			t.Run(engine.name+"/"+p.Name, func(t *testing.T) {
				datadriven.Walk(t, "testdata/"+p.Name, func(t *testing.T, path string) {
					env := Env{Run: engine.run, Policies: []Policy{script}}
					datadriven.RunTest(t, path, env.Handle)
				})
			})
		}
	}
}

func runEngine(cfg engine.Config, src workload.Source, obs event.Observer) error {
	e, err := sim.New(cfg, src, obs)
	if err != nil {
		return err
	}
	return e.Run(context.Background())
}
