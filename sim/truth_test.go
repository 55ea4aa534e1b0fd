package sim_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/simtest"
)

// config is the case's, without a cache that an unlimited pool cannot have.
func config(c *simtest.Case) sim.Config {
	cfg := c.Config()
	cfg.PrefixCaching = cfg.PrefixCaching && cfg.NumGPUBlocks > 0
	return cfg
}

// run runs a case on the engine.
func run(c *simtest.Case, obs sim.Observer, maxSpan int) error {
	cfg := config(c)
	cfg.MaxSpan = maxSpan
	cfg.Check = true
	e, err := sim.NewEngine(cfg, c.Source(), obs)
	if err != nil {
		return err
	}
	return e.Run(context.Background())
}

// TestTruth demands that the naive stepper, the engine stepped singly and the engine at full length tell
// the same story, token for token.
func TestTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := simtest.Draw(t)
		naive := new(simtest.StepTape)
		if err := simtest.Naive(config(&c), c.Source(), naive); err != nil {
			t.Fatalf("naive: %v\n%v", err, c)
		}
		cut := clock.Duration(rapid.Int64Range(0, 3).Draw(t, "edges")) * 17 * clock.Millisecond
		for _, maxSpan := range []int{1, 3, 0} {
			tape := &simtest.Tape{Cut: cut}
			if err := run(&c, tape, maxSpan); err != nil {
				t.Fatalf("spans of %d: %v\n%v", maxSpan, err, c)
			}
			if d := simtest.Diff(&naive.Tape, tape); d != "" {
				t.Fatalf("naive and spans of %d differ: %s\n%v", maxSpan, d, c)
			}
		}
		detail := new(simtest.StepTape)
		if err := run(&c, detail, 0); err != nil {
			t.Fatalf("detail: %v\n%v", err, c)
		}
		if d := simtest.Diff(&naive.Tape, &detail.Tape); d != "" {
			t.Fatalf("naive and detailed steps differ: %s\n%v", d, c)
		}
	})
}
