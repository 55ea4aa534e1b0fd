package engine

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Client is a request whose client may leave before it has the whole output.
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
	Again  bool // the client sends the request once more
}

// Note enters the departure into the record of the attempt.
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

// MayLeave reports whether the client of r has a timeout or may cancel.
func MayLeave(r *workload.Request) bool {
	c := r.Client
	return c != nil && c.FirstTimeout|c.Timeout|c.Cancel > 0
}

// Deadline is how long after the request c leaves if nothing more happens, and as what; started says that it has been
// sent the first token.
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

// HasFirstToken reports whether the first token of sequence i has been delivered.
func (r *Engine) HasFirstToken(i int32) bool { return r.seqs.at(i).rec.FirstToken != clock.Never }

// ClientLeft notes that the client of a sequence has left, which saw its first token at the instant first. The cache
// may keep what the sequence has computed for the next attempt.
func (r *Engine) ClientLeft(c *Client, first clock.Time) {
	s := r.seqs.at(c.Seq)
	s.rec.ClientFirst = first
	c.Note(&s.rec)
	if c.Again && r.space.caching {
		r.space.indexOwnBlocks(s)
	}
}

// delivered is the number of tokens of sequence i in iterations that ended before the instant at, which is at most the
// next boundary.
func (r *Engine) delivered(i int32, at clock.Time) int32 {
	s := r.seqs.at(i)
	n := s.issued
	if s.phase == decoding {
		n += int32(r.steps(s) - s.joined)
		if r.ahead.N > 0 { // the first step is counted, others may have been made since
			n += int32(max(r.ahead.FirstEndAtOrAfter(at)-1, 0)) - 1
		}
	}
	for k := range r.inFlight.n {
		if f := r.inFlight.at(k); f.end >= at && r.inFlight.emits(f, i) {
			n -= r.inFlight.tokensOf(s)
		}
	}
	return n
}

// tokensOf is the number of tokens that an iteration issues of s, if it issues any.
func (q *iterationRing) tokensOf(s *sequence) int32 {
	if q.cfg.Speculative.On() {
		return s.fresh
	}
	return 1
}

// link is the time for which the link to a replica is lost. What it says then reaches the clients when the link is
// back, and their departures reach it then.
type link struct{ from, to clock.Time }

// LoseLink cuts the engine off from its clients and the routers from now until an instant.
func (r *Engine) LoseLink(now, until clock.Time) {
	r.link = link{now, until}
	for k, s := range r.seqs.items {
		if s.rec.Request.OutputTokens > 0 {
			s.received = r.delivered(int32(k), now)
		}
	}
}

// LinkLost reports whether the link is lost at the instant now.
func (d *link) LinkLost(now clock.Time) bool { return now < d.to }

// OverLink returns when a message that is ready at the instant at is sent over the link.
func (d *link) OverLink(at clock.Time) clock.Time { return max(at, d.to) }

// ReceivedBy returns what the client of sequence i has been sent by now: when it sees the first token, and how many
// tokens.
func (r *Engine) ReceivedBy(i int32, now clock.Time) (first clock.Time, tokens int32) {
	s := r.seqs.at(i)
	first, tokens = s.rec.ClientFirst, r.delivered(i, now)
	if r.link.LinkLost(now) {
		if tokens = s.received; tokens == 0 {
			first = clock.Never
		}
	}
	return first, tokens
}

// leaveDuringLinkLoss lets the client of s, whose answer is complete, leave if it would before the link is back.
func (r *Engine) leaveDuringLinkLoss(s *sequence) {
	rec := &s.rec
	after, how := Deadline(rec.Request.Client, s.received > 0)
	settled := max(rec.Request.Arrival, rec.Request.Arrival.Add(after-r.cfg.NetworkOut))
	if after == 0 || settled >= r.link.to {
		return
	}
	end := workload.End{How: how, At: rec.Request.Arrival.Add(after), First: rec.ClientFirst, Tokens: s.received}
	if s.received == 0 {
		rec.ClientFirst, end.First = clock.Never, clock.Never
	}
	d := Departure{Left: end.At, Ending: how, Again: r.host.Done(&rec.Request, end)}
	d.Note(rec)
	rec.ClientLast = clock.Never
}
