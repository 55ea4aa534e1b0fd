package sim_test

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/simtest"
)

// run runs a case on the engine, and returns what clients were told.
func run(c *simtest.Case, obs sim.Observer, maxSpan int) ([]simtest.Ended, error) {
	cfg := c.Config()
	cfg.MaxSpan = maxSpan
	cfg.Check = true
	src := c.Source()
	e, err := sim.NewEngine(cfg, src, obs)
	if err != nil {
		return nil, err
	}
	err = e.Run(context.Background())
	return src.Ended, err
}

// TestTruth demands that the naive stepper, the engine stepped singly and the engine at full length tell
// the same story, token for token.
func TestTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := simtest.Draw(t)
		naive := new(simtest.StepTape)
		src := c.Source()
		if err := simtest.Naive(c.Config(), src, naive); err != nil {
			t.Fatalf("naive: %v\n%v", err, c)
		}
		cut := clock.Duration(rapid.Int64Range(0, 3).Draw(t, "edges")) * 17 * clock.Millisecond
		for _, maxSpan := range []int{1, 3, 0} {
			tape := &simtest.Tape{Cut: cut}
			ended, err := run(&c, tape, maxSpan)
			if err != nil {
				t.Fatalf("spans of %d: %v\n%v", maxSpan, err, c)
			}
			if !slices.Equal(ended, src.Ended) {
				t.Fatalf("spans of %d: clients are told %v, naive %v\n%v", maxSpan, ended, src.Ended, c)
			}
			if d := simtest.Diff(&naive.Tape, tape); d != "" {
				t.Fatalf("naive and spans of %d differ: %s\n%v", maxSpan, d, c)
			}
		}
		detail := new(simtest.StepTape)
		if _, err := run(&c, detail, 0); err != nil {
			t.Fatalf("detail: %v\n%v", err, c)
		}
		if d := simtest.Diff(&naive.Tape, &detail.Tape); d != "" {
			t.Fatalf("naive and detailed steps differ: %s\n%v", d, c)
		}
	})
}
