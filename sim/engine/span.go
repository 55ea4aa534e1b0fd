package engine

import (
	"cmp"
	"fmt"

	"clifftop/sim/clock"
)

// A span is a planned run of like iterations: how long it lasts, where it ends, and what cuts it.

// timeline is the position of an engine in time: the current instant, the next boundary, the planned span and the
// iterations in flight.
type timeline struct {
	*env
	lock    *lockstep // the group that iterates in lock step, or nil
	depth   int       // maximum number of iterations in flight that compute for the same sequence
	most    int       // maximum number of iterations in flight
	maxSpan int       // maximum number of iterations in a span

	now      clock.Time
	next     clock.Time        // next boundary
	answered bool              // requests have ended at the boundary, and the next iteration is not composed
	ahead    clock.Progression // N iterations like the one composed; 0 when no span is planned
	released int               // blocks freed since the span was planned
	inFlight iterationRing
	fault    error
}

// Next returns the instant of the next boundary, or [clock.Never].
func (t *timeline) Next() clock.Time { return t.next }

// Fault returns the error that stopped the engine, or nil.
func (t *timeline) Fault() error { return t.fault }

// Fail sets the error of the engine, unless it has one.
func (t *timeline) Fail(fault error) { t.fault = cmp.Or(t.fault, fault) }

// cut makes the first boundary at or after the instant at the next one.
func (t *timeline) cut(at clock.Time) {
	if t.lock != nil {
		t.lock.cut(at)
		return
	}
	t.cutOwn(at)
}

// cutAt makes the first boundary at or after the instant at the next one, of those at which a composition of the planned
// span comes that from returns: the first one that counts, from a number on.
func (t *timeline) cutAt(at clock.Time, from func(composition int) int) {
	switch {
	case t.answered:
	case t.inFlight.n == 0 && t.ahead.N == 0:
		t.next = min(t.next, at)
	case t.ahead.N > 1:
		// Iteration k ≥ 1 is composed when iteration k-depth ends.
		ended := t.ahead.FirstEndAtOrAfter(t.Until(at))
		t.ahead.N = min(from(max(ended+t.depth-1, 1)), t.ahead.N)
		t.next = t.spanEnd()
	}
}

// Until returns the instant up to which, exclusive, the boundaries of the engine have been processed, as an event at
// the instant at sees it. At one instant, boundaries follow all other events, in the order of the replicas. This
// holds for boundaries inside a span too.
func (t *timeline) Until(at clock.Time) clock.Time {
	if t.host.Passed(t.index, at) {
		return at + 1
	}
	return at
}

// cutOwn is cut for this engine alone, without its lock-step group.
func (t *timeline) cutOwn(at clock.Time) {
	t.cutAt(at, func(composition int) int { return composition })
}

// spanEnd returns the next boundary of the planned span: its end or, before that, the end of the iteration in flight
// ahead of it, if that has results.
func (t *timeline) spanEnd() clock.Time {
	if t.interrupted() {
		return t.inFlight.at(0).end
	}
	return t.ahead.End(t.ahead.N + 1 - t.depth)
}

// interrupted reports whether the iteration in flight ahead of the span has results. They are processed at the
// boundary at which the second iteration of the span is composed.
func (t *timeline) interrupted() bool {
	return t.ahead.N > 1 && t.inFlight.n > 0 && t.inFlight.at(0).eventful()
}

// processAhead processes the iteration in flight ahead of the span. Its results do not change the span.
func (e *Engine) processAhead() {
	f := e.inFlight.at(0)
	used := e.space.Used()
	e.process(f)
	e.released = used - e.space.Used()
	e.answered = false
	f.clear()
	e.next = e.spanEnd()
}

// Stop commits the iterations of the span that are composed before the instant at.
func (e *Engine) Stop(at clock.Time) {
	if e.ahead.N > 0 {
		e.cut(at)
		e.commit()
	}
}

// repeatable reports whether the composed iteration may be the first of several like ones.
func (it *batchBuilder) repeatable() bool {
	r := it.r
	if !it.plain() || r.inFlight.n < r.depth-1 || r.maxSpan == 1 || r.cohort.growing > 0 {
		return false
	}
	if r.inFlight.n == 0 {
		return true
	}
	if r.lock != nil && r.inFlight.at(0).eventful() {
		return false // the span would be interrupted, but the spans of the other ranks would not
	}
	// The results of the iteration in flight change nothing for the cohort, unless its finished requests free blocks
	// that a waiting request needs, or release shared blocks.
	f := r.inFlight.at(0)
	return !f.partial && len(f.lasts) == 0 &&
		(len(f.finishes) == 0 || r.queue.Len() == 0 && r.space.Shared() == 0) &&
		len(f.computed) == 0 && // or the chunks enter the radix tree during the span
		(len(f.firsts) == 0 || r.connector == nil || r.queue.Len() == 0) // or the prefills become loadable
}

// horizon returns the number of iterations, at most n, that will be like the one just composed.
func (it *batchBuilder) horizon(n int) int {
	r := it.r
	c := &r.cohort
	n = min(n, r.maxSpan, r.cfg.Scheduler.Repeats(it))
	if it.asked && r.inFlight.n > 0 && len(r.inFlight.at(0).finishes) > 0 {
		return 1 // the policy may decide differently after they have left
	}
	n = r.inbox.limit(n)
	n = int(min(int64(n), c.nextFinish()-c.steps+1, c.nextRefile()-c.steps+1))
	if n > 1 {
		free := r.space.free()
		if r.space.contiguous != nil || r.space.writesBack {
			free = 0 // a contiguous range cannot grow; and the instant of an eviction matters if the block is copied
		}
		n = 1 + c.takes.within(c.steps, free, n-1)
	}
	if n > 1 && r.fair != nil {
		if r.queue.Passes() {
			return 1
		}
		n = r.fair.SameHead(n)
	}
	return n
}

// Broken returns the error of a broken invariant at the current instant.
func (t *timeline) Broken(format string, args ...any) error {
	return fmt.Errorf("sim: broken invariant at %v: %w", t.now, fmt.Errorf(format, args...))
}
