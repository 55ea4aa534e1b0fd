package engine

import (
	"fmt"

	"clifftop/sim/queue"
	"clifftop/sim/sched"
)

// queueView is the waiting queue as a policy sees it.
type queueView struct {
	*composition
	looked  bool        // the policy has asked for more than the head of the queue
	blocked sched.Cause // why the head was not admitted
}

// WaitingLen implements [sched.Queue].
func (v *queueView) WaitingLen() int {
	v.looked = true
	return v.r.queue.Len()
}

// Waiting implements [sched.Queue].
func (v *queueView) Waiting(place int) (d sched.Waiting, ok bool) {
	r := v.r
	w := v.waiting(place)
	if w == nil {
		return
	}
	r.space.describe(w, &d)
	if w.Seq == none || r.seqs.at(w.Seq).phase != loaded {
		hit := r.space.find(w)
		d.Cached, d.Held, d.Grouped = hit.Tokens, hit.Held, hit.Tables
		d.Live = hit.More && r.running.answers > 0 && w.Request.SharesPrompt()
	}
	if c := r.remote.connector; c != nil {
		ready := w.Seq == none || r.seqs.at(w.Seq).phase != loaded && r.inFlight.tokensInFlight(w.Seq) == 0
		d.Loadable = c.Loadable(r.space.text(w), d.Cached, ready)
	}
	if r.cfg.Speculative.On() {
		d.Padding = r.cfg.padding(d.Known, d.Known-max(d.Cached, d.Computed))
	}
	return d, true
}

// Peek implements [sched.Queue].
func (v *queueView) Peek(place int) (p sched.Progress, ok bool) {
	w := v.waiting(place)
	if w == nil {
		return p, false
	}
	p = sched.NewProgress(&w.Request)
	p.MaxTokens = v.r.cfg.declaredOf(&w.Request)
	if w.Seq != none {
		p.Generated = v.r.seqs.at(w.Seq).issued
		p.InFlight = v.r.pipe.computes(v.r.seqs.at(w.Seq))
	}
	return p, true
}

// Skip implements [sched.Queue].
func (v *queueView) Skip() {
	v.looked = true
	v.r.queue.Skip()
}

// Beginning implements [sched.QueueText].
func (v *queueView) Beginning(place int, tokens int32) (key uint64, ok bool) {
	v.looked = v.looked || place > 0
	w := v.r.queue.At(place)
	if w == nil || v.r.seqs.known(w) < tokens {
		return 0, false
	}
	return w.Request.PrefixHash(tokens), true
}

// Path implements [sched.QueueText].
func (v *queueView) Path(place int, to []int32) []int32 {
	v.looked = v.looked || place > 0
	r := v.r
	w := r.queue.At(place)
	if w == nil {
		return to
	}
	return r.space.kind.Tree.Path(r.space.text(w), to)
}

// Blocked implements [sched.Queue].
func (v *queueView) Blocked(why sched.Cause) {
	if v.r.queue.Len() == 0 {
		return
	}
	v.blocked = why
}

// waiting returns the request at a place of the queue, or nil.
func (v *queueView) waiting(place int) *queue.Waiting {
	if place > 0 {
		v.looked = true
		if v.r.cfg.Order != nil {
			v.unsupported("Waiting beyond the head of an ordered queue")
			return nil
		}
	}
	return v.r.queue.At(place)
}

// unsupported fails the run because the policy used a feature that the engine does not have.
func (v *queueView) unsupported(verb string) {
	if v.r.fault == nil {
		v.r.fault = fmt.Errorf("sim: policy %T uses %s, which the engine does not do", v.r.cfg.Scheduler, verb)
	}
}

// describe sets the fields of d, which is empty, that do not depend on the prefix cache.
func (k *Space) describe(w *queue.Waiting, d *sched.Waiting) {
	q := &w.Request
	d.Progress, d.Urgency = sched.NewProgress(q), w.Urgency()
	d.TrueOutput, d.MaxTokens = k.cfg.OutputOf(q), k.cfg.declaredOf(q)
	d.Known = d.Prompt
	if w.Seq == none {
		return
	}
	s := k.seqs.at(w.Seq)
	d.Preempted, d.Generated = s.rec.Preemptions > 0, s.issued
	d.Known += s.issued
	switch {
	case s.hosted > 0:
		d.Computed = s.computed
	case s.phase == loaded:
		d.Computed, d.Held = s.computed, k.held(s)+s.windowed
	}
}
