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
func (e *Simulation) runPlanned() (err error) {
	x := e.lifecycle.planned.Pop()
	kind, i := int(x.Tie>>32), int(uint32(x.Tie))
	if kind <= plannedReady || kind == plannedKill {
		if e.lifecycle.of[i].number != x.Value {
			return nil
		}
	}
	switch kind {
	case plannedOff:
		e.off(i)
	case plannedBegin:
		e.begin(i)
	case plannedReady:
		e.setState(i, event.Ready)
		e.probe(i)
	case plannedRestored, plannedProbe:
		e.probe(i)
	case plannedUsual:
		for _, r := range e.group(i) {
			r.SetSlowdown(e.now, 0)
		}
	case plannedFailure:
		e.applyFailure(&e.lifecycle.Failures[i])
	case plannedKill:
		e.failAll(i)
		e.drained(i)
	case plannedScrape:
		e.scrapeLoad(&e.lifecycle.scaling[i], i)
	case plannedScale:
		err = e.scale(&e.lifecycle.scaling[i], i)
	}
	for _, r := range e.replicas { // it may have touched any of them
		e.sync(r)
		err = cmp.Or(err, r.Fault())
	}
	e.changed = nil
	return err
}

// happens lets a failure happen.
func (e *Simulation) applyFailure(f *Failure) {
	i := int(e.lifecycle.lead[f.Replica])
	l := &e.lifecycle.of[i]
	switch f.Kind {
	case Crash:
		e.crash(i, f.For)
	case Drain:
		if l.state == event.Ready {
			l.wanted = f.For > 0
			l.failed = !l.wanted
			e.drain(i, f.For)
		}
	case Slow:
		for _, r := range e.group(i) {
			r.SetSlowdown(e.now, f.Permille)
		}
		e.lifecycle.plan(f.At.Add(f.For), plannedUsual, i, 0)
	case LinkLoss:
		for _, r := range e.group(i) {
			r.LoseLink(e.now, f.At.Add(f.For))
		}
		e.probe(i)
		e.lifecycle.plan(f.At.Add(f.For), plannedRestored, i, 0)
	case Restart:
		e.lifecycle.rollouts = append(e.lifecycle.rollouts, rollout{i, f.Last})
		e.roll(len(e.lifecycle.rollouts) - 1)
	}
}

// heldInVain reports whether requests at the router have waited for a day, by the instant at, in which nothing but
// autoscalers took its turn, and that nothing else is planned: what they have not brought by then they never will.
func (e *Simulation) heldInVain(at clock.Time) bool {
	return e.levels.Held > 0 && at.Sub(e.stirred) > clock.Day &&
		!e.lifecycle.planned.Contains(func(x *pq.Item[int32]) bool {
			return x.Tie>>32 < plannedScrape
		})
}

// onlyPlannedLeft reports whether nothing will happen but what is planned, and no request waits for that.
func (e *Simulation) onlyPlannedLeft() bool {
	if e.levels.System > 0 || e.frontend.Len() > 0 || e.transfers.Awaited() > 0 {
		return false
	}
	_, more := e.src.Peek()
	at, _ := e.boundaryNext()
	return !more && at == clock.Never
}
