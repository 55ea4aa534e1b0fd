package sim_test

import (
	"testing"

	"clifftop/sim/simtest"
)

// TestTruth checks that the naive engine, the engine without spans and the engine with spans of full length give
// the same results, token for token, with every policy.
func TestTruth(t *testing.T) {
	for _, p := range simtest.Policies() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			simtest.Verify(t, p)
		})
	}
}

// TestPipelinesTruth is the same for engines with several stages, which have as many iterations in flight.
func TestPipelinesTruth(t *testing.T) {
	for _, p := range simtest.Policies() {
		if p.Name != "vllm" && p.Name != "vllm-variants" {
			continue // they do not go with a pipeline
		}
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			simtest.VerifyPipeline(t, p)
		})
	}
}
