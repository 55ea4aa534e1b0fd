package engine

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Client is a request whose client may leave before it has received the whole output.
type Client struct {
	workload.Request
	To         int32 // the replica that it was sent to, or -1
	Seq        int32 // its sequence in that engine, or -1
	AtFrontend bool  // it has not reached the engine's queue
	Held       bool  // it is in the router's queue, because no replica takes requests
	Departure
}

// Departure says how a client left.
type Departure struct {
	Left   clock.Time // [clock.Never] if it has not left
	Ending workload.Ending
	Again  bool // the client sends the request again
}

// Note writes the departure to the record of the attempt.
func (d *Departure) Note(rec *event.Record) {
	if d.Left == clock.Never {
		return
	}
	rec.Left, rec.Ending, rec.Again = d.Left, d.Ending, d.Again
	rec.Refusal = event.NotRefused
	if rec.Outcome = event.TimedOut; d.Ending == workload.Cancelled {
		rec.Outcome = event.Cancelled
	}
}

// MayLeave reports whether the client of r has a timeout, or may cancel or leave.
func MayLeave(r *workload.Request) bool {
	c := r.Client
	return c != nil && (c.FirstTimeout|c.Timeout|c.Cancel > 0 || c.Leaves)
}

// Deadline returns after which time since the request client c leaves if nothing more happens, and how. started
// reports whether it has been sent the first token.
func Deadline(c *workload.Client, started bool) (after clock.Duration, how workload.Ending) {
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

// clientSide is the state of an engine that concerns its clients: the tokens sent to them, the clients that have left,
// and whether the link to them is lost.
type clientSide struct {
	link
	aborts []int64 // requests whose clients have left since the last boundary
}

// Abort records that the client of a request has left at the instant at. The request ends at the next boundary.
func (e *Engine) Abort(at clock.Time, id int64) {
	e.aborts = append(e.aborts, id)
	e.cut(at)
}

// HasFirstToken reports whether the first token of sequence i has been delivered.
func (e *Engine) HasFirstToken(i int32) bool { return e.seqs.at(i).rec.FirstToken != clock.Never }

// ClientLeft records that the client of a sequence has left. first is the instant at which it received the first
// token. If the client sends the request again, the prefix cache keeps what the sequence has computed.
func (e *Engine) ClientLeft(left *Client, first clock.Time) {
	s := e.seqs.at(left.Seq)
	s.rec.ClientFirst = first
	left.Note(&s.rec)
	if left.Again {
		e.keepNames()
		e.space.cache.Retain(left.Seq)
	}
}

// Returns records that the client of a request that has no sequence has left, and sends it again.
func (e *Engine) Returns() { e.keepNames() }

// delivered returns the number of tokens of sequence i in iterations that ended before the instant at, which is not
// later than the next boundary.
func (e *Engine) delivered(i int32, at clock.Time) int32 {
	s := e.seqs.at(i)
	n := s.issued
	if s.phase == decoding {
		n += int32(e.cohortOf(s).steps - s.joined)
		if e.ahead.N > 0 { // the first step is counted; others may have been made since
			n += int32(max(e.ahead.FirstEndAtOrAfter(at)-1, 0)) - 1
		}
	}
	for k := range e.inFlight.n {
		if f := e.inFlight.at(k); f.end >= at && e.inFlight.emits(f, i) {
			n -= e.inFlight.tokensOf(f, i)
		}
	}
	return n
}

// tokensOf returns the number of tokens of sequence i that iteration f issues, if it issues any.
func (q *iterationRing) tokensOf(f *iteration, i int32) int32 {
	if len(f.verified) > 0 {
		if row := f.rowOf(i); row != nil {
			return row.fresh
		}
	}
	return 1
}

// link is the time for which the link between an engine and its clients is lost. Messages in both directions wait
// until it is back.
type link struct{ from, to clock.Time }

// LoseLink cuts the engine off from its clients and the routers, from now until an instant.
func (e *Engine) LoseLink(now, until clock.Time) {
	e.link = link{now, until}
	for k, s := range e.seqs.items {
		if s.rec.Request.OutputTokens > 0 {
			s.received = e.delivered(int32(k), now)
		}
	}
}

// LinkLost reports whether the link is lost at the instant now.
func (d *link) LinkLost(now clock.Time) bool { return now < d.to }

// OverLink returns when a message that is ready at the instant at is sent over the link.
func (d *link) OverLink(at clock.Time) clock.Time { return max(at, d.to) }

// ReceivedBy returns what the client of sequence i has received by now: the instant of the first token and the number
// of tokens.
func (e *Engine) ReceivedBy(i int32, now clock.Time) (first clock.Time, tokens int32) {
	s := e.seqs.at(i)
	first, tokens = s.rec.ClientFirst, e.delivered(i, now)
	if e.link.LinkLost(now) {
		if tokens = s.received; tokens == 0 {
			first = clock.Never
		}
	}
	return first, tokens
}

// leaveDuringLinkLoss ends the request of s, whose output is complete, as timed out or cancelled, if its client
// leaves before the link is back.
func (e *Engine) leaveDuringLinkLoss(s *sequence) {
	rec := &s.rec
	after, how := Deadline(rec.Request.Client, s.received > 0)
	settled := max(rec.Request.Arrival, rec.Request.Arrival.Add(after-e.cfg.NetworkOut))
	if after == 0 || settled >= e.link.to {
		return
	}
	end := workload.End{How: how, At: rec.Request.Arrival.Add(after), First: rec.ClientFirst, Tokens: s.received}
	if s.received == 0 {
		rec.ClientFirst, end.First = clock.Never, clock.Never
	}
	d := Departure{Left: end.At, Ending: how, Again: e.host.Done(&rec.Request, end)}
	d.Note(rec)
	rec.ClientLast = clock.Never
}

// deliverFirst delivers the first token after an admission.
func (e *Engine) deliverFirst(i int32, end clock.Time) {
	s := e.seqs.at(i)
	if e.remote.handsOff(s) {
		e.obs.Dropped(end, 1)
		return
	}
	if s.rec.FirstToken == clock.Never {
		s.rec.FirstToken = end
		if s.rec.Left == clock.Never {
			s.rec.ClientFirst = e.seen(e.line.First(i))
		}
		e.host.Began(&s.rec.Request, int32(e.index))
	}
	if s.phase == decoding || s.phase == speculating || s.phase == finishing {
		e.requests.stream(s)
	}
}

// seen returns the instant at which a client receives a chunk that leaves the front end at the instant sent.
func (e *Engine) seen(sent clock.Time) clock.Time {
	return e.link.OverLink(sent).Add(e.cfg.NetworkOut)
}
