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
	switch {
	case t.answered:
	case t.ahead.N > 1:
		t.cutTo(t.composedFrom(at))
	case t.inFlight.n == 0 && t.ahead.N == 0:
		t.next = min(t.next, at)
	}
}

// composedFrom returns the number of the first iteration of the planned span, but iteration 0, that is composed at or
// after an instant. Iteration k ≥ 1 is composed when iteration k-depth ends.
func (t *timeline) composedFrom(at clock.Time) int {
	return max(t.ahead.FirstEndAtOrAfter(t.Until(at))+t.depth-1, 1)
}

// cutTo makes the planned span n iterations long, if it is longer.
func (t *timeline) cutTo(n int) {
	if n < t.ahead.N {
		t.ahead.N = n
		t.spanEnd()
	}
}

// spanEnd sets the next boundary to that of the planned span: its end or, before that, the end of the iteration in
// flight ahead of it, if that has results and a second iteration of the span is composed then.
func (t *timeline) spanEnd() {
	p := &t.ahead
	if t.inFlight.early = false; p.N > 1 && t.inFlight.n > 0 {
		if f := t.inFlight.at(0); f.eventful() {
			t.inFlight.early, t.next = true, f.end
			return
		}
	}
	t.next = p.End(p.N + 1 - t.depth)
}

// processAhead processes the iteration in flight ahead of the span. Its results do not change the span.
func (e *Engine) processAhead() {
	f := e.inFlight.at(0)
	free := e.space.free()
	e.process(f)
	e.released = e.space.free() - free
	f.clear()
	e.answered, e.inFlight.early = false, false
	e.next = e.ahead.End(e.ahead.N + 1 - e.depth)
}

// Stop commits the iterations of the span that are composed before the instant at.
func (e *Engine) Stop(at clock.Time) {
	if e.ahead.N > 0 {
		e.cut(at)
		e.inFlight.early = false
		e.commit()
	}
}

// SpanEnd is why an iteration is not repeated further, as [Engine.repeat] finds when it plans a span. Only counts are
// kept, in [Effort]. An event that cuts a span later does not change its reason.
type SpanEnd uint8

// The reasons.
const (
	StepTimeChanges SpanEnd = iota // the step timer promises no more, or the GPU becomes slower than the host
	SingleSteps                    // spans are limited
	BatchChanges                   // the iteration does more than give a token to each decoding sequence
	LoopFills                      // the asynchronous loop has no iteration in flight yet
	ResultsChange                  // the results of the iteration in flight may change the next decision
	SequenceEnds                   // a sequence gets its last token
	BlocksLack                     // the free KV blocks do not suffice for a step
	PolicyChanges                  // the policy promises no more
	PartChanges                    // an optional part does
	SpanEnds                       // the number of reasons
)

// String returns the reason in plain words.
func (w SpanEnd) String() string {
	return [...]string{"the step time changes", "spans are limited", "the batch changes", "the loop fills",
		"results in flight", "a sequence ends", "too few free KV blocks", "the policy", "an optional part"}[w]
}

// repeats is a number of equal iterations, and what limits it.
type repeats struct {
	n   int
	why SpanEnd
}

// atMost limits the number for a reason.
func (r *repeats) atMost(n int64, why SpanEnd) {
	if n < int64(r.n) {
		r.n, r.why = int(n), why
	}
}

// repeat returns the number of iterations, at most n, that are equal to the one just composed. It is the list of all
// reasons why a span ends before something cuts it.
func (e *Engine) repeat(n int) int {
	it, c, plain := &e.it, &e.cohort, e.plain.last
	r := repeats{n, StepTimeChanges}
	switch {
	case n <= 1:
	case e.maxSpan == 1:
		r = repeats{1, SingleSteps}
	case len(it.chunks) > 0 || it.decodes == 0 || !plain && !it.plain():
		r = repeats{1, BatchChanges}
	case e.inFlight.n < e.depth-1:
		r = repeats{1, LoopFills}
	case e.inFlight.n > 0 && e.resultsChange(e.inFlight.at(0)):
		r = repeats{1, ResultsChange}
	default:
		r.atMost(int64(e.maxSpan), SingleSteps)
		r.atMost(c.nextFinish()-c.steps+1, SequenceEnds)
		if !plain {
			e.repeatGeneral(&r)
		}
		if free := e.spareBlocks(); r.n > 1 && !c.takes.plenty(free, r.n-1) {
			r.atMost(int64(1+c.takes.within(c.steps, free, r.n-1)), BlocksLack)
		}
		if r.n > 1 && e.fair != nil {
			r.atMost(int64(e.sameHead(r.n)), PartChanges)
		}
	}
	e.effort.Ends[r.why]++
	return r.n
}

// resultsChange reports whether the results of iteration f, which is in flight, may change the next decision. They
// change nothing for the cohort, unless its finished requests free blocks that a waiting request needs, or release
// shared blocks.
func (e *Engine) resultsChange(f *iteration) bool {
	if !f.eventful() && !f.partial && f.chunks.N == 0 {
		return false
	}
	waits := e.queue.Len() > 0
	return f.partial || len(f.lasts)+f.chunks.N > 0 || // chunks enter the KV cache during the span
		len(f.finishes) > 0 && (waits || e.it.asked || e.space.cache.Shared() > 0) ||
		len(f.firsts) > 0 && waits && e.remote.connector != nil || // prefills become loadable
		e.lock != nil // the spans of the other ranks would not be interrupted
}

// repeatGeneral limits the repetitions of an iteration that the general cycle composed.
func (e *Engine) repeatGeneral(r *repeats) {
	c := &e.cohort
	if c.growing > 0 {
		r.atMost(1, PartChanges)
		return
	}
	r.atMost(int64(e.cfg.Scheduler.Repeats(&e.it)), PolicyChanges)
	if e.it.asked && e.inFlight.n > 0 && len(e.inFlight.at(0).finishes) > 0 {
		r.atMost(1, PolicyChanges) // it may decide differently after they have left
		return
	}
	r.atMost(int64(e.inbox.limit(r.n)), PartChanges)
	r.atMost(c.nextRefile()-c.steps+1, PartChanges)
}

// spareBlocks returns the number of free blocks that the members of the cohort may take in a span.
func (e *Engine) spareBlocks() int {
	switch {
	case e.plain.last:
		return e.plain.blocks.Free()
	case e.space.writesBack:
		return 0 // the instant of an eviction matters, because the block is copied
	}
	return e.space.cache.Spare(e.space.free())
}

// sameHead returns the number of iterations, at most n, that begin with the same head of a queue that shares service
// among clients.
func (e *Engine) sameHead(n int) int {
	if e.queue.Passes() {
		return 1
	}
	return e.fair.SameHead(n)
}

// Broken returns the error of a broken invariant at the current instant.
func (t *timeline) Broken(format string, args ...any) error {
	return fmt.Errorf("sim: broken invariant at %v: %w", t.now, fmt.Errorf(format, args...))
}
