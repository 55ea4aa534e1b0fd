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

// TestLivesTruth demands that each life of a replica that fails, drains or is scaled is that of the naive engine.
func TestLivesTruth(t *testing.T) {
	for _, p := range simtest.Policies() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			simtest.VerifyLives(t, p, func(route.Identity) route.Router { return new(route.RoundRobin) })
		})
	}
	for _, r := range simtest.Routers() {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			simtest.VerifyLives(t, simtest.Policies()[0], r.New)
		})
	}
}

// TestLivesOfTiersTruth demands the same of engines with tiers: those that persist are found as they were left, others are
// empty again.
func TestLivesOfTiersTruth(t *testing.T) {
	simtest.VerifyLivesOfTiers(t, simtest.Policies()[0], func(route.Identity) route.Router { return new(route.RoundRobin) })
}

// TestLivesOfPipelinesTruth demands the same of engines with pipeline stages, all of which end together.
func TestLivesOfPipelinesTruth(t *testing.T) {
	simtest.VerifyLivesOfPipelines(t, simtest.Policies()[0], func(route.Identity) route.Router { return new(route.RoundRobin) })
}

// TestLivesOfLockstepTruth demands that groups of ranks in lock step fail, drain and are scaled as one.
func TestLivesOfLockstepTruth(t *testing.T) {
	simtest.VerifyLivesOfLockstep(t, simtest.Policies()[0], func() route.Router { return new(route.RoundRobin) })
}

// TestDividedTruth demands the same where some replicas compute prompts for others, over one network.
func TestDividedTruth(t *testing.T) {
	simtest.VerifyDivided(t, simtest.Policies()[0])
}
