package validation

import "clifftop/model"

// coldTimer lengthens the first iterations with prefill. It serves one run: it counts them.
type coldTimer struct {
	model.StepTimer
	left   int
	femtos int64
}

func newColdTimer(t model.StepTimer) *coldTimer {
	return &coldTimer{StepTimer: t, left: coldSteps, femtos: coldSeconds * 1e15}
}

// Span implements [model.StepTimer].
func (c *coldTimer) Span(b *model.Batch) (first, slope int64, n int) {
	first, slope, n = c.StepTimer.Span(b)
	if len(b.Chunks) > 0 && c.left > 0 {
		c.left--
		first += c.femtos
	}
	return first, slope, n
}
