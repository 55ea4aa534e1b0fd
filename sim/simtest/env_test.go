package simtest

import (
	"context"
	"testing"

	"github.com/cockroachdb/datadriven"

	"clifftop/sim"
	"clifftop/workload"
)

// TestVLLM runs the scenario files of vLLM's scheduler on the naive engine and on the real one.
func TestVLLM(t *testing.T) {
	for _, engine := range []struct {
		name string
		run  Runner
	}{
		{"naive", Naive},
		{"engine", runEngine},
	} {
		t.Run(engine.name, func(t *testing.T) {
			datadriven.Walk(t, "testdata/vllm", func(t *testing.T, path string) {
				env := Env{Run: engine.run}
				datadriven.RunTest(t, path, env.Handle)
			})
		})
	}
}

func runEngine(cfg sim.Config, src workload.Source, obs sim.Observer) error {
	e, err := sim.NewEngine(cfg, src, obs)
	if err != nil {
		return err
	}
	return e.Run(context.Background())
}
