package collect

import (
	"math"
	"testing"

	"clifftop/report/stats"
)

func TestLagOne(t *testing.T) {
	// Deviations -2 … 2: products 2 + 0 + 0 + 2 over squares 4+1+0+1+4.
	about(t, "of a ramp", lagOne([]float64{1, 2, 3, 4, 5}), .4, 1e-12)
	about(t, "of a zigzag", lagOne([]float64{1, -1, 1, -1}), -.75, 1e-12)
	about(t, "of a constant", lagOne([]float64{.1, .1, .1}), 0, 0)
}

func TestAlikeness(t *testing.T) {
	about(t, "of independent values", alikeness(0), 1, 0)
	about(t, "of values that alternate", alikeness(-.5), 1, 0)
	about(t, "of values half alike", alikeness(.5), math.Sqrt(3), 1e-12)
}

// Batches that resemble their neighbours are made longer, and where that does not help there is no interval.
func TestBatchesAreMadeIndependent(t *testing.T) {
	series := func(of func(i int) float64) *fraction {
		f := &fraction{path: "x", num: make([]float64, 420), den: make([]float64, 420)}
		for i := range f.num {
			f.num[i], f.den[i] = of(i), 1
		}
		return f
	}
	zigzag := series(func(i int) float64 { return 10 + float64(i%2) })
	if low, high, ok := zigzag.interval(); !ok || low != 10.5 || high != 10.5 {
		t.Errorf("a regular change: %v to %v, %v", low, high, ok)
	}
	if low, high, ok := series(func(i int) float64 { return float64(i) }).interval(); ok {
		t.Errorf("a trend has the interval %v to %v", low, high)
	}
	// Stretches of 28 buckets are two batches of 14 each, which are too much alike, or one of 28, which are less so.
	slow := series(func(i int) float64 { return 10 + []float64{2, 1, 0, -2, -1}[i/28%5] })
	low, high, ok := slow.interval()
	half := (high - low) / 2
	_, _, values := slow.batches(mostBatches / 2)
	about(t, "of neighbours", lagOne(values), 8./30, 1e-12)
	_, want := stats.MeanInterval(values, stats.Confidence)
	if want *= math.Sqrt(2); !ok || math.Abs(half-want) > 1e-9 { // r = 8/30 + 1/15 = 1/3
		t.Errorf("±%v, %v, want ±%v from %d batches", half, ok, want, mostBatches/2)
	}
}

// about checks a number up to a tolerance.
func about(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
