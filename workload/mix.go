package workload

import (
	"errors"
	"math"
	"math/rand/v2"

	"clifftop/sim/clock"
	"clifftop/workload/idtable"
)

// crowd is traffic of several kinds, some of which may be made of conversations. Only those under way are kept.
type classMix struct {
	limits
	classes []class
	active  idtable.Table[conversation] // by session in an open loop, by user in a closed one
	pending schedule                    // turns to come whose instant is known
	number  int32                       // of the latest session
	counts  SessionCounts
	err     error

	open       bool
	starts     phaseArrivals // of an open loop
	begun      uint64
	classDraws *RNG
	shares     []float64 // of the kinds among the starts, cumulated

	between Delay // conversations, or single requests, of a user in a closed loop
	think   *RNG
	stall   stallDetector
}

func newClassMix(s Spec, t *traffic, kinds []class, seed uint64) (*classMix, error) {
	c := &classMix{limits: s.limits(t), classes: kinds, open: !s.Closed()}
	if !c.open {
		c.startUsers(s.Arrivals[0], spread(t.parts, s.Arrivals[0].Users), seed)
		return c, nil
	}
	c.classDraws = NewRNG(seed, purposeClass)
	c.starts = t.starts(c.end, seed)
	sum := 0.0
	for i := range t.parts {
		p := &t.parts[i]
		sum += p.share
		c.shares = append(c.shares, sum)
		c.startSteadyState(int32(i), c.starts.processes[0].Rate()*p.share, p.survey.horizon, seed)
	}
	c.err = c.starts.advance(c.id, c.requests)
	return c, nil
}

// startUsers begins a closed loop of users of given kinds.
func (c *classMix) startUsers(s Phase, kinds []int32, seed uint64) {
	c.between, c.think = s.ThinkTime, NewRNG(seed, purposeThink)
	for u := range s.Users {
		*c.active.Add(int64(u)) = conversation{class: kinds[u], user: u, over: true}
		c.plan(u, clock.Time(float64(s.Ramp)*(float64(u)/float64(s.Users))))
	}
}

// plan lets a conversation, or a user, send at an instant, unless that is past the end.
func (c *classMix) plan(ref int32, at clock.Time) {
	if at < c.end {
		c.pending.push(at, ref)
	}
}

// maxPast bounds the conversations of the past that are played.
const maxPast = 1 << 20

// startSteadyState begins with the conversations that have started within the horizon before the run and are still under way.
// Their starts are a Poisson process of the given rate, which reaches back from 0. Answers are taken to have
// come at once.
func (c *classMix) startSteadyState(of int32, rate float64, horizon clock.Duration, seed uint64) {
	k := &c.classes[of]
	if k.conversations == nil || !k.conversations.steady || rate == 0 || math.IsInf(rate, 0) {
		return
	}
	src := NewRNG(seed, purposePast)
	src.Seek(uint64(of), 0)
	gaps := rand.New(src)
	back := clock.Duration(0)
	for i := range uint64(maxPast) {
		back += gap(gaps.ExpFloat64() / rate)
		if back > horizon {
			return
		}
		v := conversation{class: of, number: c.number + 1}
		if at, ok := k.firstTurnInRun(&v, Hash(pastDomain, i), clock.Time(-back)); ok && c.nextSession() {
			c.plan(c.add(v), at)
		}
	}
}

// firstTurnInRun plays a conversation that began at an instant before the run up to its first turn in it.
func (k *class) firstTurnInRun(v *conversation, entity uint64, at clock.Time) (clock.Time, bool) {
	k.begin(v, entity)
	if v.turns == 1 {
		return 0, false
	}
	var unsent SessionCounts
	for k.nextTurn(v, &unsent) {
		if at >= 0 {
			v.sent = 0
			return at, true
		}
		k.addOutput(v, Hash(pastDomain, entity+uint64(v.turn)))
		at = at.Add(k.wait(v, v.turn))
	}
	return 0, false
}

// nextSession takes a number for a session.
func (c *classMix) nextSession() bool {
	if c.number == math.MaxInt32 {
		c.err = errors.New("the traffic has more than 2147483647 conversations (want fewer requests)")
		return false
	}
	c.number++
	c.counts.Begun++
	return true
}

// add keeps a conversation of an open loop, and returns its number.
func (c *classMix) add(v conversation) int32 {
	*c.active.Add(int64(v.number)) = v
	return v.number
}

// remove forgets a conversation of an open loop that has come to its end.
func (c *classMix) remove(v *conversation) {
	number := v.number
	*v = conversation{}
	c.active.Remove(int64(number))
}

// pendingFirst reports whether the next request is not a start, but one that was planned.
func (c *classMix) pendingFirst() bool {
	return c.pending.Len() > 0 && (!c.open || c.pending.next() <= c.starts.at)
}

// Peek returns the arrival of the next request.
func (c *classMix) Peek() (clock.Time, bool) {
	switch {
	case c.id == c.requests || c.err != nil:
		return 0, false
	case c.pendingFirst():
		return c.pending.next(), true
	case !c.open:
		return 0, false
	}
	return c.starts.at, c.starts.at != clock.Never
}

