package stats

import (
	"math"
	"math/bits"
	"slices"
	"sort"
)

// Percentiles are quantiles of values and of n-len(values) infinite ones, interpolated linearly between
// ranks. The quantiles asked for are in ascending order. It overwrites values.
func Percentiles(values []float64, n int, quantiles ...float64) []float64 {
	_, _, at := Describe(values, n, quantiles...)
	return at
}

// Describe returns the mean of values, their standard deviation as a population, and their [Percentiles]. It overwrites
// values.
func Describe(values []float64, n int, quantiles ...float64) (mean, sd float64, at []float64) {
	ranks := make([]int, 0, 2*len(quantiles))
	for _, q := range quantiles {
		rank := int(float64(n-1) * q)
		ranks = append(ranks, rank, min(rank+1, n-1))
	}
	found := make([]float64, len(ranks))
	known := 0
	for known < len(ranks) && ranks[known] < len(values) {
		known++
	}
	for i := range found[known:] {
		found[known+i] = math.Inf(1)
	}
	slices.Sort(ranks[:known])
	mean, squares := ordered(values, ranks[:known], found)
	at = make([]float64, len(quantiles))
	for i, q := range quantiles {
		where := float64(n-1) * q
		rank := int(where)
		lo := found[sort.SearchInts(ranks, rank)]
		at[i] = lo
		if frac := where - float64(rank); frac > 0 && !math.IsInf(lo, 1) {
			at[i] += frac * (found[sort.SearchInts(ranks, rank+1)] - lo)
		}
	}
	return mean, math.Sqrt(squares / float64(len(values))), at
}

// ordered finds the values of the given ranks, which ascend and count from 0. It sorts few values. Of many it
// looks, in two passes, only for those that lie near the wanted ones. The same passes give the mean of all values and
// the sum of their squared deviations from it. It overwrites values.
func ordered(values []float64, ranks []int, found []float64) (mean, squares float64) {
	const few = 1 << 11
	if len(values) <= few {
		mean = Mean(values)
		for _, v := range values {
			squares += (v - mean) * (v - mean)
		}
		slices.Sort(values)
		for i, rank := range ranks {
			found[i] = values[rank]
		}
		return mean, squares
	}
	of := partsOf(values)
	var counts [parts]int
	for _, v := range values {
		mean += v
		counts[of.part(v)]++
	}
	mean /= float64(len(values))
	var wanted [parts]bool
	inner := make([]int, len(ranks)) // ranks among the values of wanted parts
	next, below, skipped := 0, 0, 0
	for part, n := range counts {
		for below += n; next < len(ranks) && ranks[next] < below; next++ {
			inner[next] = ranks[next] - skipped
			wanted[part] = true
		}
		if !wanted[part] {
			skipped += n
		}
	}
	near := values[:0]
	for _, v := range values {
		squares += (v - mean) * (v - mean)
		if wanted[of.part(v)] {
			near = append(near, v)
		}
	}
	if len(near) <= len(values)/2 {
		ordered(near, inner, found)
		return mean, squares
	}
	slices.Sort(near)
	for i, rank := range inner {
		found[i] = near[rank]
	}
	return mean, squares
}

const parts = 1 << 12

// division divides numbers that are not negative, which are in the order of their bits, into parts from the number
// with the bits base on. The first and the last part also have the numbers outside.
type division struct {
	base  int64
	shift uint
}

// partsOf makes parts for the range of a few of the values.
func partsOf(values []float64) division {
	const looks = 1 << 6
	base, most := int64(math.MaxInt64), int64(0)
	for i := 0; i < len(values); i += max(1, len(values)/looks) {
		b := int64(math.Float64bits(values[i]))
		base, most = min(base, b), max(most, b)
	}
	return division{base, uint(max(0, bits.Len64(uint64(most-base))-bits.Len(parts-1)))}
}

func (d division) part(v float64) int64 {
	return min(max((int64(math.Float64bits(v))-d.base)>>(d.shift&63), 0), parts-1)
}
