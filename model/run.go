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

// windowRate is a time per token of the decodes' context, in layers that attend to a window.
type windowRate struct {
	window   int64
	perToken int64 // femtoseconds
}

// windowRates are rates of layers with different windows.
type windowRates []windowRate

func (rs *windowRates) add(window, perToken int64) {
	for i := range *rs {
		if r := &(*rs)[i]; r.window == window {
			r.perToken = min(r.perToken+perToken, maxFemtos)
			return
		}
	}
	*rs = append(*rs, windowRate{window, perToken})
}

// value returns the time for a summed context of the decodes.
func (rs windowRates) value(context, decodes int64) (sum int64) {
	for i := range rs {
		sum = saturate(sum, inWindow(context, decodes, rs[i].window), rs[i].perToken)
	}
	return sum
}

// linear returns the time for a summed context with its growth per iteration, and the number of iterations for which it
// holds.
func (rs windowRates) linear(context, decodes int64) linear {
	l := linear{value: rs.value(context, decodes), run: maxRun}
	mean := (context + decodes - 1) / decodes
	for i := range rs {
		w := rs[i].window
		if mean > w || (mean == w && context == w*decodes) {
			continue
		}
		l.slope += decodes * rs[i].perToken
		l.run = min(l.run, w-mean+1)
	}
	return l
}

// inWindow returns the part of the summed context that is inside the windows.
func inWindow(context, decodes, window int64) int64 {
	return min(context, saturate(0, decodes, window))
}
