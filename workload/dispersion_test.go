package workload

import (
	"math"
	"testing"

	"clifftop/internal/testenv"
	"clifftop/sim/clock"
)

// TestDispersion compares the closed forms with the variance of counts over long windows.
func TestDispersion(t *testing.T) {
	minute := clock.FromSeconds(60)
	for _, c := range []struct {
		name    string
		p       disperser
		want    float64
		seconds float64 // of a window: many correlation times
	}{
		{"poisson", Poisson{20}, 1, 100},
		{"gamma", gammaRenewal{20, 2}, 4, 500},
		{"weibull", weibullRenewal{20, .5}, 5, 1000},
		{"cox", Cox{PerSecond: 2, Sigma: .219, Rho: .85, Step: minute}, 72.8, 60_000},
		{"on-off", OnOff{PerSecond: 5, OnMean: clock.FromSeconds(4), OffMean: clock.FromSeconds(12), CV: 1, OnSigma: .5,
			OffSigma: .8}, 54.12, 10_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.p.Dispersion().Asymptotic; math.Abs(got/c.want-1) > .005 {
				t.Errorf("dispersion %.4g, want %.4g", got, c.want)
			}
			windows := testenv.Choose(200, 800)
			const longest = 6e6 // seconds, within the longest run
			windows = min(windows, int(longest/c.seconds))
			counts := make([]float64, windows)
			a := c.p.Start(7, 0)
			for at := a.Next(); at.Seconds() < c.seconds*float64(windows); at = a.Next() {
				counts[int(at.Seconds()/c.seconds)]++
			}
			mean, square := 0.0, 0.0
			for _, n := range counts {
				mean += n / float64(windows)
			}
			for _, n := range counts {
				square += (n - mean) * (n - mean) / float64(windows-1)
			}
			got, sd := square/mean, math.Sqrt(2/float64(windows-1))
			if math.Abs(got/c.want-1) > 4*sd {
				t.Errorf("counts have a dispersion of %.4g, want %.4g within %.0f %%", got, c.want, 400*sd)
			}
		})
	}
}

// TestDispersionOfTurns counts a conversation as a batch of its turns.
func TestDispersionOfTurns(t *testing.T) {
	spec := Spec{Arrivals: []Phase{{Process: "poisson", Rate: 8}}, Output: LengthsSpec{Distribution: "fixed", Value: 10},
		Requests: 10, Sessions: &SessionSpec{Turns: LengthsSpec{Distribution: "geometric", Mean: 5},
			FirstPrompt: LengthsSpec{Distribution: "fixed", Value: 10}, LaterUserTokens: LengthsSpec{Distribution: "fixed", Value: 5}}}
	d, ok := spec.Dispersion()
	// E[K²]/E[K] of a geometric number with mean 5: (Var + 25)/5 with Var = 20.
	if want := 9.0; !ok || math.Abs(d.Asymptotic/want-1) > .05 {
		t.Errorf("dispersion %v, %v, want %v", d, ok, want)
	}
}

// TestDispersionOfMinutes compares the formulas with counts of many minutes, for steps that are shorter and longer than a
// minute, and that do not divide it. A window begins with a step, so that windows are as far apart as whole steps.
func TestDispersionOfMinutes(t *testing.T) {
	cox := func(step float64) Cox {
		return Cox{PerSecond: 3, Sigma: .3, Rho: .8, Step: clock.FromSeconds(step)}
	}
	for _, c := range []struct {
		p     process
		every float64 // seconds from one window to the next
	}{
		{Poisson{PerSecond: 3}, 60}, {constantGaps{PerSecond: 3.3371}, 60}, {cox(60), 60}, {cox(10), 60}, {cox(25), 75},
		{cox(240), 240},
	} {
		const windows = 8000
		counts := make([]float64, windows)
		a := c.p.Start(7, 0)
		for {
			at := a.Next().Seconds()
			i := int(at / c.every)
			if i >= windows {
				break
			}
			if at-float64(i)*c.every < 60 {
				counts[i]++
			}
		}
		mean, square := 0.0, 0.0
		for _, n := range counts {
			mean += n / windows
		}
		for _, n := range counts {
			square += (n - mean) * (n - mean) / (windows - 1)
		}
		want := c.p.(windowed).dispersionOver(60)
		if got := square / mean; math.Abs(got/want-1) > .15 {
			t.Errorf("%+v: dispersion %.4g over a minute, want %.4g", c.p, got, want)
		}
	}
}
