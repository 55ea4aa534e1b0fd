package sched

import "errors"

var staticRule = Rule{
	Name:   "static",
	Does:   "batches padded to the longest prompt that run until the longest output has ended",
	Source: "FasterTransformer",
	New:    func() Options { return new(Static) },
}

// Static forms a batch and runs it to its end, as FasterTransformer did: requests are admitted only when nothing runs,
// at most max_num_seqs of them, and later ones wait until the longest output of the batch has ended. It does not wait
// for a batch to fill.
//
// The batch is a rectangle. All prompts are computed in its first iteration, each at the cost of the longest of them;
// that many tokens must fit the token budget. Then every row decodes in every iteration: a row whose output has ended,
// or whose client has left, costs as much as before. Its blocks and its seat are free, but are not used.
type Static struct {
	rows    int   // of the current batch
	prompts int64 // the tokens of their prompts
}

var _ Scheduler = (*Static)(nil)

// Make implements [Options].
func (*Static) Make(*Keys) Scheduler { return new(Static) }

// Defaults implements [Options].
func (*Static) Defaults() Defaults {
	return Defaults{Synchronous: true, Reserves: true, NoPrefixCaching: true, WholePrompts: true, TokenBudget: 65_536,
		Contiguous: true}
}

// Validate implements [Scheduler].
func (p *Static) Validate(l Limits) error {
	return errors.Join(needsWholePrompts("static", l), needsTokens("static", l))
}

// Schedule implements [Scheduler].
func (p *Static) Schedule(v View) {
	if v.RunningLen() == 0 {
		p.form(v)
		return
	}
	p.decode(v)
	v.Blocked(HeldByPolicy)
}

// form admits the next batch.
func (p *Static) form(v View) {
	p.rows, p.prompts = 0, 0
	budget, longest := int64(v.Budget()), int32(0)
	for w, ok := v.Waiting(0); ok; w, ok = v.Waiting(0) {
		tokens := w.Known - w.Cached
		why := obstacle(v, tokens, fullBlocks(v, w))
		if why == NotBlocked && int64(p.rows+1)*int64(max(longest, tokens)) > budget {
			why = LacksBudget
		}
		if why != NotBlocked {
			v.Blocked(why)
			break
		}
		admitFull(v, w, tokens)
		longest = max(longest, tokens)
		p.rows++
		p.prompts += int64(w.Prompt)
	}
	if p.rows > 0 {
		v.PadChunks(longest)
	}
}

// decode gives every row its token, including rows that have ended.
func (p *Static) decode(v View) {
	live := v.Decoding()
	if live == 0 {
		return // the last tokens are in flight
	}
	row := v.First()
	for v.Missing(row) == 0 {
		row = v.Next(row)
	}
	generated := int64(v.Progress(row).Generated) // the same in all of them
	context := v.Context() + int64(live)          // with the tokens that are computed now
	decodeReserved(v)
	if ended := p.rows - live; ended > 0 {
		v.Pad(ended, p.prompts+int64(p.rows)*generated-context)
	}
}

// Repeats implements [Scheduler].
func (p *Static) Repeats(v View) int { return forever }
