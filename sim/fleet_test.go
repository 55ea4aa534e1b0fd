package sim_test

import (
	"testing"

	"clifftop/sim/route"
	"clifftop/sim/simtest"
)

// TestFleetTruth demands that each replica of a fleet does what the naive engine does with the same requests.
func TestFleetTruth(t *testing.T) {
	for _, p := range simtest.Policies() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			simtest.VerifyFleet(t, p, func() route.Router { return new(route.RoundRobin) })
		})
	}
}
