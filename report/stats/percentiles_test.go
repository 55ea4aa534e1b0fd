package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestOrdered(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for name, draw := range map[string]func() float64{
		"lognormal": func() float64 { return math.Exp(rng.NormFloat64()) },
		"constant":  func() float64 { return 3 },
		"two":       func() float64 { return float64(rng.IntN(2)) },
		"zeros":     func() float64 { return math.Max(0, rng.NormFloat64()) },
		"outlier":   func() float64 { return 1 + rng.Float64()*1e-9 + 1e12*float64(rng.IntN(1000)/999) },
	} {
		for _, n := range []int{1, 100, 5_000, 100_000} {
			values := make([]float64, n)
			for i := range values {
				values[i] = draw()
			}
			sorted := slices.Clone(values)
			slices.Sort(sorted)
			ranks := []int{0, n / 3, n / 3, n / 2, n - n/20 - 1, n - 1}
			found := make([]float64, len(ranks))
			ordered(values, ranks, found)
			for i, rank := range ranks {
				if found[i] != sorted[rank] {
					t.Errorf("%s, n=%d: rank %d is %v, want %v", name, n, rank, found[i], sorted[rank])
				}
			}
		}
	}
}
