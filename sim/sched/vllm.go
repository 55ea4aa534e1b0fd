package sched

import "fmt"

// VLLM is the scheduler of vLLM's V1 engine: no phases, one token budget. Running requests go first,
// in order of admission, then waiting ones; every request is given as many tokens as bring its
// computed tokens up to its known ones. Preempted requests are recomputed.
type VLLM struct {
	// Priority selects scheduling_policy "priority": the queue is ordered by (priority, arrival) and
	// the victim of a preemption is the least urgent running request, not the last admitted one.
	Priority bool
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

// Validate implements [Scheduler].
func (p *VLLM) Validate(maxNumBatchedTokens int, maxModelLen int32) error {
	switch {
	case p.DisableChunkedPrefill && maxNumBatchedTokens < int(maxModelLen):
		return fmt.Errorf("max_num_batched_tokens: %d is less than max_model_len %d, which chunked prefill off does not allow",
			maxNumBatchedTokens, maxModelLen)
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
			victim := p.victim(v)
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
		w, ok := v.Head()
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
		v.Admit(want)
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

// victim is the running request to preempt.
func (p *VLLM) victim(v View) Seq {
	last := v.Last()
	if !p.Priority {
		return last
	}
	for s := v.First(); s != None; s = v.Next(s) {
		if v.Urgency(last).Less(v.Urgency(s)) {
			last = s
		}
	}
	return last
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
	if w, ok := v.Head(); ok && (w.Live || w.Cached > 0 && (p.AdmitOnFirstChunk || p.DisableChunkedPrefill)) {
		return 1
	}
	return 1 << 30
}

// ByUrgency implements [Scheduler].
func (p *VLLM) ByUrgency() bool { return p.Priority }
