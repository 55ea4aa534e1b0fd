package model_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"clifftop/model"
)

// TestContextDeviation compares sums of squares with the definition, and keeps the deviation while all lengths grow.
func TestContextDeviation(t *testing.T) {
	for _, c := range []struct {
		lengths []int64
		want    int64
	}{
		{nil, 0}, {[]int64{7}, 0}, {[]int64{5, 5, 5}, 0}, {[]int64{100, 300}, 100}, {[]int64{1, 2, 3, 4}, 1},
		{[]int64{1, 1, 1, 1e9}, 433012701}, {[]int64{1 << 31, 1 << 32}, 0},
	} {
		if got := deviation(c.lengths, 0); got != c.want {
			t.Errorf("%v: %d, want %d", c.lengths, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.Int64Range(1, 1<<20), 2, 300).Draw(t, "lengths")
		mean, variance := 0.0, 0.0
		for _, x := range lengths {
			mean += float64(x) / float64(len(lengths))
		}
		for _, x := range lengths {
			variance += (float64(x) - mean) * (float64(x) - mean) / float64(len(lengths))
		}
		if got := deviation(lengths, 0); math.Abs(float64(got)-math.Sqrt(variance)) > 0.501 {
			t.Errorf("%d, want %v", got, math.Sqrt(variance))
		}
		if later := deviation(lengths, 12345); later != deviation(lengths, 0) {
			t.Errorf("%d after 12345 steps", later)
		}
	})
}

// deviation returns the deviation of lengths that have grown by some tokens each.
func deviation(lengths []int64, more int64) int64 {
	sum, squares := int64(0), uint64(0)
	for _, x := range lengths {
		sum += x + more
		squares += uint64((x + more) * (x + more))
	}
	return model.ContextDeviation(len(lengths), sum, squares)
}
