package sim

import (
	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/workload"
	"clifftop/workload/idtable"
)

// Clients that may leave before they have their whole output.
//
// A client learns what the engine does after [engine.Config.NetworkOut], and the engine learns what the client does
// after [engine.Config.NetworkIn]. A departure is certain when the token that the client waits for has not been sent in
// time. The client leaves, and the source learns it, one NetworkOut later. Its abort reaches the server one NetworkIn
// after that.

// aborting is the value of an event at which the server learns that a client left. The other events are deadlines;
// their value is the ending.
const aborting = int32(workload.Answered)

// clients are the clients of requests in the system that may leave, and their planned departures.
type clients struct {
	idtable.Table[engine.Client]
	departures pq.Queue[int32] // deadlines, and aborts that reach the server
	networkOut clock.Duration
}

// watch begins to follow the client of r, which has just been sent.
func (c *clients) watch(r *workload.Request) {
	*c.Add(r.ID) = engine.Client{Request: *r, To: noReplica, Seq: noSeq, AtFrontend: true,
		Departure: engine.Departure{Left: clock.Never}}
	c.expect(r, false)
}

// expect plans the next departure of the client of r.
func (c *clients) expect(r *workload.Request, started bool) {
	if after, how := engine.Deadline(r.Client, started); after > 0 {
		settled := max(r.Arrival, r.Arrival.Add(after-c.networkOut))
		c.departures.Push(pq.Item[int32]{Key: int64(settled), Tie: r.ID, Value: int32(how)})
	}
}

// left reports whether the client of r has left.
func (c *clients) left(r *workload.Request) bool { return engine.MayLeave(r) && c.Find(r.ID) == nil }

// depart handles a deadline of a client, or the arrival of its abort.
func (e *Simulation) depart(x pq.Item[int32]) {
	p := e.clients.Find(x.Tie)
	if p == nil {
		return // the request ended before
	}
	if x.Value == aborting {
		e.abort(p)
		return
	}
	how := workload.Ending(x.Value)
	end := workload.End{How: how, First: clock.Never}
	if p.Seq != noSeq {
		r := e.replicas[p.To]
		first, tokens := r.ReceivedBy(p.Seq, e.now)
		if how == workload.TimedOutFirst && r.HasFirstToken(p.Seq) && (tokens > 0 || !r.LinkLost(e.now)) {
			e.clients.expect(&p.Request, true)
			return
		}
		end.First, end.Tokens = first, tokens
	}
	after, _ := engine.Deadline(p.Request.Client, how != workload.TimedOutFirst)
	end.At = p.Request.Arrival.Add(after)
	p.Departure = engine.Departure{Left: end.At, Ending: how, Again: e.tell(&p.Request, end)}
	if p.Seq != noSeq {
		e.replicas[p.To].ClientLeft(p, end.First)
	} else if p.Again && p.To != noReplica {
		e.replicas[p.To].Returns()
	}
	told := end.At.Add(e.networkIn)
	if p.To != noReplica {
		told = e.replicas[p.To].OverLink(told)
	}
	switch {
	case p.Request.Client.Silent:
	case told > e.now:
		e.clients.departures.Push(pq.Item[int32]{Key: int64(told), Tie: x.Tie, Value: aborting})
	default:
		e.abort(p)
	}
}

// abort removes the request of a client that left from the server.
func (e *Simulation) abort(p *engine.Client) {
	if p.AtFrontend {
		e.leftUnserved(p, e.now)
	} else {
		e.changed = e.replicas[p.To]
		e.changed.Abort(e.now, p.ID)
	}
}

// leftUnserved ends a request that has no sequence, because its client left.
func (e *Simulation) leftUnserved(p *engine.Client, released clock.Time) {
	rec := unserved(&p.Request)
	rec.Replica = int(p.To)
	switch {
	case p.Held:
		e.levels.Held--
	case p.To != noReplica:
		r := e.replicas[p.To]
		if !p.AtFrontend {
			rec.Queued = r.Queued(&p.Request)
		}
		r.Forget(p.ID)
	}
	p.Note(&rec)
	rec.Released = released
	e.ended(&rec)
}
