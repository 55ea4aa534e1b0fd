package stats

import (
	"math"
	"strconv"
)

// Results have the same bytes on every platform. Sums are therefore taken in the order of the values, which gonum's
// assembly does not do, and quantiles are rounded, because their last bits depend on the processor's logarithm.

// Mean is the mean of values; NaN of none.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// squares returns the sum of the squared deviations from the mean.
func squares(values []float64) float64 {
	center, sum, rest := Mean(values), 0.0, 0.0
	for _, v := range values {
		d := v - center
		sum += float64(d * d)
		rest += d // which is not quite 0
	}
	return max(0, sum-float64(rest*rest)/float64(len(values)))
}

// Variance returns the variance of a sample; NaN for a single value.
func Variance(values []float64) float64 { return squares(values) / float64(len(values)-1) }

// SD returns the standard deviation of a sample; NaN for a single value.
func SD(values []float64) float64 { return math.Sqrt(Variance(values)) }

// Rounded is a quantile or a probability without the digits that depend on the platform.
func Rounded(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	return v
}
