package monitor_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"clifftop/experiments/live/monitor"
	"clifftop/sim/clock"
)

// exact returns the percentiles 50, 90 and 99.
func exact(values []float64) []float64 {
	sorted := slices.Sorted(slices.Values(values))
	var list []float64
	for _, p := range []float64{0.5, 0.9, 0.99} {
		list = append(list, sorted[int(math.Ceil(p*float64(len(sorted))))-1])
	}
	return list
}

// TestWindow compares percentiles with exact ones of the same time, at several speeds.
func TestWindow(t *testing.T) {
	for _, speed := range []float64{0.01, 1, 300} {
		r := rand.New(rand.NewPCG(1, 2))
		w := monitor.NewWindow(speed)
		second := clock.Time(speed * float64(clock.Second)) // of the wall clock
		var at []clock.Time
		var all []float64
		for now := clock.Time(0); now < 200*second; now += second / 50 {
			v := math.Exp(r.NormFloat64()-3) * (1 + float64(now)/float64(100*second)) // it changes with time
			w.Add(now, v)
			at, all = append(at, now), append(all, v)
		}
		now := 200*second - 1
		first := slices.IndexFunc(at, func(x clock.Time) bool { return x >= 140*second })
		latest := slices.IndexFunc(at, func(x clock.Time) bool { return x >= 194*second })
		for name, pair := range map[string][2][]float64{
			"minute": {w.Minute(now), exact(all[first:])}, "latest": {w.Latest(now, 5), exact(all[latest:])},
		} {
			for i, got := range pair[0] {
				if want := pair[1][i]; math.Abs(got-want) > 0.032*want {
					t.Errorf("speed %v: %s: %v, want %v", speed, name, pair[0], pair[1])
				}
			}
			if len(pair[0]) != 3 {
				t.Errorf("speed %v: %s has %v", speed, name, pair[0])
			}
		}
		if got := w.Minute(now + 61*second); got != nil {
			t.Errorf("speed %v: a minute later there is %v", speed, got)
		}
	}
}
