package workload

import (
	"errors"
	"math"
	"math/rand/v2"

	"clifftop/sim/clock"
	"clifftop/workload/underway"
)

// crowd is traffic of several kinds, some of which may be made of conversations. Only those under way are kept.
type crowd struct {
	limits
	kinds   []kind
	live    underway.Table[visit] // by session in an open loop, by user in a closed one
	pending schedule              // turns to come whose instant is known
	number  int32                 // of the latest session
	counts  SessionCounts
	err     error

	open   bool
	starts starts // of an open loop
	begun  uint64
	marks  *Stream
	shares []float64 // of the kinds among the starts, cumulated

	between Delay // conversations, or single requests, of a user in a closed loop
	think   *Stream
	still   standstill
}

func newCrowd(s Spec, t *traffic, kinds []kind, seed uint64) (*crowd, error) {
	c := &crowd{limits: s.limits(t), kinds: kinds, open: !s.Closed()}
	if !c.open {
		c.users(s.Arrivals[0], spread(t.parts, s.Arrivals[0].Users), seed)
		return c, nil
	}
	c.marks = NewStream(seed, purposeClass)
	c.starts = t.starts(c.end, seed)
	sum := 0.0
	for i := range t.parts {
		p := &t.parts[i]
		sum += p.share
		c.shares = append(c.shares, sum)
		c.past(int32(i), c.starts.processes[0].Rate()*p.share, p.survey.horizon, seed)
	}
	c.err = c.starts.advance(c.id, c.requests)
	return c, nil
}

// users begins a closed loop of users of given kinds.
func (c *crowd) users(s Stage, kinds []int32, seed uint64) {
	c.between, c.think = s.ThinkTime, NewStream(seed, purposeThink)
	for u := range s.Users {
		*c.live.Add(int64(u)) = visit{kind: kinds[u], user: u, over: true}
		c.plan(u, clock.Time(float64(s.Ramp)*(float64(u)/float64(s.Users))))
	}
}

// plan lets a conversation, or a user, send at an instant, unless that is past the end.
func (c *crowd) plan(ref int32, at clock.Time) {
	if at < c.end {
		c.pending.push(at, ref)
	}
}

// mostPast bounds the conversations of the past that are played.
const mostPast = 1 << 20

// past begins with the conversations that have started within the horizon before the run and are still under way.
// Their starts are a Poisson process of the given rate, which reaches back from 0. Answers are taken to have
// come at once.
func (c *crowd) past(of int32, rate float64, horizon clock.Duration, seed uint64) {
	k := &c.kinds[of]
	if k.talk == nil || !k.talk.steady || rate == 0 || math.IsInf(rate, 0) {
		return
	}
	src := NewStream(seed, purposePast)
	src.Seek(uint64(of), 0)
	gaps := rand.New(src)
	back := clock.Duration(0)
	for i := range uint64(mostPast) {
		back += gap(gaps.ExpFloat64() / rate)
		if back > horizon {
			return
		}
		v := visit{kind: of, number: c.number + 1}
		if at, ok := k.catchUp(&v, Hash(pastDomain, i), clock.Time(-back)); ok && c.named() {
			c.plan(c.enter(v), at)
		}
	}
}

// catchUp plays a conversation that began at an instant before the run up to its first turn in it.
func (k *kind) catchUp(v *visit, entity uint64, at clock.Time) (clock.Time, bool) {
	k.begin(v, entity)
	if v.turns == 1 {
		return 0, false
	}
	var unsent SessionCounts
	for k.compose(v, &unsent) {
		if at >= 0 {
			v.sent = 0
			return at, true
		}
		k.answered(v, Hash(pastDomain, entity+uint64(v.turn)))
		at = at.Add(k.wait(v, v.turn))
	}
	return 0, false
}

// named takes a number for a session.
func (c *crowd) named() bool {
	if c.number == math.MaxInt32 {
		c.err = errors.New("the traffic has more than 2147483647 conversations (want fewer requests)")
		return false
	}
	c.number++
	c.counts.Begun++
	return true
}

// enter keeps a conversation of an open loop, and returns its number.
func (c *crowd) enter(v visit) int32 {
	*c.live.Add(int64(v.number)) = v
	return v.number
}

// leave forgets a conversation of an open loop that has come to its end.
func (c *crowd) leave(v *visit) {
	number := v.number
	*v = visit{}
	c.live.Remove(int64(number))
}

// resumes reports whether the next request is not a start, but one that was planned.
func (c *crowd) resumes() bool {
	return c.pending.Len() > 0 && (!c.open || c.pending.next() <= c.starts.at)
}

// Peek returns the arrival of the next request.
func (c *crowd) Peek() (clock.Time, bool) {
	switch {
	case c.id == c.requests || c.err != nil:
		return 0, false
	case c.resumes():
		return c.pending.next(), true
	case !c.open:
		return 0, false
	}
	return c.starts.at, c.starts.at != clock.Never
}

