package workload

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// Lognormal is the distribution of exp(Mu + Sigma·Z) with Z standard normal, in tokens.
type Lognormal struct {
	Mu, Sigma float64 // of the logarithm of the length
}

// LognormalOf returns the lognormal distribution with the given mean and coefficient of variation (standard
// deviation over mean), both before rounding:
//
//	sigma² = ln(1 + cv²),  mu = ln(mean) − sigma²/2
func LognormalOf(mean, cv float64) Lognormal {
	v := math.Log1p(cv * cv)
	return Lognormal{Mu: math.Log(mean) - v/2, Sigma: math.Sqrt(v)}
}

// Sample draws a length. It avoids the fused multiply-add of distuv, whose result depends on the platform.
func (l Lognormal) Sample(src rand.Source) int32 {
	return tokens(math.Exp(l.Mu + float64(l.Sigma*rand.New(src).NormFloat64())))
}

// Exceeds returns the tail after rounding.
func (l Lognormal) Exceeds(n int32) float64 {
	return exceeds(n, distuv.LogNormal{Mu: l.Mu, Sigma: l.Sigma}.Survival)
}

// gamma is the gamma distribution with a mean in tokens and a coefficient of variation, both before rounding. Its
// shape is 1/cv², its scale mean·cv².
type gamma struct{ Mean, CV float64 }

// dist uses a rate instead of a scale: Beta = shape/mean.
func (g gamma) dist(src rand.Source) distuv.Gamma {
	shape := 1 / (g.CV * g.CV)
	return distuv.Gamma{Alpha: shape, Beta: shape / g.Mean, Src: src}
}

// Sample draws a length.
func (g gamma) Sample(src rand.Source) int32 { return tokens(g.dist(src).Rand()) }

// Exceeds returns the tail after rounding.
func (g gamma) Exceeds(n int32) float64 { return exceeds(n, g.dist(nil).Survival) }

// weibull is the distribution with survival function exp(−(x/Scale)^Shape), in tokens.
type weibull struct{ Shape, Scale float64 }

// weibullOf returns the Weibull distribution with a mean before rounding: scale = mean / Γ(1 + 1/shape).
func weibullOf(mean, shape float64) weibull {
	return weibull{Shape: shape, Scale: mean / math.Gamma(1+1/shape)}
}

// Sample draws a length.
func (w weibull) Sample(src rand.Source) int32 {
	return tokens(distuv.Weibull{K: w.Shape, Lambda: w.Scale, Src: src}.Rand())
}

// Exceeds returns the tail after rounding.
func (w weibull) Exceeds(n int32) float64 {
	return exceeds(n, distuv.Weibull{K: w.Shape, Lambda: w.Scale}.Survival)
}

var (
	_ Lengths = Lognormal{}
	_ Lengths = gamma{}
	_ Lengths = weibull{}
)
