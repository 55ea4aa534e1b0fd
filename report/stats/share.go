package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// ShareAtLeast returns the one-sided lower bound of a probability after k successes in n independent trials.
//
//	the p with P(Binomial(n, p) ≥ k) = 1 − confidence        C. J. Clopper, E. S. Pearson, Biometrika 26, 1934
//
// 20 of 20 show 86 % with a confidence of 95 %, and 29 of 29 show 90 %.
func ShareAtLeast(k, n int, confidence float64) float64 {
	if k <= 0 || n <= 0 {
		return 0
	}
	return Rounded(distuv.Beta{Alpha: float64(k), Beta: float64(n-k) + 1}.Quantile(1 - confidence))
}

// ShareAtMost is the one-sided upper bound; see [ShareAtLeast].
func ShareAtMost(k, n int, confidence float64) float64 { return 1 - ShareAtLeast(n-k, n, confidence) }

// QuantileInterval returns the estimate of a quantile of a normal distribution from a sample, and its interval. The
// estimate is the mean plus z standard deviations. The bounds are one-sided tolerance bounds, each with half of the
// error, in the approximation of the non-central t distribution by M. G. Natrella (Experimental Statistics, 1963;
// NIST/SEMATECH e-Handbook of Statistical Methods, 7.2.6.3):
//
//	x̄ + (z ± √(z² − a b))/a s    a = 1 − u²/2(n−1)    b = z² − u²/n
//
// where z and u are the normal quantiles of the share and of the confidence. The interval is infinite if the sample is
// too small.
func QuantileInterval(values []float64, share, confidence float64) (value, low, high float64) {
	normal := distuv.UnitNormal
	z, u := Rounded(normal.Quantile(share)), Rounded(normal.Quantile((1+confidence)/2))
	n := float64(len(values))
	center := Mean(values)
	if len(values) < 2 {
		return center, math.Inf(-1), math.Inf(1)
	}
	s := SD(values)
	value = center + z*s
	a, b := 1-u*u/(2*(n-1)), z*z-u*u/n
	root := z*z - a*b
	if s == 0 {
		return value, value, value
	}
	if a <= 0 || root < 0 {
		return value, math.Inf(-1), math.Inf(1)
	}
	return value, center + (z-math.Sqrt(root))/a*s, center + (z+math.Sqrt(root))/a*s
}

// QuantileOrder is a quantile of a distribution of any shape from a sorted sample, and its interval: values of the
// sample between which the quantile lies with the confidence, by the binomial distribution of the number of values
// below it. An end for which the sample is too small is infinite.
func QuantileOrder(sorted []float64, share, confidence float64) (value, low, high float64) {
	n := len(sorted)
	value, low, high = sorted[max(int(math.Ceil(share*float64(n)-1e-9)), 1)-1], math.Inf(-1), math.Inf(1)
	count := distuv.Binomial{N: float64(n), P: share}
	tail := (1 - confidence) / 2
	for j := 1; j <= n; j++ { // P(value j is above the quantile) is P(fewer than j values are below it)
		p := count.CDF(float64(j - 1))
		if p <= tail {
			low = sorted[j-1]
		}
		if p >= 1-tail {
			return value, low, sorted[j-1]
		}
	}
	return value, low, high
}
