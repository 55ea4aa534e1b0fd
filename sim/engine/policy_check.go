package engine

import (
	"fmt"

	"clifftop/sim/sched"
)

// policyCheck is a [sched.View] that checks the rules of package sched. The first call that breaks a rule sets the
// fault of the engine, which ends the run: an error with the rule, the instant and the request. From then on no call
// has an effect, so that the policy can return.
type policyCheck struct{ *batchBuilder }

var _ sched.View = policyCheck{}

// schedule calls the policy, and checks that it gave tokens to each sequence that it allocated blocks for.
func (a policyCheck) schedule() {
	a.r.cfg.Scheduler.Schedule(a)
	for i := a.r.running.first; i != none && a.r.fault == nil; i = a.r.seqs.at(i).next {
		if s := a.r.seqs.at(i); s.grown {
			a.wrong("request %d is given room, and no tokens", s.rec.Request.ID)
		}
	}
}

// wrong sets the fault for a broken rule, if it is the first one.
func (a policyCheck) wrong(format string, args ...any) {
	if a.r.fault == nil {
		a.r.fault = fmt.Errorf("sim: at %v: policy %T: %w", a.r.now, a.r.cfg.Scheduler, fmt.Errorf(format, args...))
	}
}

// known reports whether i is the handle of a sequence that runs or was taken out, and no rule is broken.
func (a policyCheck) known(i sched.Seq) bool {
	if i >= 0 && int(i) < len(a.r.seqs.items) && a.r.seqs.at(int32(i)).serial > 0 {
		return a.r.fault == nil
	}
	a.wrong("there is no sequence %d", i)
	return false
}

// runs reports whether sequence i runs, and no rule is broken.
func (a policyCheck) runs(i sched.Seq) bool {
	if !a.known(i) {
		return false
	}
	if s := a.r.seqs.at(int32(i)); !s.running() {
		a.wrong("request %d does not run", s.rec.Request.ID)
		return false
	}
	return true
}

func (a policyCheck) Next(i sched.Seq) sched.Seq {
	if !a.known(i) {
		return sched.None
	}
	return a.batchBuilder.Next(i)
}

func (a policyCheck) Prev(i sched.Seq) sched.Seq {
	if !a.known(i) {
		return sched.None
	}
	return a.batchBuilder.Prev(i)
}

func (a policyCheck) NextPrefill(i sched.Seq) sched.Seq {
	if i != sched.None && !a.known(i) {
		return sched.None
	}
	return a.batchBuilder.NextPrefill(i)
}

func (a policyCheck) Missing(i sched.Seq) int32 {
	if !a.runs(i) {
		return 0
	}
	return a.batchBuilder.Missing(i)
}

func (a policyCheck) Progress(i sched.Seq) sched.Progress {
	if !a.runs(i) {
		return sched.Progress{}
	}
	return a.batchBuilder.Progress(i)
}

func (a policyCheck) Given(i sched.Seq) int32 {
	if !a.runs(i) {
		return 0
	}
	return a.batchBuilder.Given(i)
}

func (a policyCheck) Urgency(i sched.Seq) sched.Urgency {
	if !a.runs(i) {
		return sched.Urgency{}
	}
	return a.batchBuilder.Urgency(i)
}

func (a policyCheck) DecodeAll() sched.Seq {
	if !a.together() {
		return sched.None
	}
	return a.batchBuilder.DecodeAll()
}

func (a policyCheck) DecodeFirst() bool { return a.together() && a.batchBuilder.DecodeFirst() }

// together reports whether all decoding sequences can be given their tokens at once.
func (a policyCheck) together() bool {
	if a.stepped && a.r.cohort.size > 0 {
		a.wrong("decoding sequences are given a token twice")
	}
	return a.r.fault == nil
}

func (a policyCheck) Grow(i sched.Seq, n int32) bool {
	if !a.runs(i) {
		return false
	}
	if s := a.r.seqs.at(int32(i)); s.given > 0 {
		a.wrong("request %d is given tokens twice", s.rec.Request.ID)
		return false
	}
	return a.batchBuilder.Grow(i, n)
}

func (a policyCheck) Give(i sched.Seq, n int32) {
	if !a.runs(i) {
		return
	}
	s, missing := a.r.seqs.at(int32(i)), a.batchBuilder.Missing(i)
	switch {
	case n < 1 || n > missing || n > a.Budget():
		a.wrong("request %d is given %d tokens, where it misses %d and %d are left", s.rec.Request.ID, n, missing,
			a.Budget())
	case s.given > 0:
		a.wrong("request %d is given tokens twice", s.rec.Request.ID)
	case !s.grown:
		a.wrong("request %d is given %d tokens without blocks", s.rec.Request.ID, n)
	default:
		a.batchBuilder.Give(i, n)
	}
}

func (a policyCheck) Preempt(i sched.Seq) {
	if a.runs(i) {
		a.batchBuilder.Preempt(i)
	}
}

func (a policyCheck) PreemptToTail(i sched.Seq) {
	if a.runs(i) {
		a.batchBuilder.PreemptToTail(i)
	}
}

func (a policyCheck) SwapOut(i sched.Seq) bool { return a.runs(i) && a.batchBuilder.SwapOut(i) }

func (a policyCheck) Admit(place int, n int32) sched.Seq {
	waits := a.r.queue.Len()
	if place < 0 || place >= waits || place > 0 && a.r.cfg.Order != nil || a.batchBuilder.Seats() <= 0 {
		a.wrong("admits request %d of %d with %d seats", place, waits, a.batchBuilder.Seats())
		return sched.None
	}
	w, _ := a.batchBuilder.Waiting(place)
	missing, most := w.Known-w.Cached-w.Computed, a.batchBuilder.LargestFree()
	room := a.r.cfg.PagesFor(a.r.cfg.admissionSlots(w.Known - missing + n))
	if w.Grouped {
		room = a.batchBuilder.Needs(place, n, false)
	}
	switch {
	case n < 1 || n > missing+w.Padding || n > a.Budget():
		a.wrong("request %d is given %d tokens, where it misses %d and %d are left", w.Request, n, missing, a.Budget())
	case room-w.Held > most:
		a.wrong("admits request %d with %d tokens, for which there are not enough blocks", w.Request, n)
	}
	if a.r.fault != nil {
		return sched.None
	}
	return a.batchBuilder.Admit(place, n)
}

func (a policyCheck) Load(place int) bool {
	if waits := a.r.queue.Len(); place < 0 || place >= waits || place > 0 && a.r.cfg.Order != nil {
		a.wrong("loads request %d of %d", place, waits)
	}
	return a.r.fault == nil && a.batchBuilder.Load(place)
}

func (a policyCheck) Reserve(i sched.Seq, tokens int32) bool {
	if !a.runs(i) {
		return false
	}
	if s := a.r.seqs.at(int32(i)); a.r.cfg.Contiguous && s.serial <= a.serials {
		a.wrong("reserves for request %d in a contiguous pool after its admission", s.rec.Request.ID)
		return false
	}
	return a.batchBuilder.Reserve(i, tokens)
}

func (a policyCheck) Book(i sched.Seq, tokens int32) {
	if a.runs(i) {
		a.batchBuilder.Book(i, tokens)
	}
}
