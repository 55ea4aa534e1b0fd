package sim

import (
	"fmt"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/workload"
)

// The path of a request from its client to a replica's queue, and its end as the client and the source see it.

// arrive handles the request that the source sends now.
func (e *Simulation) arrive() error {
	ref := e.frontEnd.place()
	held := &e.frontEnd.requests[ref]
	held.Request, held.to = e.src.Next(), noReplica
	e.look()
	r := &held.Request
	if r.Arrival < e.now || r.InputTokens < 1 || r.OutputTokens < 1 {
		return fmt.Errorf("sim: request %d: arrival %v at %v with %d input and %d output tokens is not valid",
			r.ID, r.Arrival, e.now, r.InputTokens, r.OutputTokens)
	}
	if n := len(e.replicas); r.Replica < 0 || int(r.Replica) > n {
		return fmt.Errorf("sim: request %d: it addresses replica %d of %d (want one of the fleet)",
			r.ID, r.Replica-1, n)
	}
	e.obs.Arrived(e.now, r)
	fits := r.InputTokens <= e.frontEnd.surelyFits || e.fits(r)
	if !fits && e.networkIn == 0 {
		e.frontEnd.remove(ref)
		e.refuse(r, noReplica, event.NeverFits)
		return nil
	}
	e.levels.System++
	leaves := engine.MayLeave(r)
	if leaves {
		e.clients.watch(r)
	}
	at := r.Arrival.Add(e.networkIn)
	if fits && (e.networkIn == 0 || e.routers == nil && e.lifecycle == nil) {
		to := e.route(r)
		if to == noReplica || e.unreachable(to) {
			e.undeliverable(r, to, ref)
			return nil
		}
		held.to = to
		at = at.Add(e.replicas[to].Config().Handling(r))
		e.sent(r, to)
	}
	if at > e.now || leaves || e.frontEnd.due.Len() > 0 || e.limited {
		e.frontEnd.push(at, r.ID, ref)
		return nil
	}
	e.frontEnd.remove(ref)
	e.join(r, held.to)
	return nil
}

// refuse rejects a request now. It may have been sent to a replica, and its client may have left.
func (e *Simulation) refuse(r *workload.Request, to int32, why event.Refusal) {
	rec := unserved(r)
	rec.Replica = int(to)
	rec.Outcome, rec.Refusal, rec.Ending = event.Rejected, why, why.Ending()
	e.turnAway(&rec)
}

// turnAway ends a request now that was never admitted, and notifies its client unless it has left.
func (e *Simulation) turnAway(rec *event.Record) {
	r := &rec.Request
	if e.disaggregated != nil {
		e.disaggregated.restore(r)
	}
	rec.Released = e.now
	if p := e.clients.Find(r.ID); p != nil {
		p.Note(rec)
		e.clients.Remove(r.ID)
	}
	if rec.Left == clock.Never {
		rec.Again = e.tell(r, workload.End{How: rec.Ending, At: e.now.Add(e.networkOut), First: clock.Never})
	}
	e.over(r, int32(rec.Replica))
	e.finished(rec)
}

// finished reports the record of a request that has ended.
func (e *Simulation) finished(rec *event.Record) {
	if e.disaggregated != nil {
		e.disaggregated.join(rec)
	}
	if rec.Replica >= 0 {
		e.replicas[rec.Replica].Observers().Finished(rec)
	} else {
		e.obs.Finished(rec)
	}
}

// reach handles a request that arrives at the router, or at the queue of a replica after the front end's time.
func (e *Simulation) reach(x pq.Item[int32]) {
	held := &e.frontEnd.requests[x.Value]
	r, to := &held.Request, held.to
	p := e.clients.Find(r.ID)
	if engine.MayLeave(r) && p == nil { // its client left
		e.frontEnd.remove(x.Value)
		return
	}
	if to == noReplica {
		if (e.disaggregated == nil || !e.disaggregated.handedOff(r)) && !e.fits(r) {
			e.frontEnd.remove(x.Value)
			e.levels.System--
			e.refuse(r, noReplica, event.NeverFits)
			return
		}
		if to = e.route(r); to == noReplica || e.unreachable(to) {
			e.undeliverable(r, to, x.Value)
			return
		}
		held.to = to
		e.sent(r, to)
		if at := e.now.Add(e.replicas[to].Config().Handling(r)); at > e.now {
			e.frontEnd.push(at, r.ID, x.Value)
			return
		}
	}
	e.frontEnd.remove(x.Value)
	if p != nil {
		p.AtFrontend = false
	}
	e.join(r, to)
}

// join puts a request into the queue of a replica, or rejects it if the queue is full.
func (e *Simulation) join(r *workload.Request, to int32) {
	if p := e.replicas[to]; !p.QueueFull() {
		if e.disaggregated != nil {
			r = e.disaggregated.joins(r, to)
		}
		p.Enqueue(e.now, r)
		e.changed = p
		return
	}
	e.levels.System--
	e.refuse(r, to, event.Busy)
}

// sent notes that a request was sent to a replica.
func (e *Simulation) sent(r *workload.Request, to int32) {
	if p := e.clients.Find(r.ID); p != nil {
		p.To = to
	}
	p := e.replicas[to]
	p.Levels().System++
	e.changed = p
	if p.own != nil {
		p.own.Arrived(r.Arrival, r)
	}
	e.noteSent(r, to)
}

// over notes that a request has ended. It may have been sent to a replica.
func (e *Simulation) over(r *workload.Request, to int32) {
	if to == noReplica {
		return
	}
	e.changed = e.replicas[to]
	e.changed.Levels().System--
	e.noteEnded(r, to)
}

// unserved is the record of a request that was never admitted.
func unserved(r *workload.Request) event.Record {
	return event.Record{
		Request: *r,
		Queued:  clock.Never, Scheduled: clock.Never, FirstToken: clock.Never, LastToken: clock.Never,
		ClientFirst: clock.Never, ClientLast: clock.Never, Left: clock.Never,
		Replica: int(noReplica),
	}
}

// ended handles the end of a request in the system. A client that left knows already; the others learned it with the
// last token.
func (e *Simulation) ended(rec *event.Record) {
	e.levels.System--
	if engine.MayLeave(&rec.Request) {
		e.clients.Remove(rec.Request.ID)
	}
	e.over(&rec.Request, int32(rec.Replica))
	e.finished(rec)
}

// answered tells the source that a client that has not left has its whole output.
func (e *Simulation) answered(rec *event.Record) {
	if engine.MayLeave(&rec.Request) {
		e.clients.Remove(rec.Request.ID)
	}
	if rec.Left == clock.Never {
		rec.Again = e.tell(&rec.Request,
			workload.End{At: rec.ClientLast, First: rec.ClientFirst,
				Tokens: e.replicas[rec.Replica].Config().OutputOf(&rec.Request)})
	}
}
