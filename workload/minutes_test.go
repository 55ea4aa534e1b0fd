package workload

import (
	"math"
	"testing"

	"clifftop/sim/clock"
)

// TestMinutes: Poisson minutes have a dispersion of 1 and quantiles of the normal law; those of chat vary far more.
func TestMinutes(t *testing.T) {
	for _, c := range []struct {
		phase      Phase
		dispersion float64
		low, high  float64
	}{
		{Phase{Process: "poisson", Rate: 20}, 1, 19.05, 20.95},
		{Phase{Process: "cox", Rate: 20, Sigma: .219, Rho: .85, Step: clock.FromSeconds(60)}, 59.9, 13.5, 28},
	} {
		m, ok := minutesOf(c.phase).Minutes()
		if !ok || math.Abs(m.Dispersion/c.dispersion-1) > .001 || math.Abs(m.P05/c.low-1) > .02 ||
			math.Abs(m.P95/c.high-1) > .02 || m.P50 < m.P05 || m.P50 > m.P95 {
			t.Errorf("%s: %+v, %v", c.phase.Process, m, ok)
		}
	}
	if _, ok := minutesOf(Phase{Process: "closed", Users: 3}).Minutes(); ok {
		t.Error("a closed loop has no minutes")
	}
}

func minutesOf(p Phase) Spec {
	one := LengthsSpec{Distribution: "fixed", Value: 1}
	return Spec{Arrivals: []Phase{p}, Input: one, Output: one, Requests: 10}
}

// TestPoissonMinutes holds the percentiles against the sum of the probabilities, Σ e^{−m} m^k/k!. A count off by one may
// come from the approximation where the sum is within 0.1 % of the rank.
func TestPoissonMinutes(t *testing.T) {
	for mean := .02; mean < 5e4; mean *= 1.37 {
		m, _ := minutesOf(Phase{Process: "poisson", Rate: mean / 60}).Minutes()
		for i, got := range []float64{m.P05, m.P50, m.P95} {
			q, sum, logP := minuteQuantiles[i], 0.0, -mean
			k := 0
			for {
				if sum += math.Exp(logP); sum >= q {
					break
				}
				k++
				logP += math.Log(mean / float64(k))
			}
			off := math.Abs(math.Round(60*got) - float64(k))
			if near := math.Abs(sum-q) < 2e-3 || math.Abs(sum-math.Exp(logP)-q) < 2e-3; off > 1 || off == 1 && !near {
				t.Errorf("mean %.4g: quantile %v is %v, want %v", mean, q, 60*got, k)
			}
		}
	}
}

// TestMinutesOfProcesses compares the formulas with many sampled minutes.
func TestMinutesOfProcesses(t *testing.T) {
	cox := func(sigma, step float64) Cox {
		return Cox{PerSecond: 5, Sigma: sigma, Rho: .7, Step: clock.FromSeconds(step)}
	}
	for _, p := range []counted{constantGaps{PerSecond: 3.3371}, constantGaps{PerSecond: .01}, Poisson{PerSecond: 5},
		cox(.219, 60), cox(.6, 60), cox(.4, 15), cox(.3, 180)} {
		const minutes = 10_000
		counts := map[int]int{}
		a := p.Start(11, 0)
		for at := a.Next().Seconds(); at < 60*minutes; at = a.Next().Seconds() {
			counts[int(at/60)]++
		}
		for _, q := range minuteQuantiles {
			k := leastCount(60*p.Rate(), q, p.atMost)
			below, upTo := 0., 0.
			for i := range minutes {
				if float64(counts[i]) < k {
					below++
				}
				if float64(counts[i]) <= k {
					upTo++
				}
			}
			const margin = .015 // neighbouring minutes are alike
			if below/minutes > q+margin || upTo/minutes < q-margin {
				t.Errorf("%+v: quantile %v is %v, below which are %v of the minutes, and up to it %v", p, q, k,
					below/minutes, upTo/minutes)
			}
		}
	}
}
