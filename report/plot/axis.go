package plot

import (
	"math"

	"gonum.org/v1/plot/vg"

	"clifftop/report/chart"
)

// tick is a value of an axis with its label.
type tick struct {
	at   float64
	text string
}

// axis maps values to lengths, on a linear or a logarithmic scale.
type axis struct {
	title    string
	log      bool
	air      float64 // free part above the values of a linear axis
	min, max float64
	unit     chart.Unit // of labels
	places   []string   // names of the values 0, 1, 2 …, which take the place of numbers
	ticks    []tick
	from, to vg.Length // set when drawn
}

func (a *axis) at(v float64) vg.Length {
	lo, hi := a.min, a.max
	if a.log {
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(v)
	}
	return a.from + vg.Length((v-lo)/(hi-lo))*(a.to-a.from)
}

func (a *axis) shows(v float64) bool {
	const slack = 1e-9
	span := math.Max(math.Abs(a.min), math.Abs(a.max)) * slack
	return v >= a.min-span && v <= a.max+span && (!a.log || v > 0)
}

// widest is the greatest ratio that a logarithmic axis spans; what is smaller is left out.
const widest = 1e8

// spread sets the range to hold the values, with room, and on whole labels. It reports whether
// there was anything to hold. A linear axis of amounts starts at zero.
func (a *axis) spread(values []float64, labels int) bool {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if finite(v) && (!a.log || v > 0) {
			lo, hi = math.Min(lo, v), math.Max(hi, v)
		}
	}
	if lo > hi {
		a.min, a.max, a.log = 0, 1, false
		a.ticks = nil
		return false
	}
	if a.log {
		lo = math.Max(lo, hi/widest)
		a.min, a.max = oneTwoFive(lo*0.96, false), oneTwoFive(hi*1.05, true)
		if a.min == a.max {
			a.min, a.max = oneTwoFive(a.min*0.99, false), oneTwoFive(a.max*1.01, true)
		}
	} else {
		a.min, a.max = math.Min(0, lo), hi
		if a.min == a.max {
			a.max = a.min + 1
		}
		// The topmost point needs air; a whole step of it would be too much.
		a.max += (a.max - a.min) * max(a.air, 0.04)
	}
	a.setTicks(labels)
	return true
}

// setTicks chooses about n labels, and rather fewer.
func (a *axis) setTicks(n int) {
	a.ticks = nil
	if a.places != nil {
		for i, name := range a.places {
			a.ticks = append(a.ticks, tick{float64(i), name})
		}
		return
	}
	if a.log {
		a.ticks = logTicks(a.min, a.max, n, func(v float64) string { return written(a.unit, v) })
		return
	}
	span := a.max - a.min
	step := oneTwoFive(span/float64(max(n, 1))*0.9, true)
	for k := math.Ceil(a.min/step - 1e-9); k*step <= a.max*(1+1e-9); k++ {
		v := k * step
		if v == 0 {
			v = 0 // not -0
		}
		a.ticks = append(a.ticks, tick{v, written(a.unit, v)})
	}
}

// logTicks labels 1-2-5 multiples, or 1-5, or powers of ten, or of a thousand …, as fits in n labels.
func logTicks(lo, hi float64, n int, format func(float64) string) []tick {
	for _, digits := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		if t := ticksOf(lo, hi, 1, digits, format); len(t) <= max(n, 2) {
			return t
		}
	}
	for stride := 2; ; stride++ {
		if t := ticksOf(lo, hi, stride, []float64{1}, format); len(t) <= max(n, 2) {
			return t
		}
	}
}

func ticksOf(lo, hi float64, stride int, digits []float64, format func(float64) string) []tick {
	var ticks []tick
	first, last := int(math.Floor(math.Log10(lo)))-1, int(math.Ceil(math.Log10(hi)))+1
	for e := first; e <= last; e++ {
		if e%stride != 0 {
			continue
		}
		for _, d := range digits {
			if v := d * math.Pow10(e); v >= lo*(1-1e-9) && v <= hi*(1+1e-9) {
				ticks = append(ticks, tick{v, format(v)})
			}
		}
	}
	return ticks
}

// oneTwoFive is the nearest 1, 2 or 5 times a power of ten that is not above v, or not below it.
func oneTwoFive(v float64, up bool) float64 {
	if !(v > 0) {
		return 1
	}
	e := math.Pow10(int(math.Floor(math.Log10(v))))
	steps := []float64{0.5, 1, 2, 5, 10}
	if up {
		for _, s := range steps {
			if s*e >= v*(1-1e-9) {
				return s * e
			}
		}
		return 20 * e
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i]*e <= v*(1+1e-9) {
			return steps[i] * e
		}
	}
	return 0.2 * e
}

// clip ends a piece of a straight line where it rises above a linear vertical axis.
func clip(a, b xy, x, y *axis) (xy, xy) {
	if top := y.max; !y.log && a.y < top && b.y > top {
		part := (top - a.y) / (b.y - a.y)
		switch {
		case !x.log:
			b.x = a.x + part*(b.x-a.x)
		case a.x > 0:
			b.x = a.x * math.Pow(b.x/a.x, part)
		}
		b.y = top
	}
	return a, b
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
