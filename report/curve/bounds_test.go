package curve

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// loop is a closed loop of n users at a station that needs demand seconds for a request, one at a time, as exact
// mean-value analysis has it.
func loop(demand, think float64, most int) (x, in []float64) {
	queue := 0.0
	for n := 1; n <= most; n++ {
		r := demand * (1 + queue)
		x = append(x, float64(n)/(r+think))
		queue = x[n-1] * r
		in = append(in, queue)
	}
	return x, in
}

// T12 of the theory, T11: a station with S = 1 s and users who think for 9 s. The demands are found, N* = 10, and the
// curve, which is known exactly, keeps within the bounds.
func TestBoundsOfAClosedLoop(t *testing.T) {
	xs, in := loop(1, 9, 40)
	for n, want := range map[int]float64{5: .475092, 10: .832037, 20: .999383} {
		if math.Abs(xs[n-1]-want) > 1e-6 {
			t.Errorf("mean-value analysis gives %v at %d", xs[n-1], n)
		}
	}
	var points []Point
	for n := 1; n <= 40; n++ {
		p := point(float64(n), 100*xs[n-1], 1000*in[n-1]/xs[n-1])
		s := p.Summary
		s.Throughput.RequestsPerS, s.Concurrency.InSystem.Mean, s.System.BusyFraction = ptr(xs[n-1]), ptr(in[n-1]),
			ptr(xs[n-1])
		points = append(points, p)
	}
	b := New("users", points).Bounds
	if b == nil || math.Abs(b.DemandS-1) > 1e-9 || math.Abs(*b.ThinkS-9) > 1e-6 ||
		math.Abs(b.BottleneckDemandS-1) > 1e-9 || math.Abs(b.Value-10) > 1e-6 ||
		math.Abs(b.MaxOutputTokensPerS-100) > 1e-6 {
		t.Fatalf("%+v", b)
	}
	for i, at := range b.Points {
		n := float64(i + 1)
		if want := math.Min(n/10, 1); math.Abs(at.RequestsPerS-want) > 1e-9 ||
			math.Abs(at.OutputTokensPerS-100*want) > 1e-6 {
			t.Errorf("at %v: %+v, want %v requests/s", n, at, want)
		}
		if r := in[i] / xs[i]; at.E2EMeanS > r+1e-6 || math.Abs(at.E2EMeanS-math.Max(1, n-9)) > 1e-6 {
			t.Errorf("at %v a request takes %v, bound %v", n, r, at.E2EMeanS)
		}
		if xs[i] > at.RequestsPerS+1e-9 {
			t.Errorf("at %v the bound %v is violated by %v", n, at.RequestsPerS, xs[i])
		}
	}
	if New("users", points[:1]).Bounds != nil || New("engine.block_size", points).Bounds != nil {
		t.Error("bounds from nothing")
	}
}

// Whatever the loads make of the system, what they show keeps within the bounds that are taken from them.
func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var points []Point
		n := 0.0
		for range rapid.IntRange(2, 9).Draw(t, "loads") {
			n += rapid.Float64Range(.5, 40).Draw(t, "more")
			x, in := rapid.Float64Range(.01, 50).Draw(t, "x"), n*rapid.Float64Range(.01, 1).Draw(t, "in")
			p := point(n, x*rapid.Float64Range(1, 900).Draw(t, "tokens"), 1000*in/x)
			s := p.Summary
			s.Throughput.RequestsPerS, s.Concurrency.InSystem.Mean, s.System.BusyFraction = &x, &in,
				ptr(rapid.Float64Range(.01, 1).Draw(t, "busy"))
			points = append(points, p)
		}
		c := New("users", points)
		for i, at := range c.Bounds.Points {
			s := c.Points[i].Summary
			if x := *s.Throughput.RequestsPerS; x > at.RequestsPerS*(1+1e-9) {
				t.Errorf("%v requests/s are above the bound %v", x, at.RequestsPerS)
			}
			if x := *s.Throughput.OutputTokensPerS; x > at.OutputTokensPerS*(1+1e-9) {
				t.Errorf("%v tokens/s are above the bound %v", x, at.OutputTokensPerS)
			}
			if r := *s.Latency.E2E.Mean / 1000; r < at.E2EMeanS*(1-1e-9) {
				t.Errorf("%v s are below the bound %v", r, at.E2EMeanS)
			}
		}
	})
}
