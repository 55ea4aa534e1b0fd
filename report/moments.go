package report

import (
	"math"
	"strconv"
)

// Means and quantiles go into results, whose bytes are to be the same on every platform: sums are taken in the order of the
// values, which gonum's assembly does not do, and quantiles, whose last bits hang on how a processor takes logarithms, are
// rounded.

// mean is the mean of values; NaN of none.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// squares is the sum of the squares of what the values differ from their mean by.
func squares(values []float64) float64 {
	center, sum, rest := mean(values), 0.0, 0.0
	for _, v := range values {
		d := v - center
		sum += float64(d * d)
		rest += d // which is not quite 0
	}
	return max(0, sum-float64(rest*rest)/float64(len(values)))
}

// variance is that of a sample; NaN of a single value.
func variance(values []float64) float64 { return squares(values) / float64(len(values)-1) }

// standardDeviation is that of a sample; NaN of a single value.
func standardDeviation(values []float64) float64 { return math.Sqrt(variance(values)) }

// rounded is a quantile or a probability without the digits that depend on the platform.
func rounded(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 12, 64), 64)
	return v
}
