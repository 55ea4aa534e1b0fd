package model

// linear is a time that grows by slope per iteration, for run iterations.
type linear struct {
	value, slope int64
	run          int64
}

// max returns the greater of two times, for as long as it stays the greater one.
func (a linear) max(b linear) linear {
	if b.value > a.value || (b.value == a.value && b.slope > a.slope) {
		a, b = b, a
	}
	a.run = min(a.run, b.run)
	if gain := b.slope - a.slope; gain > 0 {
		a.run = min(a.run, (a.value-b.value)/gain+1)
	}
	return a
}

// maxRun limits the number of iterations per Span.
const maxRun = 1 << 30

// longRun is the number of iterations above which bound checks the last one for overflow.
const longRun = 1 << 10

// bound shortens a run so that no iteration exceeds maxFemtos.
func bound(first, slope, run int64) int64 {
	run = min(run, maxRun)
	if slope > 0 {
		run = min(run, max(1, (maxFemtos-first)/slope))
	}
	return run
}

// windowed returns the growth per iteration of a time that is linear in the summed context of the decodes, with one
// rate for full layers and another one for windowed layers up to the window, and the number of iterations for which
// it holds.
func windowed(perToken *[2]int64, window, decodes, context int64) (slope, run int64) {
	mean := (context + decodes - 1) / decodes
	if mean > window || (mean == window && context == window*decodes) {
		return decodes * perToken[0], maxRun
	}
	return decodes * (perToken[0] + perToken[1]), min(window-mean+1, maxRun)
}

// inWindow returns the part of the summed context that is inside the windows.
func inWindow(context, decodes, window int64) int64 {
	return min(context, saturate(0, decodes, window))
}
