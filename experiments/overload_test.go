package experiments_test

import (
	"context"
	"math"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
)

// The default engine gives about 22.7 requests per second. A load beyond that has no steady state,
// however the rate wanders, and the system fills up by the difference.
func TestOverloadHasNoSteadyState(t *testing.T) {
	for _, c := range []struct {
		rate   string
		steady bool
	}{{"10", true}, {"26.5", false}, {"34", false}} {
		s, err := scenario.Parse("overload",
			[]byte("run: {requests: 20000}\nworkload: {arrivals: {rate: "+c.rate+"}}\n"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w, x := r.Summary.Window, *r.Summary.Throughput.RequestsPerS
		if w.Stationary == nil || *w.Stationary != c.steady {
			t.Errorf("rate %s: stationary %v, want %v", c.rate, w.Stationary, c.steady)
			continue
		}
		if c.steady {
			continue
		}
		offered := 20000 / w.EndS
		if g := w.GrowthRequestsPerS; g == nil || math.Abs(*g-(offered-x)) > 0.15*offered {
			t.Errorf("rate %s: grows by %v requests/s, but %.1f come and %.1f go", c.rate, g, offered, x)
		}
	}
}
