package workload

import (
	"math"
	"testing"

	"clifftop/sim/clock"
)

// gaps draws n gaps in seconds.
func gaps(p process, seed uint64, n int) []float64 {
	a := p.Start(seed, 0)
	list := make([]float64, n)
	last := clock.Time(0)
	for i := range list {
		at := a.Next()
		list[i] = at.Sub(last).Seconds()
		last = at
	}
	return list
}

func meanCV(x []float64) (mean, cv float64) {
	for _, v := range x {
		mean += v
	}
	mean /= float64(len(x))
	for _, v := range x {
		cv += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(cv/float64(len(x))) / mean
}

// dispersion returns the index of dispersion of counts, variance over mean, in windows of w seconds.
func dispersion(gaps []float64, w float64) float64 {
	var counts []float64
	t, end, n := 0.0, w, 0.0
	for _, g := range gaps {
		for t += g; t >= end; end += w {
			counts = append(counts, n)
			n = 0
		}
		n++
	}
	mean, cv := meanCV(counts)
	return cv * cv * mean
}

func TestRenewals(t *testing.T) {
	for _, c := range []struct {
		name string
		p    process
		cv   float64
	}{
		{"constant", constantGaps{8}, 0},
		{"poisson", Poisson{8}, 1},
		{"gamma", gammaRenewal{8, 2.5}, 2.5},
		{"weibull", weibullRenewal{8, 2}, 0.5227},
	} {
		mean, cv := meanCV(gaps(c.p, 1, 200_000))
		if math.Abs(mean*8-1) > 0.02 || math.Abs(cv-c.cv) > 0.03*c.cv+0.003 {
			t.Errorf("%s: mean gap %.5f, cv %.4f, want 0.125, %.4f", c.name, mean, cv, c.cv)
		}
		if c.p.Rate() != 8 {
			t.Errorf("%s: rate %v", c.name, c.p.Rate())
		}
	}
}

// TestConstant: rounding errors do not accumulate over 3 million gaps.
func TestConstant(t *testing.T) {
	a := constantGaps{3}.Start(0, 0)
	var at clock.Time
	for range 3_000_001 {
		at = a.Next()
	}
	if at != clock.Time(1_000_000*clock.Second) {
		t.Errorf("request 3,000,000 at %v, want 1000000s", at)
	}
}

// TestCox: the process has the configured mean rate and the dispersion of chat traffic: for short windows little above
// Poisson, for a minute var/mean = 1 + λ·60·(exp(σ²)−1).
func TestCox(t *testing.T) {
	p := Cox{PerSecond: 5.53, Sigma: 0.219, Rho: 0.85, Step: clock.Minute}
	g := gaps(p, 1, 2_000_000)
	mean, cv := meanCV(g)
	if math.Abs(mean*5.53-1) > 0.02 {
		t.Errorf("mean rate %.4f, want 5.53", 1/mean)
	}
	if cv < 1.01 || cv > 1.12 { // the Azure 2023 chat trace: 1.09
		t.Errorf("cv of gaps %.3f", cv)
	}
	want := 1 + 5.53*60*math.Expm1(0.219*0.219)
	if got := dispersion(g, 60); math.Abs(got/want-1) > 0.06 {
		t.Errorf("dispersion in a minute %.2f, want %.2f", got, want)
	}
}

// TestOnOff: the process has the mean rate and the burstiness of code completion, whose trace has a
// coefficient of variation of 13.2 and dispersions of 13.2, 72 and 167 in 1, 10 and 60 s.
func TestOnOff(t *testing.T) {
	s := Phase{Process: "on-off", Rate: 2.566, OnMean: clock.FromSeconds(5.84), OffMean: clock.FromSeconds(18.83),
		CV: 1.41}
	p := s.onOff()
	if math.Abs(p.BurstRate()-10.85) > 0.02 {
		t.Errorf("rate in bursts %.3f, want 10.84", p.BurstRate())
	}
	g := gaps(p, 1, 3_000_000)
	mean, cv := meanCV(g)
	d1, d10, d60 := dispersion(g, 1), dispersion(g, 10), dispersion(g, 60)
	t.Logf("rate %.3f cv %.2f dispersion %.1f %.1f %.1f", 1/mean, cv, d1, d10, d60)
	if math.Abs(mean*2.566-1) > 0.05 {
		t.Errorf("mean rate %.4f, want 2.566", 1/mean)
	}
	if cv < 10 || cv > 16 || d1 < 6 || d1 > 14 || d10 < 40 || d10 > 75 || d60 < 110 || d60 > 190 {
		t.Errorf("cv %.2f, dispersion %.1f %.1f %.1f", cv, d1, d10, d60)
	}
}

// TestScaling: the same seed at twice the rate gives the same gaps, halved.
func TestScaling(t *testing.T) {
	slow, fast := gaps(Poisson{4}, 9, 1000), gaps(Poisson{8}, 9, 1000)
	for i := range slow {
		if math.Abs(slow[i]-2*fast[i]) > 3e-9 {
			t.Fatalf("gap %d: %v at rate 4, %v at rate 8", i, slow[i], fast[i])
		}
	}
}

// TestProcessesRepeat: the same seed and phase give the same arrivals, and another seed or phase gives others. The
// process uses no other source of randomness. Arrival times never decrease.
func TestProcessesRepeat(t *testing.T) {
	for _, p := range []process{
		constantGaps{7}, Poisson{7}, gammaRenewal{7, 2}, weibullRenewal{7, 0.6}, allAtOnce{},
		Cox{PerSecond: 7, Sigma: 1, Rho: 0.5, Step: clock.Second},
		OnOff{PerSecond: 7, OnMean: clock.Second, OffMean: 3 * clock.Second, CV: 1.4, OnSigma: 1, OffSigma: 1},
	} {
		a, b, other := p.Start(5, 1), p.Start(5, 1), p.Start(5, 2)
		same, last := 0, clock.Time(0)
		for range 1000 {
			at := a.Next()
			if again := b.Next(); again != at || at < last {
				t.Fatalf("%T: %v, %v after %v", p, at, again, last)
			}
			if other.Next() == at {
				same++
			}
			last = at
		}
		if random := p != (constantGaps{7}) && p != (allAtOnce{}); random && same > 10 {
			t.Errorf("%T: stages share %d instants", p, same)
		}
	}
}

// TestCoxOver: a short run with a varying rate has the configured load. The number of arrivals deviates from it as
// in a Poisson process, by about 0.5 %, not by 10 %.
func TestCoxOver(t *testing.T) {
	for seed := range uint64(20) {
		src, err := New(Spec{
			Arrivals: []Phase{{Process: "cox", Rate: 50, Sigma: 0.219, Rho: 0.85, Step: clock.Minute}},
			Input:    LengthsSpec{Distribution: "fixed", Value: 1},
			Output:   LengthsSpec{Distribution: "fixed", Value: 1},
			Duration: 890 * clock.Second,
		}, seed)
		if err != nil {
			t.Fatal(err)
		}
		n := 0.0
		for _, ok := src.Peek(); ok; _, ok = src.Peek() {
			src.Next()
			n++
		}
		if want := 50 * 890.0; math.Abs(n-want) > 4*math.Sqrt(want) {
			t.Errorf("seed %d: %.0f arrivals, want %.0f within %.0f", seed, n, want, 4*math.Sqrt(want))
		}
	}
}
