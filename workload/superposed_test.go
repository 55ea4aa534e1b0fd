package workload

import (
	"math"
	"testing"

	"clifftop/sim/clock"
)

// TestSuperposed: each source has its share and burstiness, and their sum has the rate from the first second on.
func TestSuperposed(t *testing.T) {
	p := Superposed{PerSecond: 100, Sources: 73, TopShare: 0.286, Top10Share: 0.677,
		CV: []float64{0.9, 1, 1.02, 1.5, 9}}
	shares := p.shares()
	sum, ten := 0.0, 0.0
	for i, x := range shares {
		sum += x
		if i < 10 {
			ten += x
		}
		if i > 0 && x > shares[i-1] {
			t.Errorf("source %d sends more than the one before", i)
		}
	}
	if math.Abs(sum-1) > 1e-12 || math.Abs(ten-0.677) > 1e-12 || shares[0] != 0.286 {
		t.Errorf("shares %v, of the first ten %v", shares, ten)
	}
	count := func(seed uint64, until clock.Duration) (n float64) {
		a := p.Start(seed, 0)
		last := clock.Time(0)
		for at := a.Next(); at < clock.Time(until); at = a.Next() {
			if at < last {
				t.Fatal("instants fall")
			}
			last = at
			n++
		}
		return n
	}
	early := 0.0
	for seed := range uint64(200) {
		early += count(seed, 10*clock.Second) / 10 / 200
	}
	if math.Abs(early-100) > 6 {
		t.Errorf("%v requests per second in the first ten seconds, want 100", early)
	}
	if late := count(1, 4000*clock.Second) / 4000; math.Abs(late-100) > 6 {
		t.Errorf("%v requests per second, want 100", late)
	}
}

func TestWeibullShape(t *testing.T) {
	if k := weibullShape(1); math.Abs(k-1) > 1e-9 {
		t.Errorf("shape %v of exponential gaps", k)
	}
	for _, cv := range []float64{0.3, 2, 10} {
		k := weibullShape(cv)
		x := distWeibullCV(k)
		if math.Abs(x/cv-1) > 1e-6 {
			t.Errorf("shape %v has CV %v, want %v", k, x, cv)
		}
	}
}

// distWeibullCV returns the coefficient of variation of a Weibull law.
func distWeibullCV(k float64) float64 {
	a, b := math.Gamma(1+2/k), math.Gamma(1+1/k)
	return math.Sqrt(a/(b*b) - 1)
}
