package validation

import "clifftop/model"

// coldTimer lengthens the first iterations with prefill. It serves one run: it counts them.
type coldTimer struct {
	model.StepTimer
	left   int
	femtos int64
}

func newColdTimer(t model.StepTimer, s coldStart) *coldTimer {
	return &coldTimer{StepTimer: t, left: s.steps, femtos: int64(s.seconds * 1e15)}
}

// coldStart is what a fresh process has to compile: its first iterations with prefill last longer by so many seconds.
type coldStart struct {
	steps   int
	seconds float64
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
