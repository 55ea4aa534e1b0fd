package simtest

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cockroachdb/datadriven"

	"clifftop/sim"
	"clifftop/workload"
)

// naiveOnly are the scenarios of what the real engine does not do.
var naiveOnly = []string{"radix.txt", "eviction.txt", "queue-order.txt"}

// TestScenarios runs the scenario files of every policy on the naive engine and on the real one.
func TestScenarios(t *testing.T) {
	for _, engine := range []struct {
		name     string
		run      Runner
		policies []Policy
	}{
		{"naive", Naive, append(Policies(), script)},
		{"engine", runEngine, append(Policies(), script)},
	} {
		for _, p := range engine.policies {
			t.Run(engine.name+"/"+p.Name, func(t *testing.T) {
				datadriven.Walk(t, "testdata/"+p.Name, func(t *testing.T, path string) {
					if engine.name == "engine" && slices.Contains(naiveOnly, filepath.Base(path)) {
						t.Skip("only the naive engine does this")
					}
					env := Env{Run: engine.run, Policies: []Policy{script}}
					datadriven.RunTest(t, path, env.Handle)
				})
			})
		}
	}
}

func runEngine(cfg sim.Config, src workload.Source, obs sim.Observer) error {
	e, err := sim.NewEngine(cfg, src, obs)
	if err != nil {
		return err
	}
	return e.Run(context.Background())
}
