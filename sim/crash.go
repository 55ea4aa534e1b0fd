package sim

import (
	"cmp"
	"slices"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/workload"
)

// What becomes of the requests of a replica that fails.

// crash ends replica i at once; it starts again after back, unless that is 0.
func (e *Simulation) crash(i int, back clock.Duration) {
	l := &e.lifecycle.of[i]
	if l.state == event.Off || l.state == event.Down {
		return
	}
	e.failAll(i)
	l.number++
	l.wanted, l.failed = l.wanted && back > 0, l.failed || back == 0
	e.setState(i, event.Down)
	e.probe(i)
	if free := max(e.now, e.idleFrom(i)); l.wanted {
		e.lifecycle.plan(max(free, e.now.Add(back)), plannedBegin, i, l.number)
	} else {
		e.lifecycle.plan(free, plannedOff, i, l.number)
	}
}

// failAll ends all requests of replica i, in order of their IDs.
func (e *Simulation) failAll(i int) {
	group := e.group(i)
	for _, r := range group {
		r.Halt(e.now)
	}
	for _, r := range group {
		e.failOne(r)
	}
	e.renew(i)
}

// failOne ends all requests of one of those that live together.
func (e *Simulation) failOne(r *Replica) {
	to := int32(r.Index())
	all := r.Attempts()
	e.frontend.Retain(func(x *pq.Item[int32]) bool {
		held := &e.pending[x.Value]
		if held.to != to {
			return true
		}
		e.vacant = append(e.vacant, x.Value)
		if !engine.MayLeave(&held.Request) || e.clients.Find(held.ID) != nil { // or its client left
			all = append(all, engine.Attempt{Request: &held.Request, Seq: noSeq})
		}
		return false
	})
	slices.SortFunc(all, func(a, b engine.Attempt) int { return cmp.Compare(a.ID, b.ID) })
	for _, u := range all {
		switch {
		case u.Seq != noSeq:
			r.Lose(u.Seq)
		case u.Queued:
			r.Levels().Waiting--
			e.disconnect(u.Request, to, r.Queued(u.Request))
		default:
			e.disconnect(u.Request, to, clock.Never)
		}
	}
	r.Abandon(e.now)
	r.CheckEmpty()
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
