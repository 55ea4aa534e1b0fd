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
