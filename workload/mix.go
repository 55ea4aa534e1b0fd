package workload

import (
	"errors"
	"math"
	"math/rand/v2"

	"clifftop/sim/clock"
	"clifftop/workload/idtable"
)

// classMix is traffic of several classes; some may be conversations. Only active conversations are in memory.
type classMix struct {
	limits
	classes []class
	active  idtable.Table[conversation] // by session in an open loop, by user in a closed loop
	pending schedule                    // turns whose send time is known
	number  int32                       // of the latest session
	counts  SessionCounts
	err     error

	open       bool
	starts     phaseArrivals // arrivals of an open loop
	begun      uint64
	classDraws *RNG
	shares     []float64 // cumulative shares of the classes in the arrivals

	between Delay // think time of a closed loop, between conversations or single requests
	think   *RNG
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
		c.startSteadyState(int32(i), c.starts.processes[0].Rate()*p.share, p.survey.horizon)
	}
	c.err = c.starts.advance(c.id, c.requests)
	return c, nil
}

// startUsers begins a closed loop of users of the given classes.
func (c *classMix) startUsers(s Phase, kinds []int32, seed uint64) {
	c.between, c.think = s.ThinkTime, NewRNG(seed, purposeThink)
	for u := range s.Users {
		*c.active.Add(int64(u)) = conversation{class: kinds[u], user: u, over: true}
		c.plan(u, clock.Time(float64(s.Ramp)*(float64(u)/float64(s.Users))))
	}
}

// plan schedules the next request of a conversation or user, unless that is after the end of the traffic.
func (c *classMix) plan(ref int32, at clock.Time) {
	if at < c.end {
		c.pending.push(at, ref)
	}
}

// maxPast limits the number of conversations that are simulated before the start of the run.
const maxPast = 1 << 20

// startSteadyState begins with the conversations that started within the horizon before the run and are still
// active. Their starts are a Poisson process with the given rate, running backwards from 0. Outputs before the run
// take no time.
func (c *classMix) startSteadyState(of int32, rate float64, horizon clock.Duration) {
	k := &c.classes[of]
	if k.conversations == nil || !k.conversations.steady || rate == 0 || math.IsInf(rate, 0) {
		return
	}
	gaps := rand.New(k.past)
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

// firstTurnInRun plays a conversation that started before the run up to its first turn in the run.
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

// nextSession takes the next session number; it returns false if there is none left.
func (c *classMix) nextSession() bool {
	if c.number == math.MaxInt32 {
		c.err = errors.New("the traffic has more than 2147483647 conversations (want fewer requests)")
		return false
	}
	c.number++
	c.counts.Begun++
	return true
}

// add stores a conversation of an open loop and returns its number.
func (c *classMix) add(v conversation) int32 {
	*c.active.Add(int64(v.number)) = v
	return v.number
}

// remove forgets a finished conversation of an open loop.
func (c *classMix) remove(v *conversation) {
	number := v.number
	*v = conversation{}
	c.active.Remove(int64(number))
}

// pendingFirst reports whether a pending turn precedes the next arrival.
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
	k.nextTurn(&v, &c.counts) // the first turn always exists
	return c.send(c.add(v), at)
}

// single sends request n of an entity, which belongs to no conversation.
func (c *classMix) single(k *class, r Request, entity, n uint64, index int64) Request {
	r.ID, r.Class, r.Priority = c.id, k.class, k.priority
	c.id++
	k.fill(&r, entity, n, index)
	return r
}

// sendOfUser sends a request of a user or begins a conversation.
func (c *classMix) sendOfUser(ref int32, at clock.Time) Request {
	v := c.active.Find(int64(ref))
	k := &c.classes[v.class]
	if k.conversations == nil {
		n := int64(v.requests)
		v.requests++
		return c.single(k, Request{Arrival: at, User: v.user}, uint64(v.user), uint64(n),
			n*int64(c.active.Len())+int64(v.user))
	}
	c.nextSession()
	v.number = c.number
	k.begin(v, uint64(v.user)<<32|uint64(v.conversations))
	v.conversations++
	k.nextTurn(v, &c.counts)
	return c.send(ref, at)
}

// send sends the prepared turn of a conversation or user and prepares the next one.
func (c *classMix) send(ref int32, at clock.Time) Request {
	v := c.active.Find(int64(ref))
	k := &c.classes[v.class]
	r := Request{
		ID: c.id, Arrival: at, Session: v.number, User: v.user, Turn: v.sent,
		InputTokens: v.input, OutputTokens: v.output, Class: k.class, Priority: k.priority,
		Adapter: v.adapter,
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
	k.addOutput(v, OutputID(v.number, v.sent))
	v.sent++
	if k.nextTurn(v, &c.counts) && c.open && k.conversations.gap {
		c.plan(v.number, at.Add(k.wait(v, v.turn)))
	}
	return r
}

// Done continues the conversation, or lets the user begin another one. A conversation that waits for outputs ends
// when a turn gets no output.
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
	at := knownAt(r, end)
	switch {
	case v.over:
		c.think.Seek(uint64(u), uint64(v.requests))
		at = at.Add(c.between.Sample(c.think))
	case k.conversations.gap:
		at = max(at, v.at.Add(k.wait(v, v.turn)))
	default:
		at = at.Add(k.wait(v, v.turn))
	}
	c.plan(u, at)
}

// FollowUp is a request of a conversation that waits for the output of the previous one.
type FollowUp struct {
	Wait                      clock.Duration // after the output
	InputTokens, OutputTokens int32
	Content                   *Content
}

// ConversationSource is a source that can list its traffic without a system that serves it.
type ConversationSource interface {
	Source
	// NextConversation returns the next request with all follow-ups of its conversation. It replaces Next and Done.
	NextConversation() (Request, []FollowUp)
}

// NextConversation implements [ConversationSource]. It is not available for a closed loop, whose conversations
// never end.
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
		then = append(then, FollowUp{Wait: wait, InputTokens: next.InputTokens, OutputTokens: next.OutputTokens,
			Content: next.Content})
	}
	if !k.conversations.gap || v.over {
		c.remove(v)
	}
	return r, then
}

// Err returns the error that ended the source before its limits, or nil.
func (c *classMix) Err() error { return c.early(c.err) }

// Sessions returns counts of the conversations so far.
func (c *classMix) Sessions() SessionCounts { return c.counts }

var _ ConversationSource = (*classMix)(nil)
