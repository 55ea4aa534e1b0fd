package sim

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Clients who may leave before they have their answer.
//
// What a client knows lags what the engine does by [Config.NetworkOut], and what the engine knows of it by
// [Config.NetworkIn]. That it leaves is settled when what it waits for has not been sent in time; it leaves, and
// the source hears of it, one way later; and its abort comes to the server another way later.

// patient is a request whose client may leave.
type patient struct {
	req      workload.Request
	to       int32 // the replica that it was sent to, if it was
	seq      int32 // its sequence, if it has one
	frontend bool  // it has not reached the queue
	held     bool  // it is at the router, as long as no replica takes it
	departure
}

// departure is how a client left.
type departure struct {
	left   clock.Time // Never if it has not
	ending workload.Ending
	again  bool // it will send the request once more
}

// note enters a departure into the record of the attempt.
func (d *departure) note(rec *event.Record) {
	if d.left == clock.Never {
		return
	}
	rec.Left, rec.Ending, rec.Again = d.left, d.ending, d.again
	rec.Refusal = event.NotRefused
	if rec.Outcome = event.TimedOut; d.ending == workload.Cancelled {
		rec.Outcome = event.Cancelled
	}
}

// aborting is the ref of an event at which the server hears that a client left; the others are deadlines, and their
// refs the endings.
const aborting = int32(workload.Answered)

// mayLeave reports whether the client of r may leave.
func mayLeave(r *workload.Request) bool {
	c := r.Client
	return c != nil && c.FirstTimeout|c.Timeout|c.Cancel > 0
}

// deadline is how long after the request c leaves if nothing more happens, and as what; started says that it has been
// sent the first token.
func deadline(c *workload.Client, started bool) (after clock.Duration, how workload.Ending) {
	if c.Timeout > 0 {
		after, how = c.Timeout, workload.TimedOut
	}
	if c.Cancel > 0 && (after == 0 || c.Cancel < after) {
		after, how = c.Cancel, workload.Cancelled
	}
	if c.FirstTimeout > 0 && !started && (after == 0 || c.FirstTimeout < after) {
		after, how = c.FirstTimeout, workload.TimedOutFirst
	}
	return after, how
}

// watch begins to wait with the client of r, who has just sent it.
func (e *Simulation) watch(r *workload.Request) {
	*e.patients.Add(r.ID) = patient{req: *r, to: none, seq: none, frontend: true, departure: departure{left: clock.Never}}
	e.expect(r, false)
}

// expect plans the next departure of the client of r.
func (e *Simulation) expect(r *workload.Request, started bool) {
	if after, how := deadline(r.Client, started); after > 0 {
		settled := max(r.Arrival, r.Arrival.Add(after-e.wayOut))
		e.departures.push(entry{int64(settled), r.ID, int32(how)})
	}
}

// depart handles a deadline of a client, or its abort.
func (e *Simulation) depart(x entry) {
	p := e.patients.Find(x.tie)
	if p == nil {
		return // the request ended before
	}
	if x.ref == aborting {
		e.abort(p)
		return
	}
	how := workload.Ending(x.ref)
	end := workload.End{How: how, First: clock.Never}
	if p.seq != none {
		r := e.replicas[p.to]
		first, tokens := r.receivedBy(p.seq, e.now)
		if how == workload.TimedOutFirst && r.seq(p.seq).rec.FirstToken != clock.Never && (tokens > 0 || !r.dark.on(e.now)) {
			e.expect(&p.req, true)
			return
		}
		end.First, end.Tokens = first, tokens
		r.seq(p.seq).rec.ClientFirst = first
	}
	after, _ := deadline(p.req.Client, how != workload.TimedOutFirst)
	end.At = p.req.Arrival.Add(after)
	p.departure = departure{left: end.At, ending: how, again: e.src.Done(&p.req, end)}
	if p.seq != none {
		s := e.replicas[p.to].seq(p.seq)
		p.note(&s.rec)
		if p.again && e.replicas[p.to].caching {
			e.replicas[p.to].indexOwnBlocks(s) // the next attempt may find them
		}
	}
	told := end.At.Add(e.wayIn)
	if p.to != none {
		told = e.replicas[p.to].dark.sent(told)
	}
	switch {
	case p.req.Client.Silent:
	case told > e.now:
		e.departures.push(entry{int64(told), x.tie, aborting})
	default:
		e.abort(p)
	}
}

// abort takes the request of a client who left out of the server.
func (e *Simulation) abort(p *patient) {
	if p.frontend {
		e.leftUnserved(p, e.now)
	} else {
		e.touched = e.replicas[p.to]
		e.touched.abort(e.now, p.req.ID)
	}
}

// leftUnserved ends a request that has no sequence, because its client left.
func (e *Simulation) leftUnserved(p *patient, released clock.Time) {
	rec := unserved(&p.req)
	rec.Replica = int(p.to)
	switch {
	case p.held:
		e.levels.Held--
	case p.to != none:
		r := e.replicas[p.to]
		if !p.frontend {
			rec.Queued = r.queued(&p.req)
		}
		delete(r.late, p.req.ID)
	}
	p.note(&rec)
	rec.Released = released
	e.ended(&rec)
}

// delivered is the number of tokens of sequence i in iterations that ended before the instant at, which is at most the
// next boundary.
func (r *Engine) delivered(i int32, at clock.Time) int32 {
	s := r.seq(i)
	n := s.issued
	if s.phase == decoding {
		n += int32(r.steps(s) - s.joined)
		if r.promise.N > 0 { // the first step is counted, others may have been made since
			n += int32(max(r.promise.FirstEndAtOrAfter(at)-1, 0)) - 1
		}
	}
	for k := range r.inFlight.n {
		if f := r.inFlight.at(k); f.end >= at && r.emits(f, i) {
			n -= r.tokensOf(s)
		}
	}
	return n
}

// tokensOf is the number of tokens that an iteration issues of s, if it issues any.
func (r *Engine) tokensOf(s *sequence) int32 {
	if r.cfg.Speculative.On() {
		return s.fresh
	}
	return 1
}
