package engine

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

// linkLoss is the time for which the link to a replica is lost. What it says then reaches the clients when the link is
// back, and their departures reach it then.
type linkLoss struct{ from, to clock.Time }

// on reports whether the link is lost at an instant.
func (d *linkLoss) lostAt(at clock.Time) bool { return at < d.to }

// sent is when a token that is there at an instant, not before the darkness, goes its way.
func (d *linkLoss) delay(at clock.Time) clock.Time { return max(at, d.to) }

// LoseLink cuts the engine off from its clients and the routers from now until an instant.
func (r *Engine) LoseLink(now, until clock.Time) {
	r.link = linkLoss{now, until}
	for k, s := range r.seqs.items {
		if s.rec.Request.OutputTokens > 0 {
			s.received = r.delivered(int32(k), now)
		}
	}
}

// LinkLost reports whether the link is lost at the instant now.
func (r *Engine) LinkLost(now clock.Time) bool { return r.link.lostAt(now) }

// OverLink returns when a message that is ready at the instant at is sent over the link.
func (r *Engine) OverLink(at clock.Time) clock.Time { return r.link.delay(at) }

// ReceivedBy returns what the client of sequence i has been sent by now: when it sees the first token, and how many tokens.
func (r *Engine) ReceivedBy(i int32, now clock.Time) (first clock.Time, tokens int32) {
	s := r.seq(i)
	first, tokens = s.rec.ClientFirst, r.delivered(i, now)
	if r.link.lostAt(now) {
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
