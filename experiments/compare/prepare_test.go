package compare

import (
	"context"
	"testing"

	"clifftop/experiments/scenario"
	"clifftop/internal/testenv"
	"clifftop/report"
)

// Runs whose length is open are as long as a steady state needs, or hours where that is too long. A given length stays.
func TestLengthOfRuns(t *testing.T) {
	for _, c := range []struct {
		name, text string
		hourly     bool
		states     [2]string
		low, high  float64 // of the window, in seconds
	}{
		{"poisson settles", "{workload: {arrivals: {process: poisson, rate: 4}}, engine: {max_num_seqs: 256}}", false,
			[2]string{report.Settled, report.Settled}, 400, 10_000},
		{"the default traffic does not", "{workload: {arrivals: {rate: 20}}}", true,
			[2]string{report.Finite, report.Finite}, 3100, 3700},
		{"a given length stays", "{workload: {arrivals: {rate: 20}}, run: {requests: 2000}}", false,
			[2]string{report.Finite, report.Finite}, 50, 110},
		{"overload is short", "{workload: {arrivals: {rate: 90}}}", false,
			[2]string{report.Overloaded, report.Overloaded}, 100, 2000},
	} {
		if c.hourly && !testenv.Long() {
			continue
		}
		s, err := scenario.Parse("test", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		variants, err := Vary(s, "engine.max_num_batched_tokens=8192,4096")
		if err != nil {
			t.Fatal(err)
		}
		v, err := Run(context.Background(), variants, Options{})
		if err != nil {
			t.Fatal(err)
		}
		runs := defaultReplications
		if c.hourly {
			runs = defaultHours
		}
		if len(v.Seeds) != runs {
			t.Errorf("%s: %d runs of each, want %d", c.name, len(v.Seeds), runs)
		}
		for i, x := range v.States {
			if x.State != c.states[i] || x.LengthS < c.low || x.LengthS > c.high || x.ByMedian != c.hourly {
				t.Errorf("%s: %+v, want %s and a window of %g to %g s", c.name, x, c.states[i], c.low, c.high)
			}
		}
	}
}
