package workload

import (
	"math"
	"testing"

	"clifftop/sim/clock"
)

// TestCoxMeanOverHours: the expected number of arrivals of each hour after the lead-in is that of the rate, and the
// hours still differ inside.
func TestCoxMeanOverHours(t *testing.T) {
	const lead, rate = 1000.0, 50.0
	c := Cox{PerSecond: rate, Sigma: .4, Rho: .85, Step: clock.FromSeconds(70), From: clock.FromSeconds(lead),
		Over: clock.FromSeconds(3600), Each: true}
	a := c.Start(3, 0)
	hours, parts := make([]float64, 12), make([]float64, 12*6)
	for {
		at := a.Next().Seconds() - lead
		if at < 0 {
			continue
		}
		if at >= 12*3600 {
			break
		}
		hours[int(at/3600)]++
		parts[int(at/600)]++
	}
	for i, n := range hours {
		if want := rate * 3600; math.Abs(n-want) > 5*math.Sqrt(want) {
			t.Errorf("hour %d has %v arrivals, want %v", i, n, want)
		}
	}
	least, most := parts[0], parts[0]
	for _, n := range parts {
		least, most = min(least, n), max(most, n)
	}
	if most < 1.5*least {
		t.Errorf("ten minutes have %v to %v arrivals, want them to differ", least, most)
	}
}

// TestCoxMeanOverProcess: without a window the mean of a long run is that of the process.
func TestCoxMeanOverProcess(t *testing.T) {
	spec := Spec{Arrivals: []Phase{{Process: "cox", Rate: 20, Sigma: .3, Rho: .5, Step: clock.FromSeconds(10),
		MeanOver: MeanOverProcess}}, Input: LengthsSpec{Distribution: "fixed", Value: 1},
		Output: LengthsSpec{Distribution: "fixed", Value: 1}, Requests: 100_000}
	src, err := New(spec, 5)
	if err != nil {
		t.Fatal(err)
	}
	last := 0.0
	for range spec.Requests {
		last = src.Next().Arrival.Seconds()
	}
	got := float64(spec.Requests) / last
	if math.Abs(got/20-1) > .03 || math.Abs(got/20-1) < 1e-4 {
		t.Errorf("mean rate %v, want about 20, but not exactly", got)
	}
}
