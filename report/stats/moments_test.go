package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// TestMoments holds means and variances against gonum's.
func TestMoments(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := 2; n < 200; n++ {
		values := make([]float64, n)
		for i := range values {
			values[i] = 1e6 + math.Exp(3*r.NormFloat64())
		}
		m, sd := stat.MeanStdDev(values, nil)
		if got := Mean(values); math.Abs(got-m) > 1e-9 {
			t.Errorf("%d values: the mean is %v, want %v", n, got, m)
		}
		if got := SD(values); math.Abs(got/sd-1) > 1e-7 {
			t.Errorf("%d values: the standard deviation is %v, want %v", n, got, sd)
		}
	}
	if v := Variance([]float64{0.1, 0.1, 0.1}); v != 0 {
		t.Errorf("values that are alike vary by %v", v)
	}
	if v := Variance([]float64{3}); !math.IsNaN(v) {
		t.Errorf("a single value varies by %v", v)
	}
	if v := Rounded(2.2621571627409915); v != 2.26215716274 {
		t.Errorf("a quantile is rounded to %v", v)
	}
}
