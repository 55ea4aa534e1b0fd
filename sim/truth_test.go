package sim_test

import (
	"testing"

	"clifftop/sim/simtest"
)

// TestTruth demands that the naive stepper, the engine stepped singly and the engine at full length tell
// the same story, token for token, whatever the policy.
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
