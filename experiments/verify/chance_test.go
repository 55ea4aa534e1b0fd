package verify_test

import (
	"context"
	"fmt"
	"testing"

	"clifftop/experiments/measured"
	"clifftop/experiments/verify"
)

// TestChance: short runs of the machine that was promised are not outside because other arrivals and lengths were
// drawn, and a machine that is slower is, whatever the draw.
func TestChance(t *testing.T) {
	const long = "workload.output={distribution: lognormal, mean: 200, cv: 1.5}"
	s := promise(t, "model: llama-3.1-8b\ngpu: h100\nworkload: {output: {distribution: lognormal, mean: 200, cv: 1.5}}")
	count := func(seeds int, sets ...string) (outside, needed int) {
		for seed := range seeds {
			m := machine(t, append([]string{long, "run.requests=150", fmt.Sprintf("run.seed=%d", seed+2)}, sets...)...)
			r, err := verify.New(context.Background(), s, []*measured.Result{m}, verify.Options{NoCauses: true})
			if err != nil {
				t.Fatal(err)
			}
			if r.Verdict == verify.Outside {
				outside++
			}
			for _, x := range r.Runs[0].Metrics {
				if x.Chance != nil {
					needed++
					break
				}
			}
		}
		return outside, needed
	}
	same, needed := count(10)
	t.Logf("%d of 10 runs are outside, %d without regard to chance", same, needed)
	if same > 1 || needed < 2 {
		t.Errorf("%d of 10 runs of the same machine are outside, and %d needed chance", same, needed)
	}
	if slow, _ := count(2, "overheads.cpu=12ms"); slow != 2 {
		t.Errorf("%d of 2 runs of a slow machine are outside", slow)
	}
}