// Next returns the next request.
func (c *classMix) Next() Request {
	if c.pendingFirst() {
		at, ref := c.pending.pop()
		if v := c.active.Find(int64(ref)); !c.open && v.over {
			return c.sendOfUser(ref, at)
		}
		return c.send(ref, at)
	}
	at := c.starts.at
	if err := c.starts.advance(c.id+1, c.requests); err != nil {
		c.err = err
	}
	c.classDraws.Seek(0, c.begun)
	c.begun++
	of := int32(pick(c.shares, uniform(c.classDraws)))
	k := &c.classes[of]
	n := k.count
	k.count++
	if k.conversations == nil {
		return c.single(k, Request{Arrival: at}, 0, n, int64(n))
	}
	v := conversation{class: of, number: c.number + 1}
	c.nextSession()
	k.begin(&v, n)
	k.nextTurn(&v, &c.counts) // there is a first turn
	return c.send(c.add(v), at)
}

// single sends a request that belongs to no conversation: request n of an entity.
func (c *classMix) single(k *class, r Request, entity, n uint64, index int64) Request {
	r.ID, r.Class, r.Priority = c.id, k.class, k.priority
	c.id++
	k.fill(&r, entity, n, index)
	return r
}

// visit lets a user send a request, or begin a conversation.
func (c *classMix) sendOfUser(ref int32, at clock.Time) Request {
	v := c.active.Find(int64(ref))
	k := &c.classes[v.class]
	if k.conversations == nil {
		n := int64(v.requests)
		v.requests++
		return c.single(k, Request{Arrival: at, User: v.user}, uint64(v.user), uint64(n), n*int64(c.active.Len())+int64(v.user))
	}
	c.nextSession()
	v.number = c.number
	k.begin(v, uint64(v.user)<<32|uint64(v.conversations))
	v.conversations++
	k.nextTurn(v, &c.counts)
	return c.send(ref, at)
}

// send sends the turn that a conversation, or a user, has ready, and composes the one after it.
func (c *classMix) send(ref int32, at clock.Time) Request {
	v := c.active.Find(int64(ref))
	k := &c.classes[v.class]
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
	k.addOutput(v, AnswerID(v.number, v.sent))
	v.sent++
	if k.nextTurn(v, &c.counts) && c.open && k.conversations.gap {
		c.plan(v.number, at.Add(k.wait(v, v.turn)))
	}
	return r
}

// Done lets the conversation go on, or the user begin another. One whose turn was not answered is given up where turns
// wait for answers.
func (c *classMix) Done(r *Request, end End) bool {
	if !c.open {
		c.userDone(r, end)
		return false
	}
	v := c.active.Find(int64(r.Session))
	if v == nil {
		return false
	}
	k := &c.classes[v.class]
	v.inFlight--
	if !v.over && !k.conversations.gap && end.How != Answered {
		v.over = true
		c.counts.GivenUp++
	}
	switch {
	case v.over && v.inFlight == 0:
		c.remove(v)
	case !v.over && !k.conversations.gap:
		c.plan(v.number, end.At.Add(k.wait(v, v.turn)))
	}
	return false
}

func (c *classMix) userDone(r *Request, end End) {
	u := r.User
	v := c.active.Find(int64(u))
	k := &c.classes[v.class]
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
	case k.conversations.gap:
		at = max(at, v.at.Add(k.wait(v, v.turn)))
	default:
		at = at.Add(k.wait(v, v.turn))
	}
	if c.stall.note(&c.limits, r.Arrival, at); c.stall.err != nil {
		c.err = c.stall.err
	}
	c.plan(u, at)
}

// FollowUp is a request of a conversation that waits for the answer to the one before it.
type FollowUp struct {
	Wait                      clock.Duration // from the answer on
	InputTokens, OutputTokens int32
	Content                   *Content
}

// ConversationSource is a source that can tell the traffic without a system that answers.
type ConversationSource interface {
	Source
	// NextConversation returns the next request, with all those of its conversation that wait for answers. It takes the place of
	// Next and Done.
	NextConversation() (Request, []FollowUp)
}

// NextConversation implements [ConversationSource]; a closed loop has no end of turns that wait, and is not for it.
func (c *classMix) NextConversation() (r Request, then []FollowUp) {
	r = c.Next()
	v := c.active.Find(int64(r.Session))
	if v == nil {
		return r, nil
	}
	k := &c.classes[v.class]
	for !k.conversations.gap && !v.over && c.id < c.requests {
		wait := k.wait(v, v.turn)
		next := c.send(r.Session, r.Arrival)
		then = append(then, FollowUp{Wait: wait, InputTokens: next.InputTokens, OutputTokens: next.OutputTokens, Content: next.Content})
	}
	if !k.conversations.gap || v.over {
		c.remove(v)
	}
	return r, then
}

// Err tells why the source ended before its limits.
func (c *classMix) Err() error { return c.err }

// Sessions tells what became of the conversations up to now.
func (c *classMix) Sessions() SessionCounts { return c.counts }

var _ ConversationSource = (*classMix)(nil)
