package estimate

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/mathext"
)

// exceeds returns the probability that a Poisson variable is above n.
func exceeds(mean float64, n int) float64 {
	if mean <= 0 {
		return 0
	}
	return mathext.GammaIncReg(float64(n)+1, mean)
}

// quantile returns the smallest n that a Poisson variable exceeds with a probability of at most 1-p.
func quantile(mean, p float64) int {
	high := int(mean+12*math.Sqrt(mean)) + 12
	return sort.Search(high, func(n int) bool { return exceeds(mean, n) <= 1-p })
}
