package simtest

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim"
	"clifftop/sim/engine"
	"clifftop/sim/sched"
)

// plainPolicy is vLLM's policy without what needs the general cycle at each composition.
func plainPolicy() Policy {
	return Policy{"vllm-plain", func(k *Knobs) sched.Scheduler {
		p := vllm(k)
		p.MaxLoRAs = 0
		p.Victim = sched.Victim(k.Choice("victim", "last-admitted", "last-admitted", "most-remaining", "least-progress",
			"longest"))
		return &p
	}}
}

// drawPlain makes a random case without optional parts. Its pool is often tight, so that the plain cycle and the
// general one alternate.
func drawPlain(t *rapid.T) Case {
	c := plainPolicy().Draw(t)
	d := drawer{t}
	cfg := &c.config
	cfg.Order, cfg.Connector, cfg.Hybrid, cfg.Groups, cfg.Radix, cfg.Contiguous = nil, nil, nil, nil, false, false
	cfg.Speculative, cfg.Stages, cfg.HostBlocks, cfg.HostFemtosPerBlock = engine.Speculative{}, 0, 0, 0
	cfg.MaxTokens, cfg.UnpredictedEnds, cfg.RecvInterval = 0, false, 0
	if !d.once("stream interval", 4) {
		cfg.StreamInterval = 0
	}
	if d.once("nothing shared", 2) {
		for i := range c.requests {
			c.requests[i].Content, c.requests[i].Session = nil, 0
		}
	}
	d.pool(&c)
	if err := c.relaxConfig(); err != nil {
		t.Skipf("no engine for it: %v", err)
	}
	return c
}

// VerifyPlain is [Verify] for vLLM's policy on engines without optional parts. It returns the compositions of the real
// engine, plain and not, and in how many cases both kinds alternate.
func VerifyPlain(t testing.TB) (all engine.Effort, mixed int) {
	t.Helper()
	verify(t, func(t *rapid.T) Case {
		c := drawPlain(t)
		e, err := sim.New(c.Config(), c.Source(), new(Recorder))
		if err == nil {
			err = e.Run(context.Background())
		}
		if err != nil {
			t.Fatalf("%v\n%v", err, c)
		}
		effort := e.Effort()
		all.Add(&effort)
		if 0 < effort.Plain && effort.Plain < effort.Compositions {
			mixed++
		}
		return c
	})
	return all, mixed
}
