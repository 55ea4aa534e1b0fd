package simtest

import (
	"fmt"

	"clifftop/sim/clock"
	"clifftop/workload"
)

func (d drawer) requests(c *Case, step clock.Duration) []workload.Request {
	w := writer{drawer: d, bs: c.config.BlockSize, session: make([]conversation, d.between("sessions", 1, 3))}
	w.longIn, w.longOut = d.one("longest prompt", 1, 8, 40, 120), d.one("longest output", 1, 4, 20, 60, 60, 60)
	w.shares = c.config.PrefixCaching && !d.once("nothing shared", 4)
	leave := d.once("clients leave", 3)
	gaps := d.one("gaps", 0, 1, 8, 40) // in steps, at most

	adapters := d.one("adapters", 0, 0, 2, 4)
	adapter := func() int32 {
		if adapters == 0 {
			return 0
		}
		return int32(d.of("adapter", adapters))
	}

	images := d.one("images", 0, 0, 1, 3)

	list := make([]workload.Request, d.one("requests", 1, 2, 4, 8, 15, 20, 30))
	at := clock.Time(0)
	for i := range list {
		if gaps > 0 && d.once("gap", 3) {
			at = at.Add(step * clock.Duration(d.between("eighths", 0, 8*gaps)) / 8)
		}
		r := w.request()
		r.ID, r.Arrival = int64(i), at
		if leave && d.once("leaves", 3) {
			r.Client = d.client(step)
		}
		r.Priority, r.Class = int16(d.of("priority", 4)-1), uint16(d.of("class", 3))
		r.User, r.Adapter = int32(d.of("user", 3)), adapter()
		if images > 0 && d.once("has images", 2) {
			r.Images = workload.Images{Count: int32(images), Tokens: int32(d.between("image tokens", 1, 12)),
				At: int32(d.of("image at", int(r.InputTokens)))}
		}
		list[i] = r
	}
	return list
}

// client draws how a client waits, for most of the things that it may wait for seldom.
func (d drawer) client(step clock.Duration) *workload.Client {
	limit := func(name string, n int) clock.Duration {
		if !d.once(name, n) {
			return 0
		}
		return max(1, step*clock.Duration(d.between(name, 0, 80))/4)
	}
	c := &workload.Client{FirstTimeout: limit("first timeout", 2), Cancel: limit("cancel", 4),
		Silent: d.once("silent", 4)}
	if c.Timeout = limit("timeout", 2); *c == (workload.Client{}) {
		c.Timeout = limit("timeout", 1)
	}
	return c
}

// retries draws when clients try again.
func (d drawer) retries(step clock.Duration) Retries {
	return Retries{
		Most: int32(d.between("attempts", 1, 4)), Delay: step * clock.Duration(d.between("delay", 0, 60)) / 4,
		Scatter: d.once("scatter", 2),
	}
}

// loop makes a closed loop: all requests but the first ones are sent after a response.
func (d drawer) loop(c *Case, step clock.Duration) {
	c.users = 1 + d.of("users", len(c.requests))
	for i := c.users; i < len(c.requests); i++ {
		c.requests[i].Arrival = 0
		if !d.once("at once", 3) {
			c.requests[i].Arrival = clock.Time(step) * clock.Time(d.of("thinks", 40)) / 8
		}
	}
}

// writer draws lengths and contents.
type writer struct {
	drawer
	bs              int32
	longIn, longOut int
	shares          bool
	session         []conversation
}

// conversation is what a session has said so far.
type conversation struct {
	turns    int32
	segments []workload.Segment
}

func (w *writer) request() (r workload.Request) {
	r.InputTokens, r.OutputTokens = w.length("prompt", w.longIn), w.length("output", w.longOut)
	if !w.shares {
		return r
	}
	switch w.of("content", 4) {
	case 0: // unique
	case 1: // of a group with a shared prefix
		w.own(&r, workload.Segment{ID: workload.SegmentID(fmt.Sprint("group ", w.of("group", 2))),
			Tokens: w.length("shared", w.longIn)})
	case 2: // one of few prompts
		k := w.of("prompt", 3)
		r.InputTokens = max(1, int32(w.longIn-k))
		w.own(&r, workload.Segment{ID: workload.SegmentID("prefix"), Tokens: r.InputTokens/2 + 1},
			workload.Segment{ID: workload.SegmentID(fmt.Sprint("prompt ", k)), Tokens: r.InputTokens})
	default: // a turn of a conversation; it may be sent before the previous response is complete
		k := w.of("session", len(w.session))
		s := &w.session[k]
		added := w.length("said", w.longIn)
		s.segments = append(s.segments[:len(s.segments):len(s.segments)],
			workload.Segment{ID: workload.SegmentID(fmt.Sprint("session ", k, " turn ", s.turns)), Tokens: added})
		w.own(&r, s.segments...)
		r.InputTokens = int32(r.Content.Tokens())
		r.Session, r.Turn = int32(k)+1, s.turns
		s.segments = append(s.segments[:len(s.segments):len(s.segments)],
			workload.Segment{ID: workload.OutputID(r.Session, r.Turn), Tokens: r.OutputTokens})
		s.turns++
	}
	return r
}

func (w *writer) own(r *workload.Request, s ...workload.Segment) {
	r.Content = &workload.Content{Segments: s}
}

// length draws a length: often 1, a multiple of the block size, or one next to it.
func (w *writer) length(name string, longest int) int32 {
	n := int32(w.of(name, longest)) + 1
	switch w.of("rounding", 6) {
	case 0:
		n = 1
	case 1:
		n = (n + w.bs - 1) / w.bs * w.bs
	case 2:
		n = (n+w.bs-1)/w.bs*w.bs + 1
	}
	return n
}
