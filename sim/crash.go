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

// What happens to the requests of a replica that fails.

// crash stops replica i at once. It starts again after back, unless back is 0.
func (l *lifecycle) crash(i int, back clock.Duration) {
	status := &l.of[i]
	if status.state == event.Off || status.state == event.Down {
		return
	}
	l.failAll(i)
	status.instance++
	status.wanted, status.failed = status.wanted && back > 0, status.failed || back == 0
	l.setState(i, event.Down)
	l.probe(i)
	if free := max(l.now, l.idleFrom(i)); status.wanted {
		l.plan(max(free, l.now.Add(back)), plannedBegin, i, status.instance)
	} else {
		l.plan(free, plannedOff, i, status.instance)
	}
}

// failAll fails all requests of replica i, in order of their IDs.
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

// failOne fails all requests of one member of a group.
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
	abandon(l.now, r, &l.sim.fleet)
	r.CheckEmpty()
}

// disconnect fails a request that was never admitted, because its replica failed or cannot be reached.
func (e *Simulation) disconnect(r *workload.Request, to int32, queued clock.Time) {
	rec := unserved(r)
	rec.Replica, rec.Queued = int(to), queued
	rec.Outcome, rec.Ending = event.Failed, workload.Disconnected
	e.levels.System--
	e.turnAway(&rec)
}
