package sched

import "errors"

var orcaRule = Rule{
	Name:   "orca",
	Does:   "whole prompts beside decodes, iteration by iteration; room for the longest output taken on admission",
	Source: "Yu et al., Orca, OSDI 2022",
	New:    func() Options { return new(Orca) },
}

// Orca schedules iteration by iteration (Yu et al., OSDI 2022): after each iteration finished sequences leave and
// waiting requests enter, first come, first served, without waiting for the rest of a batch. Prompts are computed
// whole, in the same iterations in which others decode. On admission a request reserves room for its longest output, so
// that no sequence is ever preempted.
//
// In a contiguous pool, as Orca had it, that room is one range, and the gaps between ranges are unusable until
// neighbours leave. In a paged pool Orca shows the cost of reservation alone. How much is reserved depends on what
// clients declare: the exact length is the best case, max_model_len the worst.
type Orca struct{}

var _ Scheduler = (*Orca)(nil)

// Make implements [Options].
func (*Orca) Make(*Keys) Scheduler { return new(Orca) }

// Defaults implements [Options].
func (*Orca) Defaults() Defaults {
	return Defaults{Synchronous: true, Reserves: true, NoPrefixCaching: true, WholePrompts: true, Contiguous: true}
}

// Validate implements [Scheduler].
func (p *Orca) Validate(l Limits) error {
	return errors.Join(needsWholePrompts("orca", l), needsTokens("orca", l))
}

// Schedule implements [Scheduler].
func (p *Orca) Schedule(v View) {
	decodeReserved(v)
	for w, ok := v.Waiting(0); ok; w, ok = v.Waiting(0) {
		tokens := w.Known - w.Cached
		if why := obstacle(v, tokens, fullBlocks(v, w)); why != NotBlocked {
			v.Blocked(why)
			return
		}
		admitFull(v, w, tokens)
	}
}

// Repeats implements [Scheduler]. Decoding takes no blocks, so that only a departure lets a blocked head in, or
// the output whose tokens begin its prompt.
func (p *Orca) Repeats(v View) int {
	if w, ok := v.Waiting(0); ok && w.Live {
		return 1
	}
	return forever
}
