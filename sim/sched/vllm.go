package sched

import (
	"errors"
	"fmt"
)

// VLLM is the scheduler of vLLM's V1 engine: no phases, one token budget. Running requests go first,
// in order of admission, then waiting ones; every request is given as many tokens as bring its
// computed tokens up to its known ones. Preempted requests are recomputed.
type VLLM struct {
	// Victim is the running request that a preemption takes. Scheduling policy "priority" takes
	// [LeastUrgent], beside the queue's [ByPriority].
	Victim Victim
	// DisableChunkedPrefill admits a prompt only when the budget has room for all of it.
	DisableChunkedPrefill bool
	// LongPrefillTokenThreshold caps the tokens that one request gets in an iteration; 0 is no cap.
	LongPrefillTokenThreshold int32
	// AdmitOnFirstChunk asks for free blocks for the first chunk only (scheduler_reserve_full_isl
	// false), and not for the whole known sequence.
	AdmitOnFirstChunk bool
	// Watermark is the fraction of the pool that an admission leaves free while others run.
	Watermark float64
}

var _ Scheduler = (*VLLM)(nil)

// Victim is a rule that picks the running sequence to preempt.
type Victim uint8

// The rules.
const (
	LastAdmitted Victim = iota // the tail of the running batch
	LeastUrgent                // the last in the order of the queue
)

// Of is the sequence that the rule picks from the running batch of v, which is not empty.
func (rule Victim) Of(v View) Seq {
	last := v.Last()
	if rule == LastAdmitted {
		return last
	}
	for s := v.First(); s != None; s = v.Next(s) {
		if v.Urgency(last).Less(v.Urgency(s)) {
			last = s
		}
	}
	return last
}

// Validate implements [Scheduler].
func (p *VLLM) Validate(l Limits) error {
	switch {
	case p.DisableChunkedPrefill && l.MaxNumBatchedTokens < int(l.MaxModelLen):
		return fmt.Errorf("max_num_batched_tokens: %d is less than max_model_len %d, which chunked prefill off does not allow",
			l.MaxNumBatchedTokens, l.MaxModelLen)
	case l.Contiguous:
		return errors.New("policy vllm: sequences grow block by block, which a contiguous pool does not allow")
	case p.LongPrefillTokenThreshold < 0:
		return fmt.Errorf("long_prefill_token_threshold: %d is negative", p.LongPrefillTokenThreshold)
	case !(p.Watermark >= 0 && p.Watermark < 1):
		return fmt.Errorf("watermark: %v is not allowed (want 0 or more, less than 1)", p.Watermark)
	}
	return nil
}

// Schedule implements [Scheduler].
func (p *VLLM) Schedule(v View) {
	if p.extendRunning(v) {
		p.admitWaiting(v)
	} else {
		v.Blocked(HeldByPolicy)
	}
}

// extendRunning gives the running requests their tokens, and reports whether it preempted nobody.
func (p *VLLM) extendRunning(v View) bool {
	calm := true
	for s := v.DecodeAll(); s != None && v.Budget() > 0; s = v.Next(s) {
		want := min(p.capped(v.Missing(s)), v.Budget())
		if want == 0 {
			continue
		}
		for !v.Grow(s, want) {
			victim := p.Victim.Of(v)
			v.Preempt(victim)
			calm = false
			if victim == s {
				return false
			}
		}
		v.Give(s, want)
	}
	return calm
}

// admitWaiting admits from the head of the queue while seats, budget and KV blocks last. Nobody
// overtakes a blocked head.
func (p *VLLM) admitWaiting(v View) {
	for {
		w, ok := v.Waiting(0)
		switch {
		case !ok:
			return
		case v.Seats() == 0:
			v.Blocked(LacksSeats)
			return
		case v.Budget() == 0:
			v.Blocked(LacksBudget)
			return
		}
		want := p.capped(w.Known - w.Cached)
		if want > v.Budget() && p.DisableChunkedPrefill {
			v.Blocked(LacksBudget)
			return
		}
		want = min(want, v.Budget())
		if !p.fits(v, w, want) {
			v.Blocked(LacksKV)
			return
		}
		v.Admit(0, want)
	}
}

// fits reports whether the pool has room to admit w with want tokens.
func (p *VLLM) fits(v View, w Waiting, want int32) bool {
	reserve := 0
	if v.RunningLen() > 0 {
		reserve = int(p.Watermark * float64(v.Blocks()))
	}
	tokens := w.Known
	if p.AdmitOnFirstChunk {
		tokens = w.Cached + want
	}
	return v.BlocksFor(tokens)-w.Held+reserve <= v.FreeBlocks()
}

func (p *VLLM) capped(tokens int32) int32 {
	if p.LongPrefillTokenThreshold > 0 {
		return min(tokens, p.LongPrefillTokenThreshold)
	}
	return tokens
}

// Repeats implements [Scheduler]. While free blocks dwindle a blocked head stays blocked, unless
// what it waits for is just being generated, or the loss of cached blocks changes what it asks for.
func (p *VLLM) Repeats(v View) int {
	if w, ok := v.Waiting(0); ok && (w.Live || w.Cached > 0 && (p.AdmitOnFirstChunk || p.DisableChunkedPrefill)) {
		return 1
	}
	return forever
}
