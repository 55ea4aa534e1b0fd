package experiments_test

import (
	"context"
	"math"
	"os"
	"strconv"
	"testing"

	"clifftop/experiments"
	"clifftop/internal/testenv"
	"clifftop/report"
)

// anchors are systems whose mean sojourn is known in closed form.
var anchors = []struct {
	name, text string
	e2e        float64 // milliseconds
}{
	// M/D/1 with ρ = 0.5: 1 + ρ/2(1-ρ) services of a second.
	{"M/D/1", md1, 1500},
	// M/M/1 with ρ = 0.5: 1/(1-ρ) services, of a second on average. A service is of whole tokens of a millisecond,
	// which does not matter here.
	{"M/M/1", "step_time: {linear: {a_ms: 1, b_us: 0}}\nengine: {max_num_seqs: 1}\nworkload: {arrivals: {process: poisson, rate: 0.5}, input: {distribution: fixed, value: 1}, output: {distribution: gamma, mean: 1000, cv: 1}}\n", 2000},
	// M/M/4 with 3.2 erlangs: Erlang's C is 0.596432, the mean wait 0.745541 services.
	{"M/M/4", "step_time: {linear: {a_ms: 1, b_us: 0}}\nengine: {max_num_seqs: 4}\nworkload: {arrivals: {process: poisson, rate: 3.2}, input: {distribution: fixed, value: 1}, output: {distribution: gamma, mean: 1000, cv: 1}}\n", 1745.541},
}

// repetitions is how often coverage is counted: 5 times (twice in the short tier), or as often as CLIFFTOP_COVERAGE
// says.
func repetitions(t *testing.T) (n int, whole bool) {
	n, err := strconv.Atoi(os.Getenv("CLIFFTOP_COVERAGE"))
	if err != nil {
		n = testenv.Choose(2, 5)
		t.Logf("CLIFFTOP_COVERAGE is not set: %d repetitions, too few to estimate a share (CLIFFTOP_COVERAGE=500 does)",
			n)
		return n, false
	}
	return n, true
}

// methods are how intervals are made, and the shares of them that should hold the mean.
var methods = []struct {
	name, run, by string
	low, high     float64
}{
	{"replications", "run: {requests: 2000, replications: 5, seed: %}", report.ByReplications, .92, .98},
	{"batch means", "run: {requests: 10000, seed: %}", report.ByBatchMeans, .90, .98},
}

// TestCoverage counts how often 95 % intervals hold the exact mean sojourn: those of five replications of 2,000
// requests, and those of batch means in single runs of 10,000, all after an automatic warm-up.
func TestCoverage(t *testing.T) {
	n, whole := repetitions(t)
	for _, a := range anchors {
		for _, m := range methods {
			t.Run(a.name+"/"+m.name, func(t *testing.T) {
				held, known, widths, sum := 0, 0, 0.0, 0.0
				for k := range n {
					s := parse(t, a.text+fill(m.run, 1+1000*k))
					r, err := experiments.Replicate(context.Background(), s, experiments.ReplicateOptions{})
					if err != nil {
						t.Fatal(err)
					}
					sum += *r.Latency.E2E.Mean
					ci, ok := r.CI95["latency_ms.e2e.mean"]
					if !ok {
						continue
					}
					if r.CI95Method != m.by {
						t.Fatalf("method %q, want %q", r.CI95Method, m.by)
					}
					known++
					widths += (ci[1] - ci[0]) / 2 / a.e2e
					if ci[0] <= a.e2e && a.e2e <= ci[1] {
						held++
					}
				}
				share := float64(held) / float64(max(known, 1))
				t.Logf("%d of %d intervals hold %.0f ms (%.1f %%), of %d runs; ±%.1f %% and %.0f ms on average",
					held, known, a.e2e, 100*share, n, 100*widths/float64(max(known, 1)), sum/float64(n))
				low, high := m.low, m.high
				if !whole { // three standard deviations
					low, high = .95-3*math.Sqrt(.95*.05/float64(n)), 1
				}
				if known < n*3/5 || share < low || share > high {
					t.Errorf("%.1f %% of %d intervals hold the mean, want %.0f to %.0f %%", 100*share, known, 100*low,
						100*high)
				}
			})
		}
	}
}

func fill(text string, seed int) string {
	b := []byte{}
	for i := range len(text) {
		if text[i] == '%' {
			b = strconv.AppendInt(b, int64(seed), 10)
			continue
		}
		b = append(b, text[i])
	}
	return string(b)
}
