package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Confidence is the confidence of the intervals in summaries, curves and verdicts.
const Confidence = .95

// quantileT is the two-sided quantile of Student's t with n-1 degrees of freedom; infinite for a single value.
func quantileT(n int, confidence float64) float64 {
	if n < 2 {
		return math.Inf(1)
	}
	return Rounded(distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile((1 + confidence) / 2))
}

// MeanInterval is the mean of independent values and half the width of its confidence interval by Student's t,
//
//	x̄ ± t(n-1) s/√n,
//
// which is infinite for a single value.
func MeanInterval(values []float64, confidence float64) (center, half float64) {
	if len(values) < 2 {
		return Mean(values), math.Inf(1)
	}
	return Mean(values), quantileT(len(values), confidence) * SD(values) / math.Sqrt(float64(len(values)))
}

// RatioInterval is Σa/Σb of independent pairs, and half the width of its confidence interval by the jackknife: each
// pair is left out in turn, and the spread of the remaining ratios estimates the error. It is infinite for a
// single pair, and where leaving a pair out leaves nothing to divide by.
//
//	θ₍ᵢ₎ = (Σa - aᵢ)/(Σb - bᵢ)    se² = (n-1)/n Σ(θ₍ᵢ₎ - mean)²        M. Quenouille 1956, J. Tukey 1958
func RatioInterval(a, b []float64, confidence float64) (ratio, half float64) {
	var sumA, sumB float64
	for i := range a {
		sumA += a[i]
		sumB += b[i]
	}
	n := float64(len(a))
	without := make([]float64, len(a))
	for i := range a {
		without[i] = (sumA - a[i]) / (sumB - b[i])
	}
	if center := Mean(without); len(a) < 2 || math.IsNaN(center) || math.IsInf(center, 0) {
		return sumA / sumB, math.Inf(1)
	}
	return sumA / sumB, quantileT(len(a), confidence) * math.Sqrt(squares(without)*(n-1)/n)
}

// wilson is the interval of the probability of an event that was seen k times in n independent trials.
//
//	(p̂ + z²/2n ± z √(p̂(1-p̂)/n + z²/4n²)) / (1 + z²/n)        E. B. Wilson, JASA 22, 1927
func wilson(k, n, confidence float64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	z := Rounded(distuv.UnitNormal.Quantile((1 + confidence) / 2))
	p := k / n
	center := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, (center-half)/(1+z*z/n)), min(1, (center+half)/(1+z*z/n))
}

// ShareInterval is the interval of a share that was counted in parts: k of n in each, which are independent of each
// other while what is counted within one is not. It is the jackknife's over the parts, and at least Wilson's of as many
// independent trials: where all parts agree, as when nothing ever failed, the jackknife sees no error at all.
func ShareInterval(k, n []float64, confidence float64) (share, low, high float64) {
	share, half := RatioInterval(k, n, confidence)
	low, high = WidenShare(k, n, share, half, confidence)
	return share, low, high
}

// WidenShare is the interval of a share that parts tell up to half a width.
func WidenShare(k, n []float64, share, half, confidence float64) (low, high float64) {
	var sumK, sumN float64
	for i := range k {
		sumK += k[i]
		sumN += n[i]
	}
	low, high = wilson(sumK, sumN, confidence)
	return max(0, min(low, share-half)), min(1, max(high, share+half))
}
