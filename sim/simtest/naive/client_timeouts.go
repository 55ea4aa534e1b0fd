package naive

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// timeout is how long after the arrival the client of s leaves if it gets nothing more, and how the request ends then;
// ok is false if it never leaves. Of equal limits the first one counts.
func (s *sequence) timeout() (after clock.Duration, how workload.Ending, ok bool) {
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

// clients are the requests that the engine or its front end knows, as far as their clients may act.
type clients struct {
	frontEnd []*sequence // in the front end, by (visible, ID)
	patient  []*sequence // those whose client may still leave, in order of arrival
	aborting []*sequence // those whose client has left; the server does not know it yet
	left     []*sequence // those whose abort has come since the last boundary
}

// nextTimeout is the next request whose departure becomes certain, or whose abort reaches the server, and the instant;
// of those of one instant that with the lowest ID. It is nil, at Never, if there is none.
func (c *clients) nextTimeout(networkOut clock.Duration) (next *sequence, at clock.Time) {
	at = clock.Never
	consider := func(s *sequence, t clock.Time) {
		if next == nil || t < at || t == at && s.rec.Request.ID < next.rec.Request.ID {
			next, at = s, t
		}
	}
	for _, s := range c.patient {
		if after, _, ok := s.timeout(); ok {
			consider(s, max(s.rec.Request.Arrival, s.rec.Request.Arrival.Add(after-networkOut)))
		}
	}
	for _, s := range c.aborting {
		consider(s, s.abortAt)
	}
	return next, at
}

// handleTimeout handles the next departure or abort, if it is not after the instant by, and reports whether there was
// one.
func (n *Engine) handleTimeout(by clock.Time) bool {
	s, at := n.nextTimeout(n.cfg.NetworkOut)
	if s == nil || at > by {
		return false
	}
	if !s.clientLeft() {
		n.timeOut(s, at)
	} else {
		n.receiveAbort(s, at)
	}
	return true
}

// timeOut tells the source at the instant at that the client of s leaves.
func (n *Engine) timeOut(s *sequence, at clock.Time) {
	after, how, _ := s.timeout()
	n.patient = without(n.patient, s)
	s.rec.Left = s.rec.Request.Arrival.Add(after)
	n.notifyClient(s, workload.End{How: how, At: s.rec.Left, First: s.rec.ClientFirst, Tokens: s.delivered})
	s.abortAt = s.rec.Left.Add(n.cfg.NetworkIn)
	switch {
	case s.rec.Request.Client.Silent:
	case s.abortAt > at:
		n.aborting = append(n.aborting, s)
	default:
		n.receiveAbort(s, at)
	}
}

// receiveAbort handles an abort that reaches the server. The engine acts at its next boundary.
func (n *Engine) receiveAbort(s *sequence, at clock.Time) {
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

func (n *Engine) refuse(s *sequence, why event.Refusal, how workload.Ending, at clock.Time) {
	if s.rec.Refusal = why; !s.clientLeft() {
		n.notifyClient(s, workload.End{How: how, At: at.Add(n.cfg.NetworkOut), First: clock.Never})
	}
	n.finish(s, event.Rejected, at)
}

// notifyClient tells the source how s ended for its client.
func (n *Engine) notifyClient(s *sequence, end workload.End) {
	s.rec.Ending = end.How
	s.rec.Again = n.src.Done(&s.rec.Request, end)
}
