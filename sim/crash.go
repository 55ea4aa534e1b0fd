package sim

import (
	"cmp"
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// What becomes of the requests of a replica that fails.

// crash ends replica i at once; it starts again after back, unless that is 0.
func (e *Simulation) crash(i int, back clock.Duration) {
	l := &e.lives.of[i]
	if l.state == event.Off || l.state == event.Down {
		return
	}
	e.failAll(i)
	l.number++
	l.wanted, l.gone = l.wanted && back > 0, l.gone || back == 0
	e.enter(i, event.Down)
	e.notice(i)
	if free := max(e.now, e.idleFrom(i)); l.wanted {
		e.lives.plan(max(free, e.now.Add(back)), controlBegin, i, l.number)
	} else {
		e.lives.plan(free, controlOff, i, l.number)
	}
}

// unlucky is a request of a replica that fails.
type unlucky struct {
	*workload.Request
	seq    int32 // its sequence, if it was admitted
	queued bool  // it has reached the queue
}

// failAll ends all requests of replica i, in order of their IDs.
func (e *Simulation) failAll(i int) {
	group := e.group(i)
	for _, r := range group {
		r.halt(e.now)
		if r.conn != nil {
			r.conn.ended = true
		}
	}
	for _, r := range group {
		e.failOne(r)
	}
	e.renew(i)
}

// failOne ends all requests of one of those that live together.
func (e *Simulation) failOne(r *Engine) {
	i := r.index
	var all []unlucky
	r.queue.each(func(q *workload.Request) { all = append(all, unlucky{q, none, true}) })
	e.frontend.keep(func(x entry) bool {
		held := &e.pending[x.ref]
		if int(held.to) != i {
			return true
		}
		e.vacant = append(e.vacant, x.ref)
		if !mayLeave(&held.Request) || e.patients.Find(held.ID) != nil { // or its client left
			all = append(all, unlucky{&held.Request, none, false})
		}
		return false
	})
	for k, s := range r.seqs.items {
		if q := &s.rec.Request; q.OutputTokens > 0 { // somebody's
			all = append(all, unlucky{q, int32(k), true})
		}
	}
	slices.SortFunc(all, func(a, b unlucky) int { return cmp.Compare(a.ID, b.ID) })
	for _, u := range all {
		switch {
		case u.seq != none:
			r.lose(u.seq)
		case u.queued:
			r.levels.Waiting--
			e.disconnect(u.Request, int32(i), r.queued(u.Request))
		default:
			e.disconnect(u.Request, int32(i), clock.Never)
		}
	}
	r.abandon(e.now)
	if r.cfg.Check && r.fault == nil {
		r.fault = r.checkEmpty()
	}
}

// halt commits what has begun by the instant at, and begins nothing more.
func (r *Engine) halt(at clock.Time) {
	r.answered = false
	r.stop(at)
	r.now = at
}

// checkEmpty asserts that a replica that has failed has nothing left.
func (r *Engine) checkEmpty() error {
	if (r.levels != event.Levels{Blocked: r.levels.Blocked}) || r.used() != 0 || r.running != 0 {
		return r.broken("replica %d has failed, but %+v and %d blocks are in use", r.index, r.levels, r.used())
	}
	return r.checkGPUTime()
}

// lose ends sequence i, because its replica fails or its KV is lost. One whose last token was delivered is complete.
func (r *Engine) lose(i int32) {
	s := r.seq(i)
	if r.host.split != nil {
		r.host.split.restore(&s.rec.Request)
	}
	if !s.over && s.rec.Left == clock.Never {
		end := workload.End{How: workload.Disconnected, At: r.now.Add(r.cfg.NetworkOut)}
		if end.First, end.Tokens = r.receivedBy(i, r.now); end.First != clock.Never {
			end.At = max(end.At, end.First)
		}
		s.rec.Outcome, s.rec.Ending, s.rec.ClientFirst = event.Failed, end.How, end.First
		s.rec.Again = r.host.src.Done(&s.rec.Request, end)
	}
	r.cancel(i)
}

// disconnect ends a request that was never admitted, because the replica that it was sent to failed, or cannot be
// reached.
func (e *Simulation) disconnect(r *workload.Request, to int32, queued clock.Time) {
	rec := unserved(r)
	rec.Replica, rec.Queued = int(to), queued
	rec.Outcome, rec.Ending = event.Failed, workload.Disconnected
	e.levels.System--
	e.turnAway(&rec)
}
