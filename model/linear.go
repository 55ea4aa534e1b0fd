package model

import "clifftop/sim/clock"

// Linear is a step timer for comparison with theory: each iteration takes A + B·n, where n counts the decoding
// sequences and the prefill chunks. Drafts, context and prompt length have no effect.
type Linear struct {
	A, B clock.Duration
}

var (
	_ StepTimer = (*Kernels)(nil)
	_ StepTimer = (*Linear)(nil)
)

// NewLinear returns the timer a + b·n. Negative lengths count as 0.
func NewLinear(a, b clock.Duration) *Linear { return &Linear{max(a, 0), max(b, 0)} }

// Span implements [StepTimer].
func (l *Linear) Span(b *Batch) (first, slope int64, n int) {
	b1 := saturate(0, int64(l.B), clock.FemtosPerPico)
	first = saturate(saturate(0, int64(l.A), clock.FemtosPerPico), b1, int64(b.Decodes+len(b.Chunks)))
	if len(b.Chunks) > 0 {
		return first, 0, 1
	}
	return first, 0, maxRun
}
