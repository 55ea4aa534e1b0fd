package collect

import (
	"errors"
	"fmt"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Check asserts what must hold in every run: that no request and no token is lost, and Little's law as
// an identity of integers.
func (c *Collector) Check() error {
	c.settle()
	t := &c.totals
	var faults []error
	equal := func(what string, a, b any) {
		if a != b {
			faults = append(faults, fmt.Errorf("%s: %v and %v", what, a, b))
		}
	}
	inside := t.attempts - t.recorded
	if c.partial && inside != c.inSystem() {
		return nil // records may be ahead of the levels
	}
	equal("attempts in the system, by counting and by level", inside, c.inSystem())
	little := c.Little()
	equal("integral of the number in the system and sum of residence, in picoseconds", little.System[0],
		little.System[1])
	c.checkParts(equal)
	if inside > 0 {
		return errors.Join(faults...)
	}
	t.check(c.partial || c.opts.End > 0, equal)
	all := c.line.whole()
	equal("GPU time of iterations and of time buckets, in femtoseconds", c.totals.busy, all.busy)
	equal("tokens emitted and tokens of requests", all.output, t.records.tokens)
	equal("tokens recomputed and those of requests", all.recomputed, t.records.recomputed)
	for i, what := range [...]string{"tokens computed again", "tokens that the cache had lost", "drafts"} {
		equal("GPU time of "+what+" and that of requests, in femtoseconds", all.lost[i], t.records.gpu[i])
	}
	if t.preemptions == 0 && t.undone == 0 {
		equal("prompt tokens computed and those of requests that were not cached", all.prefill, t.completedInput)
		// whose first replica drops its token
		decoded := t.records.tokens - t.outcomes[event.Completed] + t.dropped - t.handed
		equal("tokens computed, and those of prompts, recomputed ones, decoded ones and rejected drafts",
			all.computed(), t.completedInput+all.recomputed+decoded+all.rejected())
	}
	equal("integral of the number in the engine and sum of residence, in picoseconds", little.Engine[0],
		little.Engine[1])
	if t.preemptions == 0 && t.handed == 0 {
		equal("integral of the queue and sum of waits, in picoseconds", little.Queue[0], little.Queue[1])
		equal("integral of the running batch and sum of residence, in picoseconds", little.Running[0],
			little.Running[1])
	}
	if t.preemptions == 0 {
		equal("integral of decoding and sum of decode times, in picoseconds", little.Decoding[0], little.Decoding[1])
	}
	return errors.Join(faults...)
}

// checkParts asserts that the replicas of a fleet did together what it did.
func (c *Collector) checkParts(equal func(what string, a, b any)) {
	if c.parts == nil {
		return
	}
	var ended int64
	var together bucket
	for _, p := range c.parts {
		for _, n := range p.outcomes {
			ended += n
		}
		all := p.line.whole()
		together.merge(&all)
	}
	all := c.line.whole()
	equal("attempts that ended, and those at replicas and at none", c.totals.recorded, ended+c.unrouted)
	equal("GPU time of replicas and of the fleet, in femtoseconds", together.busy, all.busy)
	equal("tokens emitted by replicas and by the fleet", together.output, all.output)
	equal("tokens computed by replicas and by the fleet", together.computed(), all.computed())
	equal("KV block time of replicas and of the fleet", together.blocks, all.blocks)
	equal("preemptions of replicas and of the fleet", together.preemptions, all.preemptions)
	equal("completions of replicas and of the fleet", together.completions, all.completions)
	if c.opts.Lifecycle {
		var time uint64 // modulo 2⁶⁴
		for _, picos := range together.states {
			time += picos
		}
		equal("time of all replicas in all states and of the run, in picoseconds", time,
			uint64(c.runEnd())*uint64(len(c.parts)))
	}
}

// Little holds the two sides of Little's law over the whole run, in request-picoseconds: the integral
// of the number of requests in a place, and the sum of the times that requests spent there. They
// are equal to the last digit when the run has drained; for the system they always are. A record does not tell when
// a preempted request came back, nor when one whose prompt another replica computed was admitted by the last, so with
// these only System and Engine, which is Queue and Running together, compare.
type Little struct {
	System, Engine, Queue, Running, Decoding [2]clock.Uint128
}

// Little gives both sides of Little's law.
func (c *Collector) Little() Little {
	c.settle()
	var integral [levels]clock.Uint128
	for i := range c.line.detail {
		for l := range integral {
			integral[l] = integral[l].Add(c.line.detail[i].levels[l].Sum())
		}
	}
	t := &c.totals
	// Those still inside have been there since they arrived.
	inside := uint64(c.inSystem())
	system := t.system.Add(clock.Mul64(inside, uint64(c.runEnd()))).Sub(t.arrivals.Sub(t.endedArrivals))
	return Little{
		System:   [2]clock.Uint128{integral[inSystem], system},
		Engine:   [2]clock.Uint128{integral[waiting].Add(integral[running]), t.engine},
		Queue:    [2]clock.Uint128{integral[waiting], t.queue},
		Running:  [2]clock.Uint128{integral[running], t.running},
		Decoding: [2]clock.Uint128{integral[decoding], t.decoding},
	}
}
