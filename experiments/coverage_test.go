package experiments_test

import (
	"context"
	"math"
	"os"
	"strconv"
	"testing"

	"clifftop/experiments"
	"clifftop/report"
)

// anchors are systems whose mean sojourn is known in closed form.
var anchors = []struct {
	name, text string
	e2e        float64 // milliseconds
}{
	// M/D/1 with ρ = 0.5: 1 + ρ/2(1-ρ) services of a second.
	{"M/D/1", md1, 1500},
	// M/M/1 with ρ = 0.5: 1/(1-ρ) services, of a second on average. A service is of whole tokens of a millisecond, which does not
	// matter here.
	{"M/M/1", "step_time: {linear: {a_ms: 1, b_us: 0}}\nengine: {max_num_seqs: 1}\nworkload: {arrivals: {process: poisson, rate: 0.5}, input: {distribution: fixed, value: 1}, output: {distribution: gamma, mean: 1000, cv: 1}}\n", 2000},
}

// repetitions is how often coverage is counted: 5 times, or as often as CLIFFTOP_COVERAGE says.
func repetitions(t *testing.T) (n int, whole bool) {
	n, err := strconv.Atoi(os.Getenv("CLIFFTOP_COVERAGE"))
	if err != nil {
		t.Log("CLIFFTOP_COVERAGE is not set: 5 repetitions, from which no share can be told (CLIFFTOP_COVERAGE=500 tells)")
		return 5, false
	}
	return n, true
}

// TestCoverage counts how often 95 % intervals hold the exact mean sojourn: those of five replications of 2,000 requests after a
// warm-up of 100 services, and those of batch means in single runs of 10,000. An automatic warm-up makes the mean of so short
// runs too small: see docs/statistics.md.
func TestCoverage(t *testing.T) {
	n, whole := repetitions(t)
	for _, a := range anchors {
		for _, m := range []struct {
			name, run   string
			low, high   float64
			replication bool
		}{{"replications", "run: {requests: 2000, replications: 5, warmup: 100s, seed: %}", .92, .98, true}, {"batch means", "run: {requests: 10000, seed: %}", .90, .97, false}} {
			held, told, widths := 0, 0, 0.0
			for k := range n {
				s := parse(t, a.text+fill(m.run, 1+1000*k))
				r, err := experiments.Replicate(context.Background(), s, experiments.ReplicateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				ci, ok := r.CI95["latency_ms.e2e.mean"]
				if want := map[bool]string{true: report.ByReplications, false: report.ByBatchMeans}[m.replication]; ok && r.CI95Method != want {
					t.Fatalf("method %q, want %q", r.CI95Method, want)
				}
				if !ok {
					continue
				}
				told++
				widths += (ci[1] - ci[0]) / 2 / a.e2e
				if ci[0] <= a.e2e && a.e2e <= ci[1] {
					held++
				}
			}
			share := float64(held) / float64(max(told, 1))
			t.Logf("%s, %s: %d of %d intervals hold the mean (%.1f %%), of %d runs; ±%.1f %% on average", a.name, m.name, held, told, 100*share, n, 100*widths/float64(max(told, 1)))
			low, high := m.low, m.high
			if !whole { // three standard deviations
				low, high = .95-3*math.Sqrt(.95*.05/float64(n)), 1
			}
			if told < n*3/5 || share < low || share > high {
				t.Errorf("%s, %s: %.1f %% of %d intervals hold the mean, want %.0f to %.0f %%", a.name, m.name, 100*share, told, 100*low, 100*high)
			}
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
