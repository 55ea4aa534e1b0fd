package sched

// PlainRule is vLLM's scheduling rule as values: running requests first, then admission from the head of the queue,
// with one token budget. An engine that has no optional part composes iterations by it without calls of the policy.
type PlainRule struct {
	LongPrefill  int32   // most tokens that one request gets in an iteration; 0 is no limit
	WholePrompts bool    // a prompt is admitted only when the budget has room for all of it
	FirstChunk   bool    // an admission needs blocks for its first chunk only, not for the whole prompt
	Watermark    float64 // fraction of the pool that an admission leaves free while others run
}

// Plain is a [Scheduler] that may follow a [PlainRule].
type Plain interface {
	Scheduler
	// PlainRule returns the rule, and whether Schedule of the scheduler self does exactly what the rule says. self
	// differs from the receiver if another policy embeds it.
	PlainRule(self Scheduler) (PlainRule, bool)
}

// PlainRule implements [Plain].
func (p *VLLM) PlainRule(self Scheduler) (PlainRule, bool) {
	rule := PlainRule{LongPrefill: p.LongPrefillTokenThreshold, WholePrompts: p.DisableChunkedPrefill,
		FirstChunk: p.Admission == FirstChunk, Watermark: p.Watermark}
	return rule, self == Scheduler(p) && !p.Swap && p.MaxLoRAs == 0 && !p.pipeline && !p.ordered &&
		p.Admission != FullLength
}
