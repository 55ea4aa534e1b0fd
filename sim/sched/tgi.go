package sched

import (
	"errors"
	"fmt"
)

var tgiRule = Rule{
	Name: "tgi",
	Does: "room for prompt and output taken on admission; prompts in chunks beside decodes, or whole when enough of " +
		"them wait",
	Source:  "text-generation-inference, backends/v3",
	Section: "tgi",
	New:     func() Options { return &TGI{WaitingServedRatio: 0.3, MaxWaitingTokens: 20} },
}

// TGI is the scheduler of Hugging Face's text-generation-inference. A request takes the blocks of its prompt and of its
// longest output when it enters the batch, so that no sequence is ever preempted. The queue is first in, first out; an
// entry whose client has left is dropped.
//
// Without chunking a prefill pauses all decoding requests. It is therefore delayed until it is worthwhile: at least
// WaitingServedRatio of the decoding requests' number must wait and fit; after MaxWaitingTokens iterations without a
// prefill one request suffices. The batch decodes at least once between two prefills.
//
// With chunking (the back ends of version 3) prompts join the iterations in which others decode. The token budget is
// max_batch_prefill_tokens less what the batch takes itself, and the last prompt that enters is cut where it ends.
type TGI struct {
	// WaitingServedRatio is the number of waiting requests that are worth a pause, per decoding request, rounded down.
	// TGI has 0.3, and 1.2 before version 2.
	WaitingServedRatio float64 `json:"waiting_served_ratio" range:"[0,1e6]" doc:"waiting per decoding to start prefill"`
	// MaxWaitingTokens is the value of the counter at which a prefill needs no minimum. The counter is 1 after a
	// prefill and grows by 1 with each decode iteration. TGI has 20.
	MaxWaitingTokens int `json:"max_waiting_tokens" range:"[1,1e9]" doc:"iterations after which one request suffices"`
	// Chunking splits prompts. The two knobs above then have no effect.
	Chunking bool

	prefilled int64 // DecodeSteps at the last prefill
	stirring  bool  // the cached tokens of the requests that were looked at may grow by the next iteration
}

var _ Scheduler = (*TGI)(nil)

// Make implements [Options].
func (p *TGI) Make(k *Keys) Scheduler {
	made := *p
	made.Chunking = k.EnableChunkedPrefill
	return &made
}

// Defaults implements [Options].
func (*TGI) Defaults() Defaults {
	return Defaults{Synchronous: true, Reserves: true, TokenBudget: 4096}
}

// Validate implements [Scheduler].
func (p *TGI) Validate(l Limits) error {
	faults := []error{needsPages("tgi", l), needsTokens("tgi", l)}
	if !(p.WaitingServedRatio >= 0) {
		faults = append(faults, fmt.Errorf("waiting_served_ratio: %v is not allowed (want 0 or more)",
			p.WaitingServedRatio))
	}
	if p.MaxWaitingTokens < 0 {
		faults = append(faults, fmt.Errorf("max_waiting_tokens: %d is negative", p.MaxWaitingTokens))
	}
	if !p.Chunking {
		faults = append(faults, needsWholePrompts("tgi", l))
		if l.Ordered {
			faults = append(faults, errors.New("policy tgi: without chunking its queue is first in, first out"))
		}
	}
	return errors.Join(faults...)
}

// Schedule implements [Scheduler].
func (p *TGI) Schedule(v View) {
	p.stirring = false
	switch {
	case p.Chunking:
		decodeReserved(v)
		continuePrefills(v)
		p.admit(v)
	case p.worthwhile(v) && p.admit(v):
		p.prefilled = v.DecodeSteps()
	default:
		decodeReserved(v)
	}
}

// admit admits from the head of the queue until a request does not fit, and reports whether it admitted any.
func (p *TGI) admit(v View) (any bool) {
	for w, ok := p.look(v, 0); ok; w, ok = p.look(v, 0) {
		tokens := w.Known - w.Cached
		if p.Chunking {
			tokens = min(tokens, v.Budget())
		}
		if why := obstacle(v, tokens, fullBlocks(v, w)); why != NotBlocked {
			v.Blocked(why)
			break
		}
		admitFull(v, w, tokens)
		any = true
	}
	return any
}

// worthwhile reports whether a prefill may pause the decoding requests.
func (p *TGI) worthwhile(v View) bool {
	if _, ok := p.look(v, 0); !ok || v.Decoding() == 0 {
		return ok
	}
	counter := p.counter(v)
	if counter > 1 && (counter >= int64(p.MaxWaitingTokens) || p.enough(v)) {
		return true
	}
	v.Blocked(HeldByPolicy)
	return false
}

func (p *TGI) counter(v View) int64 { return 1 + v.DecodeSteps() - p.prefilled }

// minimum returns the number of requests that are worth a pause.
func (p *TGI) minimum(v View) int { return int(p.WaitingServedRatio * float64(v.Decoding())) }

// enough reports whether the minimum number of requests wait and fit.
func (p *TGI) enough(v View) bool {
	least := p.minimum(v)
	if v.WaitingLen() < least || v.Seats() < least {
		return false
	}
	tokens, blocks := v.Budget(), v.FreeBlocks()
	for i := range least {
		w, _ := p.look(v, i)
		tokens -= w.Known - w.Cached
		blocks -= fullBlocks(v, w)
		if tokens < 0 || blocks < 0 {
			return false
		}
	}
	return true
}

// look returns the i-th waiting request. Without chunking it is called before decoding sequences are given the tokens
// that may fill another block of its beginning.
func (p *TGI) look(v View, i int) (Waiting, bool) {
	w, ok := v.Waiting(i)
	p.stirring = p.stirring || w.Live || w.Cached > 0 && !p.Chunking
	return w, ok
}

// Repeats implements [Scheduler]. The counter removes the minimum, and a request that joins the queue may
// reach it. Otherwise only a departure admits waiting requests, or an output whose tokens begin their prompts.
func (p *TGI) Repeats(v View) int {
	_, waits := v.Waiting(0)
	counter := p.counter(v)
	left := int64(p.MaxWaitingTokens) - counter
	switch {
	case p.stirring:
		return 1
	case p.Chunking || !waits:
		return forever
	case counter == 1: // the first chance comes with the next iteration
		return 1
	case left <= 0:
		return forever
	default:
		return int(left)
	}
}
