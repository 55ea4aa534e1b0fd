package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"clifftop/report/stats"
)

// TestShareBounds: the bounds at which all trials, or none, have the probability of the error.
func TestShareBounds(t *testing.T) {
	for _, n := range []int{1, 20, 29} {
		want := math.Pow(.05, 1/float64(n))
		if got := stats.ShareAtLeast(n, n, .95); math.Abs(got-want) > 1e-6 {
			t.Errorf("%d of %d show %v, want %v", n, n, got, want)
		}
		if got := stats.ShareAtMost(0, n, .95); math.Abs(got-(1-want)) > 1e-6 {
			t.Errorf("0 of %d show at most %v, want %v", n, got, 1-want)
		}
	}
	// Tables of Clopper and Pearson: 8 of 10, two-sided 95 %.
	if low, high := stats.ShareAtLeast(8, 10, .975), stats.ShareAtMost(8, 10, .975); math.Abs(low-.4439) > 1e-4 ||
		math.Abs(high-.9748) > 1e-4 {
		t.Errorf("8 of 10: %v to %v, want 0.4439 to 0.9748", low, high)
	}
}

// TestQuantileCoverage: of 2,000 samples, 95 % have an interval that covers the quantile.
func TestQuantileCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{10, 29} {
		const times, want = 2000, 1.2815515655 // the 90th percentile
		covered := 0
		for range times {
			x := make([]float64, n)
			for i := range x {
				x[i] = rng.NormFloat64()
			}
			if _, low, high := stats.QuantileInterval(x, .9, .95); low <= want && want <= high {
				covered++
			}
		}
		if share := float64(covered) / times; share < .935 || share > .965 {
			t.Errorf("%d values: the interval covers the quantile in %v of samples, want 0.95", n, share)
		}
	}
}

// TestQuantileOrder: 29 values are too few for an upper end of the 90th percentile at 95 %, and 40 are enough.
func TestQuantileOrder(t *testing.T) {
	values := func(n int) (list []float64) {
		for i := range n {
			list = append(list, float64(i))
		}
		return list
	}
	if v, low, high := stats.QuantileOrder(values(29), .9, .95); v != 26 || low != 22 || !math.IsInf(high, 1) {
		t.Errorf("29 values: %v, %v to %v", v, low, high)
	}
	if v, low, high := stats.QuantileOrder(values(40), .9, .95); v != 35 || low != 31 || high != 39 {
		t.Errorf("40 values: %v, %v to %v", v, low, high)
	}
}
