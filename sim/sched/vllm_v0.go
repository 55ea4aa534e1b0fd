package sched

import (
	"errors"
	"fmt"
)

var vllmV0Rule = Rule{
	Name: "vllm-v0",
	Does: "whole prompts first, in iterations of their own, then decodes; the last admitted is recomputed, or " +
		"swapped",
	Source: "vLLM V0, the default until 2025",
	New:    func() Options { return new(VLLMV0) },
}

// VLLMV0 is the scheduler of vLLM's V0 engine, the default until 2025. An iteration either computes whole prompts or
// decodes, never both, and prompts come first: as long as the head of the queue fits, it is admitted, and all decoding
// requests wait. That gives the shortest time to first token and the longest gaps.
//
// A prompt takes its blocks on admission, and a watermark stays free. A decoding request requires a free block in every
// iteration, whether or not it takes one. If there is none, the request that was admitted last is preempted: recomputed
// later, or swapped to host memory. Swapped requests return before new ones are admitted, together with decoding
// requests and with the same watermark.
type VLLMV0 struct {
	// Watermark is the fraction of the pool that admission leaves free, while others run. V0 has 0.01.
	Watermark float64
	// Swap moves the KV of a preempted request to host memory (preemption_mode swap, V0's choice for groups of
	// sequences). Without it, or if host memory is full, the request is recomputed.
	Swap bool
}

var _ Scheduler = (*VLLMV0)(nil)

// Make implements [Options].
func (*VLLMV0) Make(k *Keys) Scheduler { return &VLLMV0{Watermark: k.Watermark, Swap: k.Swap} }

// Defaults implements [Options].
func (*VLLMV0) Defaults() Defaults {
	return Defaults{Synchronous: true, NoPrefixCaching: true, WholePrompts: true, Watermark: 0.01}
}

// Validate implements [Scheduler].
func (p *VLLMV0) Validate(l Limits) error {
	switch {
	case l.Speculative || l.Connector:
		return needsTokens("vllm-v0", l)
	case p.Swap && l.HostBlocks == 0:
		return errors.New("preemption: swap needs swap space in host memory, which has none")
	case p.Swap && l.PrefixCaching:
		return errors.New("preemption: swap does not go with prefix caching")
	case p.Swap && l.Ordered:
		return errors.New("preemption: swap needs first come, first served, because swapped requests return first")
	}
	return errors.Join(validWatermark(p.Watermark), needsWholePrompts("vllm-v0", l), needsPages("vllm-v0", l))
}

// Schedule implements [Scheduler].
func (p *VLLMV0) Schedule(v View) {
	place, swapped := p.nextSwapped(v, 0)
	if !swapped && p.admitPrompts(v) {
		return
	}
	switch {
	case !decodeOrEvict(v, p.evict):
		v.Blocked(HeldByPolicy)
	case swapped:
		p.swapIn(v, place)
	}
}

// admitPrompts admits whole prompts from the head of the queue, and reports whether there was any.
func (p *VLLMV0) admitPrompts(v View) (any bool) {
	for w, ok := v.Waiting(0); ok; w, ok = v.Waiting(0) {
		tokens := w.Known - w.Cached
		if why := obstacle(v, tokens, aboveWatermark(v, w.Known, p.Watermark)); why != NotBlocked {
			v.Blocked(why)
			break
		}
		v.Admit(0, tokens)
		any = true
	}
	return any
}

// nextSwapped finds the first swapped request in the queue, from a place on. Preempted requests are at the head.
func (p *VLLMV0) nextSwapped(v View, place int) (at int, ok bool) {
	for ; p.Swap; place++ {
		w, ok := v.Waiting(place)
		if !ok || !w.Preempted {
			break
		}
		if w.Computed > 0 {
			return place, true
		}
	}
	return 0, false
}

// swapIn resumes swapped requests, the first of which waits at a place of the queue, as far as they fit.
func (p *VLLMV0) swapIn(v View, place int) {
	for ok := true; ok; place, ok = p.nextSwapped(v, place) {
		w, _ := v.Waiting(place)
		tokens := w.Known - w.Computed
		if why := obstacle(v, tokens, aboveWatermark(v, w.Known, p.Watermark)); why != NotBlocked {
			v.Blocked(why)
			return
		}
		v.Admit(place, tokens)
	}
	v.Blocked(HeldByPolicy)
}

func (p *VLLMV0) evict(v View, s Seq) {
	if !p.Swap || !v.SwapOut(s) {
		v.Preempt(s)
	}
}

// Repeats implements [Scheduler]. A blocked head stays blocked: it needs all its blocks, cached or not.
func (p *VLLMV0) Repeats(v View) int { return 1 + v.FreeBlocks()/slots(v) }

// The block manager of V0, which Sarathi-Serve has too.

// aboveWatermark returns the number of free blocks required for an admission.
func aboveWatermark(v View, tokens int32, watermark float64) int {
	blocks := v.BlocksFor(tokens)
	if v.RunningLen() > 0 {
		blocks += int(watermark * float64(v.Blocks()))
	}
	return blocks
}

func validWatermark(watermark float64) error {
	if !(watermark >= 0 && watermark < 1) {
		return fmt.Errorf("watermark: %v is not allowed (want 0 or more, less than 1)", watermark)
	}
	return nil
}

// slots returns the number of free blocks with which certainly no sequence is preempted when all decode.
func slots(v View) int { return max(1, v.Decoding()*v.BlocksFor(1)) }

// decodeOrEvict gives every decoding sequence its token. A sequence needs a free block, or else the sequence that was
// admitted last is evicted, which can be itself; a sequence that runs alone needs only what it takes. It reports
// whether none was evicted.
func decodeOrEvict(v View, evict func(View, Seq)) (calm bool) {
	if v.FreeBlocks() >= slots(v) && v.DecodeFirst() {
		return true
	}
	calm = true
	prefill := v.NextPrefill(None)
	for s := v.First(); s != None; s = v.Next(s) {
		if s == prefill {
			prefill = v.NextPrefill(s)
			continue
		}
		if v.Missing(s) == 0 {
			continue
		}
		for v.FreeBlocks() == 0 && v.RunningLen() > 1 || !v.Grow(s, 1) {
			victim := v.Last()
			evict(v, victim)
			calm = false
			if victim == s {
				return false
			}
		}
		v.Give(s, 1)
	}
	return calm
}
