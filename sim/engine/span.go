package engine

import "clifftop/sim/clock"

// A planned span is a run of like iterations that can be cut: how long it lasts, where it ends, and what cuts it.

// cut makes the first boundary at or after t the next one.
func (r *Engine) cut(t clock.Time) {
	if r.lock != nil {
		r.lock.cut(t)
		return
	}
	r.cutOwn(t)
}

// Until is the instant before which the boundaries of r have been, as seen by an event at the instant at. Boundaries of
// one instant come in the order of the replicas and after all else, so that what one of them leads to at once comes
// after those of the replicas before: also if these are within a promise, and nothing was done there.
func (r *Engine) Until(at clock.Time) clock.Time {
	if r.host.Passed(r.index, at) {
		return at + 1
	}
	return at
}

// cutOwn is cut for a replica by itself.
func (r *Engine) cutOwn(t clock.Time) {
	switch {
	case r.answered:
	case r.inFlight.n == 0 && r.ahead.N == 0:
		r.next = min(r.next, t)
	case r.ahead.N > 1:
		// Iteration k ≥ 1 is composed when iteration k-depth ends.
		ended := r.ahead.FirstEndAtOrAfter(r.Until(t))
		r.ahead.N = min(max(ended+r.depth-1, 1), r.ahead.N)
		r.next = r.spanEnd()
	}
}

// spanEnd is the boundary at which the promise is used up, or, before it, that at which the
// iteration in flight ahead of it has results.
func (r *Engine) spanEnd() clock.Time {
	if r.interrupted() {
		return r.inFlight.at(0).end
	}
	return r.ahead.End(r.ahead.N + 1 - r.depth)
}

// interrupted reports whether results are due while the promise goes on: those of the iteration in
// flight ahead of it, at the boundary where the promise's second iteration is composed.
func (r *Engine) interrupted() bool {
	return r.ahead.N > 1 && r.inFlight.n > 0 && r.inFlight.at(0).eventful()
}

// processAhead processes results that leave the promise as it is.
func (r *Engine) processAhead() {
	f := r.inFlight.at(0)
	used := r.space.Used()
	r.process(f)
	r.released = used - r.space.Used()
	r.answered = false
	f.clear()
	r.next = r.spanEnd()
}

// Stop commits the promised iterations that are composed before the instant at.
func (r *Engine) Stop(at clock.Time) {
	if r.ahead.N > 0 {
		r.cut(at)
		r.commit()
	}
}

// repeatable reports whether the iteration just composed would be composed again and again.
func (r *Engine) repeatable() bool {
	if !r.it.plain() || r.inFlight.n < r.depth-1 || r.maxSpan == 1 || r.cohort.growing > 0 {
		return false
	}
	if r.inFlight.n == 0 {
		return true
	}
	if r.lock != nil && r.inFlight.at(0).eventful() {
		return false // the promise would be interrupted, and not that of the others
	}
	// Results of the iteration ahead change nothing for the cohort, unless a request waits for the
	// room that they leave, or reads blocks that they share.
	f := r.inFlight.at(0)
	return !f.partial && len(f.lasts) == 0 &&
		(len(f.finishes) == 0 || r.queue.len() == 0 && r.space.Shared() == 0) &&
		len(f.computed) == 0 && // or they enter the tree meanwhile
		(len(f.firsts) == 0 || r.connector == nil || r.queue.len() == 0) // or become loadable
}

// horizon is the number of iterations, at most n, that will be like the one just composed.
func (r *Engine) horizon(n int) int {
	c := &r.cohort
	n = min(n, r.maxSpan, r.cfg.Scheduler.Repeats(&r.it))
	if r.it.asked && r.inFlight.n > 0 && len(r.inFlight.at(0).finishes) > 0 {
		return 1 // the policy may do otherwise when they have left
	}
	n = int(min(int64(n), c.nextFinish()-c.steps+1, c.nextRefile()-c.steps+1))
	if n > 1 {
		free := r.space.free()
		if r.space.contiguous != nil || r.space.writesBack {
			free = 0 // a contiguous range cannot grow; and the instant of an eviction matters if the block is copied
		}
		n = 1 + c.takes.within(c.steps, free, n-1)
	}
	if n > 1 && r.queue.fair != nil {
		n = r.queue.fair.sameHead(n)
	}
	return n
}
