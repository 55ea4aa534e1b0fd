package simtest

import (
	"errors"

	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/workload"
)

// givesUp is how long after the request the client of s leaves if it is sent nothing more, and how it ends then; ok is
// false if it never does. Of limits that are equal the first one counts.
func (s *sequence) givesUp() (after clock.Duration, how workload.Ending, ok bool) {
	c := s.rec.Request.Client
	limits := []struct {
		after clock.Duration
		how   workload.Ending
	}{{c.Timeout, workload.TimedOut}, {c.Cancel, workload.Cancelled}, {c.FirstTimeout, workload.TimedOutFirst}}
	if s.delivered > 0 {
		limits = limits[:2]
	}
	for _, l := range limits {
		if l.after > 0 && (!ok || l.after < after) {
			after, how, ok = l.after, l.how, true
		}
	}
	return after, how, ok
}

// departure checks when and why the client of a request left, or that it had no reason to.
func (c *checker) departure(rec *event.Record) {
	r, client := &rec.Request, workload.Client{}
	if r.Client != nil {
		client = *r.Client
	}
	settled := func(after clock.Duration) clock.Time {
		return max(r.Arrival, r.Arrival.Add(after-c.cfg.NetworkOut))
	}
	started, complete := rec.FirstToken, rec.LastToken
	switch rec.Outcome {
	case event.Rejected:
		started, complete = rec.Released, rec.Released
	case event.Failed:
		started, complete = min(started, rec.Released), rec.Released
	}
	atOnce := rec.Refusal == event.NeverFits && rec.Released == r.Arrival // before anything can be settled
	missed := func(after clock.Duration, at clock.Time) bool { return after > 0 && settled(after) <= at && !atOnce }
	if !rec.Ending.GaveUp() {
		c.want(rec.Left == clock.Never && !missed(client.FirstTimeout, started) && !missed(client.Timeout, complete) && !missed(client.Cancel, complete),
			"request %d: stayed till the end with client %+v and record %+v", r.ID, client, rec)
		return
	}
	after, awaited := client.Timeout, complete
	switch rec.Ending {
	case workload.Cancelled:
		after = client.Cancel
	case workload.TimedOutFirst:
		after, awaited = client.FirstTimeout, started
	}
	gone, told := settled(after), r.Arrival.Add(after+c.cfg.NetworkIn)
	ok := missed(after, awaited) && rec.Left == r.Arrival.Add(after) && rec.Released >= gone && (rec.ClientFirst != clock.Never) == (started < gone)
	for _, earlier := range []clock.Duration{client.Timeout, client.Cancel, client.FirstTimeout} {
		ok = ok && (earlier == 0 || earlier >= after || earlier == client.FirstTimeout && !missed(earlier, started))
	}
	switch {
	case complete != clock.Never:
		ok = ok && (client.Silent || complete < told)
	case rec.Queued != clock.Never:
		lost := c.cfg.Connector != nil && c.cfg.Connector.FailLost // and its KV may have been before
		ok = ok && (lost || !client.Silent && rec.Released >= told)
	default: // refused, or found gone in the front end
		ok = ok && (client.Silent || rec.Released <= told)
	}
	c.want(ok, "request %d: %v with client %+v and record %+v", r.ID, rec.Ending, client, rec)
}

// checkEnded asserts that sources were told of each record on a tape once, and rightly.
func checkEnded(cfg *engine.Config, t *Tape, ended []Ended) error {
	c := checker{cfg: cfg, t: t}
	byID := make(map[int64]Ended)
	for _, e := range ended {
		_, twice := byID[e.Request]
		c.want(!twice, "request %d: done twice", e.Request)
		byID[e.Request] = e
	}
	c.want(len(ended) == len(t.Records), "%d requests are done, %d have ended", len(ended), len(t.Records))
	for i := range t.Records {
		rec := &t.Records[i]
		want := Ended{rec.Request.ID, workload.End{How: rec.Ending, First: rec.ClientFirst}, rec.Again}
		e := byID[want.Request]
		switch {
		case rec.Ending == workload.Answered:
			want.At, want.Tokens = rec.ClientLast, rec.Tokens
		case rec.Ending.GaveUp():
			want.At, want.Tokens = rec.Left, min(e.Tokens, rec.Tokens)
			c.want((e.Tokens > 0) == (e.First != clock.Never), "request %d: %+v", want.Request, e)
		default:
			want.At = rec.Released.Add(cfg.NetworkOut)
			if want.Tokens = rec.Tokens; rec.ClientFirst != clock.Never {
				want.At = max(want.At, rec.ClientFirst)
			}
		}
		c.want(e == want, "request %d: done as %+v, want %+v", want.Request, e, want)
	}
	return errors.Join(c.faults...)
}

// nextDeparture is the request whose client is next to be settled to leave, or to be heard to have left, and when; of
// those of one instant that with the lowest ID. It is nil, at no time, if there is none.
func (n *naive) nextDeparture() (next *sequence, at clock.Time) {
	at = clock.Never
	consider := func(s *sequence, t clock.Time) {
		if next == nil || t < at || t == at && s.rec.Request.ID < next.rec.Request.ID {
			next, at = s, t
		}
	}
	for _, s := range n.patient {
		if after, _, ok := s.givesUp(); ok {
			consider(s, max(s.rec.Request.Arrival, s.rec.Request.Arrival.Add(after-n.cfg.NetworkOut)))
		}
	}
	for _, s := range n.aborting {
		consider(s, s.told)
	}
	return next, at
}

// departs lets the next client leave, or be heard, if that is by the instant by, and says whether it was.
func (n *naive) departs(by clock.Time) bool {
	s, at := n.nextDeparture()
	if s == nil || at > by {
		return false
	}
	if !s.gone() {
		n.leave(s, at)
	} else {
		n.hear(s, at)
	}
	return true
}

// leave tells the source at the instant at that the client of s leaves, or will.
func (n *naive) leave(s *sequence, at clock.Time) {
	after, how, _ := s.givesUp()
	n.patient = without(n.patient, s)
	s.rec.Left = s.rec.Request.Arrival.Add(after)
	n.tell(s, workload.End{How: how, At: s.rec.Left, First: s.rec.ClientFirst, Tokens: s.delivered})
	s.told = s.rec.Left.Add(n.cfg.NetworkIn)
	switch {
	case s.rec.Request.Client.Silent:
	case s.told > at:
		n.aborting = append(n.aborting, s)
	default:
		n.hear(s, at)
	}
}

// hear lets the server hear that the client of s has left. The engine acts at its next boundary.
func (n *naive) hear(s *sequence, at clock.Time) {
	n.aborting = without(n.aborting, s)
	for _, waiting := range n.frontEnd {
		if waiting == s {
			n.frontEnd = without(n.frontEnd, s)
			n.finish(s, event.TimedOut, at)
			return
		}
	}
	n.left = append(n.left, s)
}

// refuse ends s, which the server does not take in.
func (n *naive) refuse(s *sequence, why event.Refusal, how workload.Ending, at clock.Time) {
	if s.rec.Refusal = why; !s.gone() {
		n.tell(s, workload.End{How: how, At: at.Add(n.cfg.NetworkOut), First: clock.Never})
	}
	n.finish(s, event.Rejected, at)
}

// tell tells the source how s ended for its client.
func (n *naive) tell(s *sequence, end workload.End) {
	s.rec.Ending = end.How
	s.rec.Again = n.src.Done(&s.rec.Request, end)
}
