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
			simtest.VerifyFleet(t, p, func(route.Identity) route.Router { return new(route.RoundRobin) })
		})
	}
}

// TestRoutersTruth demands the same with every router, on policies with the caches that routers may look into.
func TestRoutersTruth(t *testing.T) {
	for _, p := range simtest.Policies() {
		if p.Name != "vllm" && p.Name != "sglang" {
			continue
		}
		for _, r := range simtest.Routers() {
			t.Run(p.Name+"/"+r.Name, func(t *testing.T) {
				t.Parallel()
				simtest.VerifyFleet(t, p, r.New)
			})
		}
	}
}
