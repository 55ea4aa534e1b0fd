package sched

import (
	"errors"
	"fmt"
	"slices"
)

var preemptiveRule = Rule{
	Name:   "preemptive",
	Does:   "vLLM's, where a waiting request takes the place of running ones that are less urgent by the order",
	Source: "preemptive priority and SRPT, with recomputation",
	New:    func() Options { return new(Preemptive) },
}

// Preemptive is vLLM's scheduler on an ordered queue, whose head replaces less urgent running sequences when it finds
// no seat or too few blocks: priority preemption, or, with [SRPT], shortest remaining processing time. vLLM itself
// preempts only to let running sequences grow.
//
// The least urgent sequence is preempted first, and none unless the head can then be admitted. Victim must be
// [LeastUrgent] too; otherwise sequences that were admitted by urgency would be preempted by another rule, and admitted
// again. The head waits for the token budget as with vLLM. Each time that it is blocked all running sequences are
// visited.
//
// A sequence must not become less urgent as it runs: no order of this package does that.
type Preemptive struct {
	VLLM
	// Threshold is by how much the key of the head must be less than that of a sequence that it replaces; 0 is any
	// difference. Equal keys never preempt, whatever their arrival.
	Threshold int64

	waits      bool // the head waits until less urgent sequences hold enough blocks
	candidates []candidate
}

var _ Scheduler = (*Preemptive)(nil)

// Make implements [Options].
func (p *Preemptive) Make(k *Keys) Scheduler {
	made := &Preemptive{VLLM: *p.VLLM.Make(k).(*VLLM), Threshold: int64(k.PreemptionThreshold)}
	made.Victim = LeastUrgent
	return made
}

// Validate implements [Scheduler].
func (p *Preemptive) Validate(l Limits) error {
	switch {
	case !l.Ordered:
		return errors.New("policy preemptive: the queue needs an order; in order of arrival no waiting request is " +
			"more urgent than a running one")
	case l.Connector:
		return errors.New("policy preemptive: it does not support a KV connector (want policy vllm)")
	case l.Speculative && l.Async:
		return errors.New("policy preemptive: it does not support drafts with asynchronous scheduling (want policy " +
			"vllm)")
	case l.Contiguous:
		return errors.New("policy preemptive: it does not support a contiguous pool")
	case p.Victim != LeastUrgent:
		return errors.New("policy preemptive: the least urgent gives way, also to running sequences that grow (want " +
			"that victim)")
	case p.MaxLoRAs > 0:
		return errors.New("policy preemptive: it does not support max_loras (want policy vllm)")
	case p.Threshold < 0:
		return fmt.Errorf("preemption threshold: %d is negative", p.Threshold)
	}
	return p.VLLM.Validate(l)
}

// Schedule implements [Scheduler].
func (p *Preemptive) Schedule(v View) {
	p.waits, p.hit = false, false
	if !p.extendRunning(v) {
		v.Blocked(HeldByPolicy)
		return
	}
	p.uniform = false // requests are admitted without dummy drafts
	var gone []int64  // requests that were preempted in this iteration do not return in it
	for w, ok := v.Waiting(0); ok; w, ok = v.Waiting(0) {
		if slices.Contains(gone, w.Request) {
			v.Blocked(HeldByPolicy)
			return
		}
		why := p.admit(v, &w)
		p.hit = why != NotBlocked && w.Cached > 0
		if why == NotBlocked {
			continue
		}
		victims := p.inTheWay(v, &w, why)
		if len(victims) == 0 {
			v.Blocked(why)
			return
		}
		for _, s := range victims {
			gone = append(gone, v.Progress(s).Request)
			p.preempt(v, s)
		}
	}
}

// inTheWay returns the sequences that are preempted for w, the head of the queue: the least urgent ones that suffice,
// without those among them that can stay.
func (p *Preemptive) inTheWay(v View, w *Waiting, lacks Cause) (victims []Seq) {
	want, whole := p.chunk(v, w)
	if lacks == LacksBudget || v.Budget() == 0 || p.DisableChunkedPrefill && !whole {
		return nil
	}
	asks, seats := p.asks(v, w, want)-v.FreeBlocks(), v.Seats()
	for _, c := range p.lessUrgent(v, w.Urgency.Key+p.Threshold) {
		if asks <= 0 && seats > 0 {
			break
		}
		victims = append(victims, c.seq)
		asks, seats = asks-p.holds(v, c.seq), seats+1
	}
	if asks > 0 || seats < 1 {
		p.waits = len(victims) > 0
		return nil
	}
	return slices.DeleteFunc(victims, func(s Seq) bool {
		stays := asks+p.holds(v, s) <= 0 && seats > 1
		if stays {
			asks, seats = asks+p.holds(v, s), seats-1
		}
		return stays
	})
}

// candidate is a running sequence that may be preempted.
type candidate struct {
	seq Seq
	Urgency
}

// lessUrgent lists the sequences whose key is above a bound, the least urgent first.
func (p *Preemptive) lessUrgent(v View, bound int64) []candidate {
	p.candidates = p.candidates[:0]
	for s := v.First(); s != None; s = v.Next(s) {
		if u := v.Urgency(s); u.Key > bound {
			p.candidates = append(p.candidates, candidate{s, u})
		}
	}
	slices.SortFunc(p.candidates, func(a, b candidate) int { return b.compare(a.Urgency) })
	return p.candidates
}

// holds returns the number of blocks that are freed with s, as far as it shares none.
func (p *Preemptive) holds(v View, s Seq) int {
	at := v.Progress(s)
	if p.Admission == FullLength {
		return v.BlocksFor(fullLength(at))
	}
	return v.BlocksFor(at.Prompt + at.Generated - v.Missing(s))
}

// Repeats implements [Scheduler]. A head that is blocked stays so, as in [VLLM], as long as no less urgent sequences
// hold blocks that in time will be enough.
func (p *Preemptive) Repeats(v View) int {
	if p.waits {
		return 1
	}
	return p.VLLM.Repeats(v)
}
