package sim_test

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/sim/simtest/naive"
)

// orders draws an order of the queue.
func orders(t *rapid.T) sched.Order {
	size := sched.Size{PerPrompt: rapid.Int64Range(0, 2).Draw(t, "per prompt"),
		PerOutput: rapid.Int64Range(1, 3).Draw(t, "per answer")}
	if rapid.Bool().Draw(t, "predicted") {
		size.Error, size.Seed = rapid.Float64Range(0.1, 2).Draw(t, "error"), 5
	}
	due := sched.EDF{Within: []clock.Duration{clock.Millisecond, 0}, Otherwise: 20 * clock.Microsecond}
	order := rapid.SampledFrom([]sched.Order{
		sched.ByPriority{}, sched.SJF{Size: size}, sched.LJF{Size: size}, sched.SRPT{Size: size}, due,
		sched.LeastSlack{EDF: due, Size: size, PerUnit: 10 * clock.Microsecond},
	}).Draw(t, "order")
	if rapid.IntRange(0, 2).Draw(t, "fair") == 0 {
		weights := rapid.SampledFrom([][2]int64{{0, 0}, {1, 2}, {1, 0}, {0, 1}, {5, 1}}).Draw(t, "weights")
		fair := sched.VTC{Clients: sched.ByClass, PerPrompt: weights[0], PerOutput: weights[1]}
		if rapid.Bool().Draw(t, "within") {
			fair.Within = order
		}
		return fair
	}
	if rapid.IntRange(0, 3).Draw(t, "aged") == 0 {
		order = sched.Aged{Order: order,
			Per: clock.Duration(rapid.Int64Range(1, 50).Draw(t, "per")) * clock.Microsecond}
	}
	return order
}

// compareRuns checks that the naive engine and the real one, at several lengths of spans, give the same recording of a
// case.
func compareRuns(t *rapid.T, c *simtest.Case, cfg func() engine.Config) *simtest.StepRecorder {
	reference := new(simtest.StepRecorder)
	if err := naive.Run(cfg(), c.Source(), reference); err != nil {
		t.Fatalf("naive: %v\n%+v\n%v", err, cfg().Order, c)
	}
	for _, maxSpan := range []int{1, 3, 0} {
		engine := new(simtest.Recorder)
		if err := runWith(c, cfg(), engine, maxSpan); err != nil {
			t.Fatalf("spans of %d: %v\n%+v\n%v", maxSpan, err, cfg().Order, c)
		}
		if d := simtest.Diff(&reference.Recorder, engine); d != "" {
			t.Fatalf("naive and spans of %d differ: %s\n%+v %+v\n%v", maxSpan, d, cfg().Order, cfg().Scheduler, c)
		}
	}
	return reference
}

func runWith(c *simtest.Case, cfg engine.Config, obs event.Observer, maxSpan int) error {
	cfg.MaxSpan, cfg.Check = maxSpan, true
	e, err := sim.New(cfg, c.Source(), obs)
	if err != nil {
		return err
	}
	return e.Run(context.Background())
}

// TestOrders checks that the naive engine and the real one give the same recordings with every order of the
// queue and every choice of a preemption's victim.
func TestOrders(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		c, order := simtest.Draw(t), orders(t)
		victim := rapid.SampledFrom([]sched.Victim{sched.LastAdmitted, sched.LeastUrgent}).Draw(t, "victim")
		recorder := compareRuns(t, &c, func() engine.Config {
			cfg := c.Config()
			cfg.Order = order
			cfg.Scheduler.(*sched.VLLM).Victim = victim
			return cfg
		})
		seen[fmt.Sprintf("%T", order)]++
		if len(recorder.Preemptions) > 0 {
			seen["preempted"]++
		}
	})
	t.Log(seen)
}
