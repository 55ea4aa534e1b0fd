package sim

import (
	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// What a driver needs that moves the simulation along another clock, and sends requests as they come. The source must
// announce a request at [clock.Never] while none is pending, so that the simulation does not end.

// Next returns the instant of the next event, or [clock.Never].
func (e *Simulation) Next() clock.Time {
	e.look()
	at, _, _ := e.upcoming()
	return at
}

// Advance handles all events before the instant until. Events at it are left, so that a request may still arrive then.
func (e *Simulation) Advance(until clock.Time) error {
	e.look()
	for {
		at, kind, r := e.upcoming()
		if at >= until {
			return nil
		}
		if at > clock.Time(clock.MaxRun) {
			return errTooLong()
		}
		if err := e.handle(at, kind, r); err != nil {
			return err
		}
	}
}

// Leave makes the client of a request leave at the instant at, which [Simulation.Advance] has reached. The request's
// client must be its own, and have Leaves set. Leave sets its Cancel, so that a simulation of the same requests has the
// same departures. It does nothing if the request has ended.
func (e *Simulation) Leave(id int64, at clock.Time) {
	p := e.clients.Find(id)
	if p == nil || p.Left != clock.Never || !p.Request.Client.Leaves {
		return
	}
	p.Request.Client.Cancel = at.Add(e.networkOut).Sub(p.Arrival)
	e.clients.departures.Push(pq.Item[int32]{Key: int64(at), Tie: id, Value: int32(workload.Cancelled)})
}
