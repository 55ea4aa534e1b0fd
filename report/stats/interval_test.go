package stats

import (
	"math"
	"testing"
)

func nearly(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// t(4) at 95 % is 2.776, and s of 1…5 is 1.5811.
func TestMeanInterval(t *testing.T) {
	m, half := MeanInterval([]float64{1, 2, 3, 4, 5}, .95)
	nearly(t, "mean", m, 3, 0)
	nearly(t, "half width", half, 1.9632, 1e-4)
	if _, half := MeanInterval([]float64{7}, .95); !math.IsInf(half, 1) {
		t.Errorf("one value is known to ±%v", half)
	}
}

func TestRatioInterval(t *testing.T) {
	// Over equal denominators the jackknife is the t interval of a mean.
	a, ones := []float64{1, 2, 3, 4, 5}, []float64{1, 1, 1, 1, 1}
	r, half := RatioInterval(a, ones, .95)
	nearly(t, "ratio", r, 3, 1e-12)
	nearly(t, "half width", half, 1.9632, 1e-4)
	// A ratio that is the same in every pair is known exactly, whatever the sizes.
	r, half = RatioInterval([]float64{2, 6, 10}, []float64{1, 3, 5}, .95)
	nearly(t, "ratio", r, 2, 1e-12)
	nearly(t, "half width", half, 0, 1e-12)
	// (3+4)/(1+3) = 1.75; without one 4/3, without the other 3/1: se = √(½ Σ(θ-mean)²) = 0.8333, t(1) = 12.706.
	r, half = RatioInterval([]float64{3, 4}, []float64{1, 3}, .95)
	nearly(t, "ratio", r, 1.75, 1e-12)
	nearly(t, "half width", half, 10.5885, 1e-3)
	for _, rest := range []float64{0, 2} {
		if _, half := RatioInterval([]float64{1, rest}, []float64{1, 0}, .95); !math.IsInf(half, 1) {
			t.Errorf("with nothing to divide %v by, the ratio is known to ±%v", rest, half)
		}
	}
}

func TestWilson(t *testing.T) {
	low, high := wilson(8, 10, .95)
	nearly(t, "low", low, .4902, 1e-4)
	nearly(t, "high", high, .9433, 1e-4)
	// Nothing failed in 1,000: z²/(n+z²).
	low, high = wilson(1000, 1000, .95)
	nearly(t, "low", low, .99617, 1e-5)
	nearly(t, "high", high, 1, 1e-12)
	if low, high := wilson(0, 0, .95); low != 0 || high != 1 {
		t.Errorf("of no trials: %v to %v", low, high)
	}
}

// What the parts agree on is known no better than from independent trials, and where they differ not even so well.
func TestShareInterval(t *testing.T) {
	share, low, high := ShareInterval([]float64{100, 100}, []float64{100, 100}, .95)
	nearly(t, "share", share, 1, 0)
	nearly(t, "low", low, .98116, 1e-5)
	nearly(t, "high", high, 1, 0)
	share, low, high = ShareInterval([]float64{100, 50}, []float64{100, 100}, .95)
	nearly(t, "share", share, .75, 0)
	nearly(t, "low", low, 0, 0)
	nearly(t, "high", high, 1, 0)
}
