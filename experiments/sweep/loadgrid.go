package sweep

import (
	"math"
	"slices"

	"clifftop/experiments/scenario"
	"clifftop/experiments/steady"
)

// A sweep that chooses enough loads keeps refinements of them for a second look around the peak, if the peak is not
// known from the saturation rates.
const (
	refinements = 4
	minRefined  = 8
)

// Loads chooses loads for a curve of a system: rates in requests per second or, in a closed loop, numbers of users.
// They go from near idle to beyond saturation. There are none if no request completes.
func Loads(system *steady.Saturation, u *scenario.Setup, points int) []float64 {
	load := system.Throughput
	if load == 0 {
		return nil
	}
	if u.Traffic.Closed {
		load = max(1, load*(u.Traffic.Spec.Think().Seconds()+system.Service)) // those that think or are served
	}
	return loadGrid(load, u.Traffic.Closed, points)
}

// loadGrid spreads points from near idle, through saturation, where they are densest, to beyond. Numbers of users
// begin with 1 and double.
func loadGrid(saturation float64, users bool, points int) []float64 {
	shares := []float64{0.05, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.9, 0.97, 1.05, 1.2, highestShare}
	var values []float64
	add := func(v float64) {
		v = loadValue(v, users)
		if len(values) == 0 || v > values[len(values)-1] {
			values = append(values, v)
		}
	}
	if users {
		shares = []float64{0.65, 1, 1.5, 2.5}
		low := 0
		for n := 1.; n < 0.55*saturation && low < points; n *= 2 {
			low++
		}
		ratio := 2.
		if most := max(1, points*3/5); low > most {
			low = most
			ratio = math.Pow(max(1, 0.5*saturation), 1/max(1, float64(low-1)))
		}
		add(1)
		for i := 1; i < low; i++ {
			add(math.Pow(ratio, float64(i)))
		}
		points -= max(1, low)
	}
	for i := range points {
		at := 0.0
		if points > 1 {
			at = float64(i) * float64(len(shares)-1) / float64(points-1)
		}
		k := min(int(at), len(shares)-2)
		add(saturation * (shares[k] + (shares[k+1]-shares[k])*(at-float64(k))))
	}
	return values
}

// refine gives loads around the peak that others show: between its neighbours, or beyond it, where it is said
// to lie at the edge of the loads.
func refine(values []float64, peak float64, atEdge, users bool) []float64 {
	i := slices.Index(values, peak)
	if i < 0 {
		return nil
	}
	var at []float64
	between := func(low, high float64, n int) {
		for k := 1; k <= n; k++ {
			at = append(at, low+(high-low)*float64(k)/float64(n+1))
		}
	}
	switch {
	case atEdge && i < len(values)-1: // what lies beyond cannot be judged
	case atEdge:
		for _, factor := range []float64{1.25, 1.6, 2, 2.6} {
			at = append(at, peak*factor)
		}
	case len(values) == 1:
	case i == 0:
		between(peak, values[1], refinements)
	case i == len(values)-1:
		between(values[i-1], peak, refinements)
	default:
		between(values[i-1], peak, refinements/2)
		between(peak, values[i+1], refinements/2)
	}
	var more []float64
	for _, v := range at {
		if v = loadValue(v, users); !slices.Contains(values, v) && !slices.Contains(more, v) {
			more = append(more, v)
		}
	}
	return more
}

// loadValue rounds a load to what reads well: a whole number of users, or three digits.
func loadValue(v float64, users bool) float64 {
	if users {
		return max(1, math.Round(significant(v, 3)))
	}
	return significant(v, 3)
}

// significant rounds to so many significant digits.
func significant(x float64, digits int) float64 {
	if x == 0 {
		return 0
	}
	scale := math.Pow(10, float64(digits)-1-math.Floor(math.Log10(math.Abs(x))))
	if scale >= 1 {
		return math.Round(x*scale) / scale
	}
	inverse := math.Round(1 / scale)
	return math.Round(x/inverse) * inverse
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
