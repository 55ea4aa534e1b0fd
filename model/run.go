package model

// linear is a length that grows by slope from one iteration to the next, for a run of iterations.
type linear struct {
	value, slope int64
	run          int64
}

// max is the greater of two lengths, for as long as the greater one stays so.
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

// maxRun caps the number of iterations that are promised at once.
const maxRun = 1 << 30

// longRun is the length from which a run is checked for the size of its last iteration.
const longRun = 1 << 10

// bound cuts a run so that no iteration of it exceeds what is computed with.
func bound(first, slope, run int64) int64 {
	run = min(run, maxRun)
	if slope > 0 {
		run = min(run, max(1, (maxFemtos-first)/slope))
	}
	return run
}

// windowed is the growth per iteration of a length that is linear in the summed context of the
// decodes, at one rate for full layers and at another for windowed ones, up to the window; and the
// number of iterations for which it holds.
func windowed(perToken *[2]int64, window, decodes, context int64) (slope, run int64) {
	mean := (context + decodes - 1) / decodes
	if mean > window || (mean == window && context == window*decodes) {
		return decodes * perToken[0], maxRun
	}
	return decodes * (perToken[0] + perToken[1]), min(window-mean+1, maxRun)
}

// inWindow is the part of the summed context that is inside the windows.
func inWindow(context, decodes, window int64) int64 {
	return min(context, saturate(0, decodes, window))
}
