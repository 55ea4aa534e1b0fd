package sched

import "errors"

var sarathiRule = Rule{
	Name:   "sarathi",
	Does:   "a small token budget: decodes first, then chunks of prompts; KV of whole prompts taken on admission",
	Source: "Agrawal et al., Sarathi-Serve, OSDI 2024",
	New:    func() Options { return new(Sarathi) },
}

// Sarathi is the scheduler of Sarathi-Serve (Agrawal et al., OSDI 2024): a small, fixed token budget (chunk_size, here
// max_num_batched_tokens; 512 is typical). Decoding requests get their tokens first, then prompts that were begun, then
// new ones. So every iteration takes about the same time, and no decoding request waits for a prompt.
//
// The blocks of a whole prompt are taken on admission, and a watermark stays free; a prompt that was begun never waits
// for blocks. A decoding request that finds no free block preempts the one that was admitted last, which is recomputed.
// No request is admitted in an iteration with a preemption.
type Sarathi struct {
	// Watermark is the fraction of the pool that admission leaves free, while others run. Sarathi-Serve has 0.01.
	Watermark float64
}

var _ Scheduler = (*Sarathi)(nil)

// Make implements [Options].
func (*Sarathi) Make(k *Keys) Scheduler { return &Sarathi{Watermark: k.Watermark} }

// Defaults implements [Options].
func (*Sarathi) Defaults() Defaults {
	return Defaults{Synchronous: true, NoPrefixCaching: true, TokenBudget: 512, Watermark: 0.01}
}

// Validate implements [Scheduler].
func (p *Sarathi) Validate(l Limits) error {
	return errors.Join(validWatermark(p.Watermark), needsPages("sarathi", l), needsTokens("sarathi", l))
}

// Schedule implements [Scheduler].
func (p *Sarathi) Schedule(v View) {
	calm := decodeOrEvict(v, View.Preempt)
	continuePrefills(v)
	if !calm {
		v.Blocked(HeldByPolicy)
		return
	}
	for w, ok := v.Waiting(0); ok; w, ok = v.Waiting(0) {
		tokens := min(w.Known-w.Cached, v.Budget())
		if why := obstacle(v, tokens, aboveWatermark(v, w.Known, p.Watermark)); why != NotBlocked {
			v.Blocked(why)
			return
		}
		v.Reserve(v.Admit(0, tokens), w.Known)
	}
}

// Repeats implements [Scheduler]. A blocked head stays blocked: it needs all its blocks, cached or not.
func (p *Sarathi) Repeats(v View) int { return 1 + v.FreeBlocks()/slots(v) }
