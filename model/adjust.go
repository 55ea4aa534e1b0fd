package model

import "math"

// Adjustment corrects the constants of a GPU by the user's measurements. Factors multiply the achieved fraction of
// peak or bandwidth; 0 means 1. No factor raises a fraction above its limit.
type Adjustment struct {
	GEMMCompute, GEMMMemory float64 // dense products
	AttentionCompute        float64 // of prefill chunks
	AttentionMemory         float64 // of decoding sequences
	MoECompute              float64 // grouped products over experts
	// StepSeconds and SequenceSeconds are added to the overhead of a step and of each sequence in it.
	StepSeconds, SequenceSeconds float64
}

// Adjusted returns the constants with an adjustment applied. Overheads do not become negative.
func (k KernelConstants) Adjusted(a Adjustment) KernelConstants {
	scale := func(v *float64, factor, most float64) {
		if factor > 0 {
			*v = min(*v*factor, math.Max(*v, most))
		}
	}
	for _, p := range []Precision{BF16, FP16, FP8, INT4, NVFP4, MXFP4} {
		scale(&k.GEMM[p].Compute, a.GEMMCompute, 1)
		scale(&k.GEMM[p].Memory, a.GEMMMemory, 1)
		scale(&k.MoE[p].Compute, a.MoECompute, 1)
	}
	for _, p := range []Precision{BF16, FP8} {
		scale(&k.Decode[p].Memory, a.AttentionMemory, 1)
	}
	scale(&k.Prefill.Compute, a.AttentionCompute, 1)
	scale(&k.Mixed.Compute, a.AttentionCompute, 1)
	k.Common.StepOverhead = max(0, k.Common.StepOverhead+a.StepSeconds)
	k.Common.SequenceOverhead = max(0, k.Common.SequenceOverhead+a.SequenceSeconds)
	return k
}
