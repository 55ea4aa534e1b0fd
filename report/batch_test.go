package report

import (
	"math"
	"testing"
)

func TestLagOne(t *testing.T) {
	// Deviations -2 … 2: products 2 + 0 + 0 + 2 over squares 4+1+0+1+4.
	within(t, "of a ramp", lagOne([]float64{1, 2, 3, 4, 5}), .4, 1e-12)
	within(t, "of a zigzag", lagOne([]float64{1, -1, 1, -1}), -.75, 1e-12)
	within(t, "of a constant", lagOne([]float64{.1, .1, .1}), 0, 0)
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
	// Stretches of 28 buckets, two batches of 14 each, alternate in threes: longer batches of 28 do not resemble each other.
	slow := series(func(i int) float64 { return 10 + []float64{1, -1, 2, 0, -2}[i/28%5] })
	low, high, ok := slow.interval()
	half := (high - low) / 2
	_, _, values := slow.batches(mostBatches / 2)
	if _, want := MeanInterval(values, Confidence); !ok || math.Abs(half-want) > 1e-9 {
		t.Errorf("±%v, %v, want ±%v from %d batches", half, ok, want, mostBatches/2)
	}
}