// Next returns the next request.
func (c *crowd) Next() Request {
	if c.resumes() {
		at, ref := c.pending.pop()
		if v := c.live.Find(int64(ref)); !c.open && v.over {
			return c.visit(ref, at)
		}
		return c.send(ref, at)
	}
	at := c.starts.at
	if err := c.starts.advance(c.id+1, c.requests); err != nil {
		c.err = err
	}
	c.marks.Seek(0, c.begun)
	c.begun++
	of := int32(pick(c.shares, uniform(c.marks)))
	k := &c.kinds[of]
	n := k.count
	k.count++
	if k.talk == nil {
		return c.single(k, Request{Arrival: at}, 0, n, int64(n))
	}
	v := visit{kind: of, number: c.number + 1}
	c.named()
	k.begin(&v, n)
	k.compose(&v, &c.counts) // there is a first turn
	return c.send(c.enter(v), at)
}

// single sends a request that belongs to no conversation: request n of an entity.
func (c *crowd) single(k *kind, r Request, entity, n uint64, index int64) Request {
	r.ID, r.Class, r.Priority = c.id, k.class, k.priority
	c.id++
	k.fill(&r, entity, n, index)
	return r
}

// visit lets a user send a request, or begin a conversation.
func (c *crowd) visit(ref int32, at clock.Time) Request {
	v := c.live.Find(int64(ref))
	k := &c.kinds[v.kind]
	if k.talk == nil {
		n := int64(v.requests)
		v.requests++
		return c.single(k, Request{Arrival: at, User: v.user}, uint64(v.user), uint64(n), n*int64(c.live.Len())+int64(v.user))
	}
	c.named()
	v.number = c.number
	k.begin(v, uint64(v.user)<<32|uint64(v.talks))
	v.talks++
	k.compose(v, &c.counts)
	return c.send(ref, at)
}

// send sends the turn that a conversation, or a user, has ready, and composes the one after it.
func (c *crowd) send(ref int32, at clock.Time) Request {
	v := c.live.Find(int64(ref))
	k := &c.kinds[v.kind]
	r := Request{
		ID: c.id, Arrival: at, Session: v.number, User: v.user, Turn: v.sent,
		InputTokens: v.input, OutputTokens: v.output, Class: k.class, Priority: k.priority,
	}
	n := len(v.history)
	r.Content = &Content{Segments: v.history[:n:n]}
	c.id++
	c.counts.Turns++
	v.at = at
	v.inFlight++
	if v.inFlight > 1 {
		c.counts.Overlaps++
	}
	v.requests++
	k.answered(v, AnswerID(v.number, v.sent))
	v.sent++
	if k.compose(v, &c.counts) && c.open && k.talk.gap {
		c.plan(v.number, at.Add(k.wait(v, v.turn)))
	}
	return r
}

// Done lets the conversation go on, or the user begin another. One whose turn was not answered is given up where turns
// wait for answers.
func (c *crowd) Done(r *Request, end End) bool {
	if !c.open {
		c.userDone(r, end)
		return false
	}
	v := c.live.Find(int64(r.Session))
	if v == nil {
		return false
	}
	k := &c.kinds[v.kind]
	v.inFlight--
	if !v.over && !k.talk.gap && end.How != Answered {
		v.over = true
		c.counts.GivenUp++
	}
	switch {
	case v.over && v.inFlight == 0:
		c.leave(v)
	case !v.over && !k.talk.gap:
		c.plan(v.number, end.At.Add(k.wait(v, v.turn)))
	}
	return false
}

func (c *crowd) userDone(r *Request, end End) {
	u := r.User
	v := c.live.Find(int64(u))
	k := &c.kinds[v.kind]
	v.inFlight = 0
	if !v.over && end.How != Answered {
		v.over = true
		c.counts.GivenUp++
	}
	at := end.At
	switch {
	case v.over:
		c.think.Seek(uint64(u), uint64(v.requests))
		at = at.Add(c.between.Sample(c.think))
	case k.talk.gap:
		at = max(at, v.at.Add(k.wait(v, v.turn)))
	default:
		at = at.Add(k.wait(v, v.turn))
	}
	if c.still.returned(&c.limits, r.Arrival, at); c.still.err != nil {
		c.err = c.still.err
	}
	c.plan(u, at)
}

// Later is a request of a conversation that waits for the answer to the one before it.
type Later struct {
	Wait                      clock.Duration // from the answer on
	InputTokens, OutputTokens int32
	Content                   *Content
}

// Wholes is a source that can tell the traffic without a system that answers.
type Wholes interface {
	Source
	// NextWhole returns the next request, with all those of its conversation that wait for answers. It takes the place of
	// Next and Done.
	NextWhole() (Request, []Later)
}

// NextWhole implements [Wholes]; a closed loop has no end of turns that wait, and is not for it.
func (c *crowd) NextWhole() (r Request, then []Later) {
	r = c.Next()
	v := c.live.Find(int64(r.Session))
	if v == nil {
		return r, nil
	}
	k := &c.kinds[v.kind]
	for !k.talk.gap && !v.over && c.id < c.requests {
		wait := k.wait(v, v.turn)
		next := c.send(r.Session, r.Arrival)
		then = append(then, Later{Wait: wait, InputTokens: next.InputTokens, OutputTokens: next.OutputTokens, Content: next.Content})
	}
	if !k.talk.gap || v.over {
		c.leave(v)
	}
	return r, then
}

// Err tells why the source ended before its limits.
func (c *crowd) Err() error { return c.err }

// Sessions tells what became of the conversations up to now.
func (c *crowd) Sessions() SessionCounts { return c.counts }

var _ Wholes = (*crowd)(nil)
