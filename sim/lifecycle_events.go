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
	controlOff      = iota // a replica that has ended is off
	controlBegin           // it starts again
	controlReady           // it has started
	controlRestored        // its link is back
	controlUsual           // it is no longer slow
	controlFailure         // by number of the failure
	controlKill            // its time to drain is over
	controlProbe           // a health check
	controlScrape          // of an autoscaler's metric, by number of the scaler
	controlScale           // an autoscaler's turn
)

// plan plans something of a kind for a replica, scaler or failure, which is void in a later life.
func (l *lives) plan(at clock.Time, kind, i int, life int32) {
	l.controls.Push(pq.Item[int32]{Key: int64(at), Tie: int64(kind)<<32 | int64(i), Value: life})
}

// control does what is planned next.
func (e *Simulation) control() (err error) {
	x := e.lives.controls.Pop()
	kind, i := int(x.Tie>>32), int(uint32(x.Tie))
	if kind <= controlReady || kind == controlKill {
		if e.lives.of[i].number != x.Value {
			return nil
		}
	}
	switch kind {
	case controlOff:
		e.off(i)
	case controlBegin:
		e.begin(i)
	case controlReady:
		e.enter(i, event.Ready)
		e.notice(i)
	case controlRestored, controlProbe:
		e.notice(i)
	case controlUsual:
		for _, r := range e.group(i) {
			r.SetSlowdown(e.now, 0)
		}
	case controlFailure:
		e.happens(&e.lives.Failures[i])
	case controlKill:
		e.failAll(i)
		e.drained(i)
	case controlScrape:
		e.scrapeLoad(&e.lives.scaling[i], i)
	case controlScale:
		err = e.scale(&e.lives.scaling[i], i)
	}
	for _, r := range e.replicas { // it may have touched any of them
		e.sync(r)
		err = cmp.Or(err, r.Fault())
	}
	e.touched = nil
	return err
}

// happens lets a failure happen.
func (e *Simulation) happens(f *Failure) {
	i := int(e.lives.lead[f.Replica])
	l := &e.lives.of[i]
	switch f.Kind {
	case Crash:
		e.crash(i, f.For)
	case Drain:
		if l.state == event.Ready {
			l.wanted = f.For > 0
			l.gone = !l.wanted
			e.drain(i, f.For)
		}
	case Slow:
		for _, r := range e.group(i) {
			r.SetSlowdown(e.now, f.Permille)
		}
		e.lives.plan(f.At.Add(f.For), controlUsual, i, 0)
	case LinkLoss:
		for _, r := range e.group(i) {
			r.LoseLink(e.now, f.At.Add(f.For))
		}
		e.notice(i)
		e.lives.plan(f.At.Add(f.For), controlRestored, i, 0)
	case Restart:
		e.lives.rollouts = append(e.lives.rollouts, rollout{i, f.Last})
		e.roll(len(e.lives.rollouts) - 1)
	}
}

// inVain reports whether requests at the router have waited for a day, by the instant at, in which nothing but autoscalers
// took its turn, and that nothing else is planned: what they have not brought by then they never will.
func (e *Simulation) inVain(at clock.Time) bool {
	return e.levels.Held > 0 && at.Sub(e.stirred) > clock.Day && !e.lives.controls.Contains(func(x *pq.Item[int32]) bool {
		return x.Tie>>32 < controlScrape
	})
}

// atRest reports whether nothing will happen but what is planned, and no request waits for that.
func (e *Simulation) atRest() bool {
	if e.levels.System > 0 || e.frontend.Len() > 0 || e.wires.Awaited() > 0 {
		return false
	}
	_, more := e.src.Peek()
	at, _ := e.boundaryNext()
	return !more && at == clock.Never
}
