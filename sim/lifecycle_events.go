package sim

import (
	"cmp"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Planned events of replicas. At one instant they come before all other events, ordered by kind as the constants are,
// and then by number.

const (
	plannedOff      = iota // a replica that has stopped is off
	plannedBegin           // a replica starts again
	plannedReady           // a replica has started
	plannedRestored        // a link is back
	plannedUsual           // a replica is no longer slow
	plannedFailure         // a failure, by its number
	plannedKill            // the grace period of a draining replica is over
	plannedProbe           // a health check
	plannedScrape          // a scrape of an autoscaler's metric, by number of the scaler
	plannedScale           // a decision of an autoscaler
)

// plan adds an event for a replica, scaler or failure. It is void if the replica has another engine by then.
func (l *lifecycle) plan(at clock.Time, kind, i int, replicaLife int32) {
	l.planned.Push(pq.Item[int32]{Key: int64(at), Tie: int64(kind)<<32 | int64(i), Value: replicaLife})
}

// runPlanned handles the next planned event.
func (l *lifecycle) runPlanned() (err error) {
	x := l.planned.Pop()
	kind, i := int(x.Tie>>32), int(uint32(x.Tie))
	if kind <= plannedReady || kind == plannedKill {
		if l.of[i].instance != x.Value {
			return nil
		}
	}
	switch kind {
	case plannedOff:
		l.off(i)
	case plannedBegin:
		l.begin(i)
	case plannedReady:
		l.setState(i, event.Ready)
		l.probe(i)
	case plannedRestored, plannedProbe:
		l.probe(i)
	case plannedUsual:
		for _, r := range l.group(i) {
			r.SetSlowdown(l.now, 0)
		}
	case plannedFailure:
		l.applyFailure(&l.Failures[i])
	case plannedKill:
		l.failAll(i)
		l.drained(i)
	case plannedScrape:
		l.scrapeLoad(&l.scaling[i], i)
	case plannedScale:
		err = l.scale(&l.scaling[i], i)
	}
	for _, r := range l.replicas { // it may have changed any of them
		l.sync(r)
		err = cmp.Or(err, r.Fault())
	}
	l.changed = nil
	return err
}

// applyFailure starts a failure.
func (l *lifecycle) applyFailure(f *Failure) {
	i := int(l.lead[f.Replica])
	status := &l.of[i]
	switch f.Kind {
	case Crash:
		l.crash(i, f.For)
	case Drain:
		if status.state == event.Ready {
			status.wanted = f.For > 0
			status.failed = !status.wanted
			l.drain(i, f.For)
		}
	case Slow:
		for _, r := range l.group(i) {
			r.SetSlowdown(l.now, f.Permille)
		}
		l.plan(f.At.Add(f.For), plannedUsual, i, 0)
	case LinkLoss:
		for _, r := range l.group(i) {
			r.LoseLink(l.now, f.At.Add(f.For))
		}
		l.probe(i)
		l.plan(f.At.Add(f.For), plannedRestored, i, 0)
	case Restart:
		l.rollouts = append(l.rollouts, rollout{i, f.Last})
		l.roll(len(l.rollouts) - 1)
	}
}

// routerStuck reports whether requests at the router have waited for a day, up to the instant at, in which only
// autoscalers acted, and nothing else is planned. No replica will become ready then.
func (l *lifecycle) routerStuck(at clock.Time) bool {
	return l.levels.Held > 0 && at.Sub(l.sim.unplanned) > clock.Day &&
		!l.planned.Contains(func(x *pq.Item[int32]) bool {
			return x.Tie>>32 < plannedScrape
		})
}

// onlyPlannedLeft reports whether only planned events remain, and no request waits for them.
func (e *Simulation) onlyPlannedLeft() bool {
	if e.levels.System > 0 || e.frontEnd.due.Len() > 0 || e.transfers.Awaited() > 0 {
		return false
	}
	_, more := e.src.Peek()
	at, _ := e.boundaryNext()
	return !more && at == clock.Never
}
