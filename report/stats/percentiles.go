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
	ordered(values, ranks[:known], found)
	at := make([]float64, len(quantiles))
	for i, q := range quantiles {
		where := float64(n-1) * q
		rank := int(where)
		lo := found[sort.SearchInts(ranks, rank)]
		at[i] = lo
		if frac := where - float64(rank); frac > 0 && !math.IsInf(lo, 1) {
			at[i] += frac * (found[sort.SearchInts(ranks, rank+1)] - lo)
		}
	}
	return at
}

// ordered finds the values of the given ranks, which ascend and count from 0. It sorts few values. Of many it
// looks, in two passes, only for those that lie near the wanted ones. It overwrites values.
func ordered(values []float64, ranks []int, found []float64) {
	const few, parts = 1 << 11, 1 << 12
	if len(ranks) == 0 {
		return
	}
	if len(values) <= few {
		slices.Sort(values)
		for i, rank := range ranks {
			found[i] = values[rank]
		}
		return
	}
	// Numbers that are not negative are in the order of their bits.
	least, most := values[0], values[0]
	for _, v := range values {
		if v < least {
			least = v
		} else if v > most {
			most = v
		}
	}
	base := math.Float64bits(least)
	shift := max(0, bits.Len64(math.Float64bits(most)-base)-12)
	var counts [parts]int
	for _, v := range values {
		counts[(math.Float64bits(v)-base)>>shift&(parts-1)]++
	}
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
		if wanted[(math.Float64bits(v)-base)>>shift&(parts-1)] {
			near = append(near, v)
		}
	}
	if len(near) <= len(values)/2 {
		ordered(near, inner, found)
		return
	}
	slices.Sort(near)
	for i, rank := range inner {
		found[i] = near[rank]
	}
}
