package experiments_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"testing"

	"clifftop/experiments"
	"clifftop/internal/testenv"
	"clifftop/report"
)

// sojourn is the mean time in the system, in services, of Poisson arrivals at a load of rho at some servers with
// exponential services, or at one server with constant ones.
func sojourn(servers int, exponential bool, rho float64) float64 {
	if !exponential {
		return 1 + rho/(2*(1-rho))
	}
	a := rho * float64(servers) // offered load in erlangs
	term, sum := 1.0, 1.0       // a^k/k!
	for k := 1; k < servers; k++ {
		term *= a / float64(k)
		sum += term
	}
	last := term * a / float64(servers) / (1 - rho)
	wait := last / (sum + last) // Erlang's C
	return 1 + wait/(float64(servers)*(1-rho))
}

// TestSettledCoverage counts how often the 95 % interval of a run that says that it has settled holds the exact mean
// sojourn. docs/statistics.md has the shares of 500 runs.
func TestSettledCoverage(t *testing.T) {
	testenv.NeedsLong(t, "runs of 444,000 requests")
	n, whole := repetitions(t)
	for _, q := range []struct {
		name        string
		servers     int
		exponential bool
	}{{"M/D/1", 1, false}, {"M/M/1", 1, true}, {"M/M/4", 4, true}} {
		for _, rho := range []float64{.6, .9} {
			t.Run(fmt.Sprint(q.name, " at ", rho), func(t *testing.T) {
				t.Parallel()
				step, output := "a_ms: 1", "distribution: gamma, mean: 1000, cv: 1"
				if !q.exponential {
					step, output = "a_ms: 1000", "distribution: fixed, value: 1"
				}
				length := "null" // what it needs, or at high load as much as it needs beyond the budget
				if rho > .6 {
					length = strconv.Itoa(int(5000 / (1 - rho) / (1 - rho)))
				}
				text := fmt.Sprintf("step_time: {linear: {%s, b_us: 0}}\nengine: {max_num_seqs: %d}\nworkload: {arrivals: "+
					"{process: poisson, rate: %v}, input: {distribution: fixed, value: 1}, output: {%s}}\n"+
					"run: {requests: %s, seed: %%}\n", step, q.servers, rho*float64(q.servers), output, length)
				exact := 1000 * sojourn(q.servers, q.exponential, rho)
				held, settled, widths, requests := 0, 0, 0.0, 0.0
				for k := range n {
					r, err := experiments.Settled(context.Background(), parse(t, fill(text, 1+1000*k)),
						experiments.RunOptions{})
					if err != nil {
						t.Fatal(err)
					}
					ci, ok := r.Summary.CI95["latency_ms.e2e.mean"]
					if r.Summary.Window.State != report.Settled || !ok {
						continue
					}
					settled++
					requests += float64(r.Summary.Requests.Offered)
					widths += (ci[1] - ci[0]) / 2 / exact
					if ci[0] <= exact && exact <= ci[1] {
						held++
					}
				}
				share := float64(held) / float64(max(settled, 1))
				t.Logf("%d of %d intervals hold %.0f ms (%.1f %%), ±%.1f %% on average; %d of %d runs have settled, "+
					"after %.0f requests on average", held, settled, exact, 100*share, 100*widths/float64(max(settled, 1)),
					settled, n, requests/float64(max(settled, 1)))
				least := .93
				if !whole { // three standard deviations
					least = .95 - 3*math.Sqrt(.95*.05/float64(max(settled, 1)))
				}
				if settled < n/5 || share < least {
					t.Errorf("%.1f %% of %d intervals hold the mean, want %.0f %% or more", 100*share, settled, 100*least)
				}
			})
		}
	}
}
