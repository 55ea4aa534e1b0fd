package curve

import (
	"math"
	"strings"
	"testing"
)

// T18 of the theory, C1: the four points that define the saturation cliff. Parameters printed in other places for them,
// γ 504.9, σ 3.7e-5, κ 5.54e-5 with N* 134.4, are near the best ones, and off by more. A fit that may have any σ takes
// one below 0: the knee is sharper than the law can have it.
func TestUSLOfTheCliff(t *testing.T) {
	ns, xs := []float64{10, 50, 100, 200}, []float64{5000, 25_000, 35_000, 30_000}
	u := (&USL{N: "users"}).fit(ns, xs, defaultThresholds())
	if math.Abs(u.Gamma-541) > .2 || u.Sigma != 0 || math.Abs(u.Kappa-6.234e-5) > 1e-8 ||
		math.Abs(*u.NStar-126.66) > .1 || math.Abs(*u.XMax-34_395) > 5 {
		t.Errorf("γ %v, σ %v, κ %v, N* %v, X %v", u.Gamma, u.Sigma, u.Kappa, *u.NStar, *u.XMax)
	}
	if u.FreeSigma > -.0035 || u.FreeSigma < -.0042 || !strings.HasPrefix(u.Verdict, "inappropriate: a hard limit") {
		t.Errorf("σ %v: %s", u.FreeSigma, u.Verdict)
	}
	squares := 0.0
	for i, want := range []float64{5023, 22_196, 32_542, 31_456} {
		x := 504.9 * ns[i] / uslSlowdown(ns[i], 3.7e-5, 5.54e-5)
		if math.Abs(x/want-1) > 1e-3 {
			t.Errorf("the law gives %v at %v, want %v", x, ns[i], want)
		}
		squares += math.Pow(math.Log(x/xs[i]), 2)
	}
	if known := math.Sqrt(squares / 4); u.RMSLogError >= known || u.RMSLogError < .05 {
		t.Errorf("off by %v, the known parameters by %v", u.RMSLogError, known)
	}
}

// Points of the law itself give its parameters back.
func TestUSLRecovers(t *testing.T) {
	for _, p := range []struct{ gamma, sigma, kappa float64 }{{100, .05, 1e-4}, {900, 0, 5e-6}, {3, .3, 0}, {20, 0, 0},
		{147, .025, 6.7e-6}} {
		var points []Point
		for _, n := range []float64{1, 3, 8, 20, 55, 140, 400} {
			points = append(points, point(n, p.gamma*n/uslSlowdown(n, p.sigma, p.kappa), 100))
		}
		u := New("users", points).USL
		if u == nil || math.Abs(u.Gamma/p.gamma-1) > .01 || math.Abs(u.Sigma-p.sigma) > .002+.02*p.sigma ||
			math.Abs(u.Kappa-p.kappa) > 1e-7+.02*p.kappa || !strings.HasPrefix(u.Verdict, "fits") {
			t.Errorf("%+v gives %+v", p, u)
		}
		if flat := p.kappa == 0; u != nil && flat != (u.NStar == nil) && u.Kappa > 1e-9 {
			t.Errorf("%+v has its peak at %v", p, *u.NStar)
		}
	}
}

// Over a rate N is the mean number in the system, of loads with a steady state; over anything else there is no law.
func TestUSLByLittle(t *testing.T) {
	var points []Point
	for _, n := range []float64{1, 2, 5, 10, 30} {
		x := 50 * n / uslSlowdown(n, .1, 0)
		p := point(x/200, x, 100)
		p.Summary.Concurrency.InSystem.Mean = ptr(n)
		points = append(points, p)
	}
	over := point(9, 480, 9000)
	over.Summary.Concurrency.InSystem.Mean, over.Summary.Window.Stationary = ptr(4000), new(bool)
	points = append(points, over)
	u := New("rate", points).USL
	if u == nil || u.N != "in_system" || u.Points != 5 || math.Abs(u.Sigma-.1) > .002 {
		t.Errorf("%+v", u)
	}
	if u := New("engine.max_num_seqs", points).USL; u != nil {
		t.Errorf("%+v", u)
	}
	if u := New("rate", points[:3]).USL; u != nil {
		t.Errorf("three parameters from three points: %+v", u)
	}
	// What no law describes is called poor.
	var odd []Point
	for i, x := range []float64{10, 80, 20, 300, 40} {
		odd = append(odd, point(float64(i+1), x, 9))
	}
	if u := New("users", odd).USL; u == nil || strings.HasPrefix(u.Verdict, "fits") {
		t.Errorf("%+v", u)
	}
}
