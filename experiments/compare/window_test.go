package compare

import (
	"context"
	"testing"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
)

// The runs of a seed have one window, though each run alone would cut another warm-up.
func TestRunsOfASeedShareAWindow(t *testing.T) {
	for _, text := range []string{
		"{workload: {arrivals: {process: poisson, rate: 30}, input: 400, output: 300}, " +
			"engine: {max_num_seqs: 256}, run: {requests: 2000}}",
		"{workload: {arrivals: {users: 40}, input: 400, output: 60}, run: {requests: 1500}}",
	} {
		s, err := scenario.Parse("test", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		variants, err := Vary(s, "engine.max_num_seqs=256,120,24")
		if err != nil {
			t.Fatal(err)
		}
		c, r, err := newComparison(context.Background(), variants, Options{Replications: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.add(r.More(0)); err != nil {
			t.Fatal(err)
		}
		differ := false
		for i := range variants {
			for k := range c.seeds {
				base, run := c.runs[0][k].Window, c.runs[i][k].Window
				if run.StartS != base.StartS || run.EndS != base.EndS {
					t.Errorf("%s, seed %d: window %g to %g s, that of the baseline %g to %g s", c.names[i], c.seeds[k],
						run.StartS, run.EndS, base.StartS, base.EndS)
				}
				u, err := c.setup(i, c.seeds[k])
				if err != nil {
					t.Fatal(err)
				}
				alone, err := experiments.RunSetup(context.Background(), u, experiments.RunOptions{})
				if err != nil {
					t.Fatal(err)
				}
				own := alone.Summary.Window
				differ = differ || own.StartS != run.StartS || own.EndS != run.EndS
			}
		}
		if !differ {
			t.Error("all runs alone have the same window: the test shows nothing")
		}
	}
}
