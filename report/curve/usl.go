package curve

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/optimize"

	"clifftop/report/layout"
	"clifftop/report/stats"
)

// USL is the Universal Scalability Law fitted to a curve,
//
//	X(N) = γN / (1 + σ(N-1) + κN(N-1))
//
// (Gunther 2007), with output tokens per second as X and σ, κ ≥ 0. N is the number of users of a closed loop; of an
// open loop it is the mean number of requests in the system (Little's law), over the loads with a steady state. Errors
// are errors of ln X, so that all loads count equally.
type USL struct {
	N      string   `json:"n"`      // users or in_system
	Points int      `json:"points"` // that were fitted
	Gamma  float64  `json:"gamma"`  // tokens per second of the first
	Sigma  float64  `json:"sigma"`  // contention: what is done one after the other
	Kappa  float64  `json:"kappa"`  // coherency: what each costs all others
	NStar  *float64 `json:"n_star"` // where X is highest, √((1-σ)/κ); nil if it always rises
	XMax   *float64 `json:"x_max"`  // X there, in tokens per second
	// RMSLogError is the root of the mean square of ln X's errors: about the relative error.
	RMSLogError float64 `json:"rms_log_error"`
	// FreeSigma is the σ of a fit that may have any, and FreeRMSLogError its error. A σ below 0 means nothing physical:
	// the curve stays straight for longer, and bends more sharply, than contention and coherency can make it.
	FreeSigma       float64 `json:"free_sigma"`
	FreeRMSLogError float64 `json:"free_rms_log_error"`
	Verdict         string  `json:"verdict"`
}

// leastUSL is the smallest number of points that determines three parameters.
const leastUSL = 4

// usl fits the law to the curve; nil where it is not over a load or has too few points.
func (a *analysis) usl() *USL {
	u := &USL{N: "in_system"}
	if a.closed {
		u.N = "users"
	}
	var ns, xs []float64
	for i := range a.at {
		l := &a.at[i]
		n := l.value
		if !a.closed {
			n = l.inSystem
			if unknown(n) || l.unsettled {
				continue
			}
		}
		if n > 0 && l.throughput > 0 && a.isLoad {
			ns, xs = append(ns, n), append(xs, l.throughput)
		}
	}
	if len(ns) < leastUSL {
		return nil
	}
	return u.fit(ns, xs, a.Thresholds)
}

// fit finds the parameters and judges them.
func (u *USL) fit(ns, xs []float64, t Thresholds) *USL {
	u.Points = len(ns)
	free, ok := uslFit(ns, xs, func(v float64) float64 { return v })
	kept, ok2 := uslFit(ns, xs, func(v float64) float64 { return v * v })
	if !ok || !ok2 {
		return nil
	}
	most := slices.Max(ns)
	u.Gamma, u.Sigma, u.Kappa, u.RMSLogError = kept.gamma, kept.sigma, kept.kappa, kept.rms
	const nothing = 1e-6 // of the throughput, at the highest load
	if u.Sigma*most < nothing {
		u.Sigma = 0
	}
	if u.Kappa*most*most < nothing {
		u.Kappa = 0
	}
	u.FreeSigma, u.FreeRMSLogError = free.sigma, free.rms
	if u.Kappa > 0 && u.Sigma < 1 {
		n := math.Sqrt((1 - u.Sigma) / u.Kappa)
		u.NStar, u.XMax = stats.Finite(n), stats.Finite(u.Gamma*n/uslSlowdown(n, u.Sigma, u.Kappa))
	}
	switch {
	case u.FreeSigma < 0 && u.FreeRMSLogError < (1-t.USLBetter)*u.RMSLogError:
		u.Verdict = fmt.Sprintf("inappropriate: a hard limit. The curve fits only with a contention below 0 (σ = "+
			"%.3g): it is straight for longer and bends more sharply than the law can", u.FreeSigma)
	case u.RMSLogError > t.USLGood:
		u.Verdict = fmt.Sprintf("poor: off by %s, so that its parameters mean little", layout.Percent(u.RMSLogError))
	default:
		u.Verdict = fmt.Sprintf("fits within %s", layout.Percent(u.RMSLogError))
	}
	return u
}

// uslSlowdown returns the divisor of the throughput of n independent users.
func uslSlowdown(n, sigma, kappa float64) float64 { return 1 + sigma*(n-1) + kappa*n*(n-1) }

type uslParameters struct{ gamma, sigma, kappa, rms float64 }

// uslFit minimises the squares of the errors of ln X over σ and κ, which are made from what is searched by
// constrain; the γ that is best for them is a mean.
func uslFit(ns, xs []float64, constrain func(float64) float64) (best uslParameters, ok bool) {
	evaluate := func(v []float64) uslParameters {
		p := uslParameters{sigma: constrain(v[0]), kappa: constrain(v[1])}
		sum, squares := 0.0, 0.0
		for i, n := range ns {
			slow := uslSlowdown(n, p.sigma, p.kappa)
			if !(slow > 0) {
				p.rms = math.Inf(1)
				return p
			}
			e := math.Log(xs[i] * slow / n)
			sum, squares = sum+e, squares+e*e
		}
		m := float64(len(ns))
		p.gamma = math.Exp(sum / m)
		p.rms = math.Sqrt(max(0, squares/m-sum/m*sum/m))
		return p
	}
	best.rms = math.Inf(1)
	most := slices.Max(ns)
	// From a straight line, from contention alone and from a peak within the points.
	for _, start := range [][]float64{{1e-9, 1e-9}, {1 / most, 1e-9}, {1e-3 / most, 4 / most / most},
		{1 / most, 1 / most / most}} {
		inverse := []float64{start[0], start[1]}
		if constrain(2) == 4 {
			inverse[0], inverse[1] = math.Sqrt(start[0]), math.Sqrt(start[1])
		}
		problem := optimize.Problem{Func: func(v []float64) float64 { return evaluate(v).rms }}
		res, err := optimize.Minimize(problem, inverse,
			&optimize.Settings{MajorIterations: 2000,
				Converger: &optimize.FunctionConverge{Absolute: 1e-13, Iterations: 200}},
			&optimize.NelderMead{SimplexSize: 1 / most})
		if res == nil || err != nil && math.IsInf(res.F, 0) {
			continue
		}
		if p := evaluate(res.X); p.rms < best.rms {
			best = p
		}
	}
	return best, !math.IsInf(best.rms, 0) && !math.IsNaN(best.rms)
}

// String is the law with its parameters, and the verdict.
func (u *USL) String() string {
	peak := "no peak"
	if u.NStar != nil {
		peak = fmt.Sprintf("peak %s at N = %s", layout.Digits(*u.XMax), layout.Digits(*u.NStar))
	}
	of := "requests in the system"
	if u.N == "users" {
		of = u.N
	}
	return fmt.Sprintf("USL over %s: γ %s, σ %.3g, κ %.3g, %s; %s", of, layout.Digits(u.Gamma), u.Sigma, u.Kappa, peak,
		u.Verdict)
}
