package sim

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// The queue of requests at the router while no replica takes them.

// unreachable reports whether requests that are sent to a replica fail. A router may list it all the same.
func (e *Simulation) unreachable(to int32) bool {
	return e.lifecycle != nil && !e.lifecycle.reachable(int(to))
}

// undeliverable handles a request that the router cannot deliver. If a replica was chosen, which cannot be reached, the
// request fails; if there is none, it waits or is rejected. ref is its number in the front end.
func (e *Simulation) undeliverable(r *workload.Request, to, ref int32) {
	most := e.lifecycle.RouterQueue
	rejects := most < 0 || most > 0 && e.levels.Held >= most
	if to != noReplica || rejects {
		e.frontEnd.remove(ref)
	}
	switch {
	case to != noReplica:
		e.sent(r, to)
		e.disconnect(r, to, clock.Never)
	case rejects:
		e.levels.System--
		e.refuse(r, noReplica, event.NotReady)
	default:
		e.lifecycle.held = append(e.lifecycle.held, ref)
		e.levels.Held++
		if p := e.clients.Find(r.ID); p != nil {
			p.Held = true
		}
	}
}

// release sends the requests that wait at the router, as far as replicas take them.
func (e *Simulation) release() {
	still := e.lifecycle.held[:0]
	for _, ref := range e.lifecycle.held {
		held := &e.frontEnd.requests[ref]
		r := &held.Request
		if e.clients.left(r) {
			e.frontEnd.remove(ref)
			continue
		}
		to := e.route(r)
		if to == noReplica {
			still = append(still, ref)
			continue
		}
		e.levels.Held--
		if p := e.clients.Find(r.ID); p != nil {
			p.Held = false
		}
		if e.unreachable(to) {
			e.undeliverable(r, to, ref)
			continue
		}
		held.to = to
		e.sent(r, to)
		x := e.replicas[to]
		x.Delay(r, e.now.Sub(r.Arrival.Add(e.networkIn)))
		e.frontEnd.push(e.now.Add(x.Config().Handling(r)), r.ID, ref)
	}
	e.lifecycle.held = still
}
