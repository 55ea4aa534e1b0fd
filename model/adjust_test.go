package model

import "testing"

// TestAdjusted: Adjusted changes only the requested constants, and keeps them within their limits.
func TestAdjusted(t *testing.T) {
	var k KernelConstants
	for p := range k.GEMM {
		k.GEMM[p].Compute, k.GEMM[p].Memory, k.MoE[p].Memory = 0.8, 0.9, 1.05
	}
	k.Common.StepOverhead = 3e-4
	a := k.Adjusted(Adjustment{GEMMCompute: 0.5, GEMMMemory: 2, StepSeconds: -1})
	if g := a.GEMM[BF16]; g.Compute != 0.4 || g.Memory != 1 {
		t.Errorf("GEMM %+v, want half the compute and all of the bandwidth", g)
	}
	if a.Common.StepOverhead != 0 || a.MoE[BF16].Memory != 1.05 {
		t.Errorf("step overhead %v, MoE memory %v", a.Common.StepOverhead, a.MoE[BF16].Memory)
	}
	if k.Adjusted(Adjustment{}) != k {
		t.Error("no adjustment changes something")
	}
}
