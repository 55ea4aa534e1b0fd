package sim

import (
	"cmp"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// What is planned for replicas. At one instant, before anything else, it happens by kind in the order of the constants,
// and then by number.

const (
	plannedOff      = iota // a replica that has ended is off
	plannedBegin           // it starts again
	plannedReady           // it has started
	plannedRestored        // its link is back
	plannedUsual           // it is no longer slow
	plannedFailure         // by number of the failure
	plannedKill            // its time to drain is over
	plannedProbe           // a health check
	plannedScrape          // of an autoscaler's metric, by number of the scaler
	plannedScale           // an autoscaler's turn
)

// plan plans something of a kind for a replica, scaler or failure, which is void in a later life.
func (l *lifecycle) plan(at clock.Time, kind, i int, replicaLife int32) {
	l.planned.Push(pq.Item[int32]{Key: int64(at), Tie: int64(kind)<<32 | int64(i), Value: replicaLife})
}

// control does what is planned next.
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
	for _, r := range l.replicas { // it may have touched any of them
		l.sync(r)
		err = cmp.Or(err, r.Fault())
	}
	l.changed = nil
	return err
}

// happens lets a failure happen.
func (l *lifecycle) applyFailure(f *Failure) {
	i := int(l.lead[f.Replica])
	life := &l.of[i]
	switch f.Kind {
	case Crash:
		l.crash(i, f.For)
	case Drain:
		if life.state == event.Ready {
			life.wanted = f.For > 0
			life.failed = !life.wanted
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

// heldInVain reports whether requests at the router have waited for a day, by the instant at, in which nothing but
// autoscalers took its turn, and that nothing else is planned: what they have not brought by then they never will.
func (l *lifecycle) heldInVain(at clock.Time) bool {
	return l.levels.Held > 0 && at.Sub(l.sim.stirred) > clock.Day &&
		!l.planned.Contains(func(x *pq.Item[int32]) bool {
			return x.Tie>>32 < plannedScrape
		})
}

// onlyPlannedLeft reports whether nothing will happen but what is planned, and no request waits for that.
func (e *Simulation) onlyPlannedLeft() bool {
	if e.levels.System > 0 || e.frontEnd.due.Len() > 0 || e.transfers.Awaited() > 0 {
		return false
	}
	_, more := e.src.Peek()
	at, _ := e.boundaryNext()
	return !more && at == clock.Never
}
