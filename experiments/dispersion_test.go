package experiments_test

import (
	"fmt"
	"math"
	"testing"

	"clifftop/experiments/planning"
	"clifftop/experiments/scenario"
	"clifftop/internal/testenv"
)

// dispersions are the variances of the counts of a scenario's requests over their means, in windows of 1, 10 and 60 s:
// the mean over hours with seeds 1 to n.
func dispersions(t *testing.T, traffic string, requests, n int) (mean [3]float64) {
	t.Helper()
	for seed := 1; seed <= n; seed++ {
		s, err := scenario.Parse("counts",
			fmt.Appendf(nil, "workload: %s\nrun: {requests: %d, seed: %d}\n", traffic, requests, seed))
		if err != nil {
			t.Fatal(err)
		}
		u, err := s.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		d, err := planning.NewDemand(u)
		if err != nil {
			t.Fatal(err)
		}
		sample, err := d.Sample(requests)
		list := sample.Requests
		if err != nil || len(list) != requests {
			t.Fatalf("%d requests, %v", len(list), err)
		}
		for k, window := range []float64{1, 10, 60} {
			end := list[len(list)-1].Arrival.Seconds()
			counts := make([]float64, int(end/window)) // whole windows
			for i := range list {
				if w := int(list[i].Arrival.Seconds() / window); w < len(counts) {
					counts[w]++
				}
			}
			sum, squares := 0.0, 0.0
			for _, x := range counts {
				sum += x
				squares += x * x
			}
			m := sum / float64(len(counts))
			mean[k] += (squares/float64(len(counts)) - m*m) / m / float64(n)
		}
	}
	return mean
}

// TestGeneratedCountsScatterAsTheTraces: Poisson requests would have 1 in every window. The rates of chat wander
// slowly, so that the counts of longer windows scatter more; the figures are those of the traces.
func TestGeneratedCountsScatterAsTheTraces(t *testing.T) {
	testenv.NeedsLong(t, "counts over many windows, 1 s")
	for _, c := range []struct {
		traffic  string
		requests int
		want     [3]float64
		by       [3]float64
	}{
		{"{preset: chat-longctx-kimi}", 12031, [3]float64{1.02, 1.5, 3.0}, [3]float64{.1, .2, .8}},
		// Turns come minutes after those before, which evens a wandering rate out.
		{"{preset: chat-longctx-kimi, sessions: {}}", 12031, [3]float64{1.02, 1.5, 3.0}, [3]float64{.1, .4, .9}},
		{"{preset: chat-azure23}", 19366, [3]float64{1.39, 3.9, 16}, [3]float64{.2, 1, 6}},
	} {
		got := dispersions(t, c.traffic, c.requests, 8)
		t.Logf("%s: %.2f %.2f %.2f", c.traffic, got[0], got[1], got[2])
		for k := range got {
			if math.Abs(got[k]-c.want[k]) > c.by[k] {
				t.Errorf("%s: dispersion %.2f, want %v ± %v", c.traffic, got, c.want, c.by)
				break
			}
		}
	}
}

// TestGeneratedClientsAreSkewed: clients of which a few send most, each in bursts of its own, scatter far more than
// Poisson requests would, and more in longer windows. ServeGen gives shares and variation of its clients but no
// dispersion of their sum.
func TestGeneratedClientsAreSkewed(t *testing.T) {
	testenv.NeedsLong(t, "many clients, 2 s")
	for preset, requests := range map[string]int{"reasoning-r1": 40_000, "api-mixed-large": 200_000,
		"multimodal-image": 20_000} {
		got := dispersions(t, "{preset: "+preset+"}", requests, 4)
		t.Logf("%s: %.2f %.2f %.2f", preset, got[0], got[1], got[2])
		if !(got[0] > 1.5 && got[1] > got[0] && got[2] > got[0]) {
			t.Errorf("%s: dispersion %.2f", preset, got)
		}
	}
}
