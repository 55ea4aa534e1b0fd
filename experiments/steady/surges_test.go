package steady

import (
	"math"
	"testing"
)

// TestWaitOfSurges holds the wait against an integral by hand. Steps do not depend on each other, and surges are rare:
// in one of T seconds, with e above saturation μ, the queue grows to eT and then shrinks at μ − s, where s is the rate
// of the next step. r T requests wait eT/2μ on average, and then s eT/(μ − s) requests the same.
func TestWaitOfSurges(t *testing.T) {
	const m, mu, sigma, length = 10., 20., .25, 60.
	mean := func(of func(rate float64) float64) (sum float64) {
		for z := -6.; z < 6; z += 1e-3 {
			sum += math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * 1e-3 * of(m*math.Exp(sigma*z-sigma*sigma/2))
		}
		return sum
	}
	next := mean(func(s float64) float64 { return s / max(mu-s, mu/4) })
	want := mean(func(r float64) float64 {
		e := max(0, r-mu)
		return (r*length + e*length*next) * e * length / 2 / mu
	}) / (m * length)
	g := Surges{Sigma: sigma, StepS: length, IdleS: .01, ServiceS: .011}
	if got := g.wait(m, mu, math.Inf(1)); math.Abs(got/want-1) > .15 {
		t.Errorf("a wait of %g s, want %g", got, want)
	}
	if got := g.wait(m, 60, math.Inf(1)); got != 0 {
		t.Errorf("a wait of %g s though no step reaches saturation", got)
	}
	correlated := g
	correlated.Rho = .85
	if got := correlated.wait(m, mu, math.Inf(1)); got < 3*want {
		t.Errorf("a wait of %g s where surges come together, alone %g", got, want)
	}
	g.ServiceS = 12 // a system that holds many requests takes up short surges
	if got := g.wait(m, mu, math.Inf(1)); got > want/2 {
		t.Errorf("a wait of %g s where the system holds many requests, else %g", got, want)
	}
}
