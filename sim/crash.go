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
func (l *lifecycle) crash(i int, back clock.Duration) {
	life := &l.of[i]
	if life.state == event.Off || life.state == event.Down {
		return
	}
	l.failAll(i)
	life.instance++
	life.wanted, life.failed = life.wanted && back > 0, life.failed || back == 0
	l.setState(i, event.Down)
	l.probe(i)
	if free := max(l.now, l.idleFrom(i)); life.wanted {
		l.plan(max(free, l.now.Add(back)), plannedBegin, i, life.instance)
	} else {
		l.plan(free, plannedOff, i, life.instance)
	}
}

// failAll ends all requests of replica i, in order of their IDs.
func (l *lifecycle) failAll(i int) {
	group := l.group(i)
	for _, r := range group {
		r.Halt(l.now)
	}
	for _, r := range group {
		l.failOne(r)
	}
	l.renew(i)
}

// failOne ends all requests of one of those that live together.
func (l *lifecycle) failOne(r *Replica) {
	to := int32(r.Index())
	all := r.Attempts()
	l.sim.frontEnd.due.Retain(func(x *pq.Item[int32]) bool {
		held := &l.sim.frontEnd.requests[x.Value]
		if held.to != to {
			return true
		}
		l.sim.frontEnd.remove(x.Value)
		if !l.sim.clients.left(&held.Request) {
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
			l.sim.disconnect(u.Request, to, r.Queued(u.Request))
		default:
			l.sim.disconnect(u.Request, to, clock.Never)
		}
	}
	r.Abandon(l.now)
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
