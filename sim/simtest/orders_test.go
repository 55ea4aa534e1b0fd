package simtest

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"clifftop/sim/simtest/naive"
)

// TestOrders runs the scenario files of orders of the queue on the naive engine and on the real one.
func TestOrders(t *testing.T) {
	for name, run := range map[string]Runner{"naive": naive.Run, "engine": runEngine} {
		t.Run(name, func(t *testing.T) {
			datadriven.Walk(t, "testdata/orders", func(t *testing.T, path string) {
				env := Env{Run: run}
				datadriven.RunTest(t, path, env.Handle)
			})
		})
	}
}
