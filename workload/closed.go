package workload

import (
	"clifftop/sim/clock"
)

// maxUsers limits a closed loop. Each user takes about 40 bytes, and 40 more if it has a text of its own.
const maxUsers = 10_000_000

func (s Phase) checkClosed(key string, f *fieldFaults) {
	if s.Users < 1 || s.Users > maxUsers {
		f.add(key+".users", "%d is not allowed (want 1 to %d)", s.Users, maxUsers)
	}
	s.ThinkTime.check(key+".think_time", f)
	if s.Ramp < 0 || s.Ramp > clock.MaxRun {
		f.add(key+".ramp", "%v is not allowed (want 0 to %v)", s.Ramp, clock.MaxRun)
	}
}

// closedLoop is a fixed number of users, each with one request at a time. Request k of user u has the same lengths,
// prompt and think time whenever it is sent.
type closedLoop struct {
	loop
	thinkTime Delay
	think     *RNG
	users     int32
	sent      []int32  // requests sent, by user
	pending   schedule // users between two requests
}

func newClosedLoop(l loop, s Phase, seed uint64) *closedLoop {
	c := &closedLoop{
		loop: l, users: s.Users, thinkTime: s.ThinkTime, think: NewRNG(seed, purposeThink),
		sent: make([]int32, s.Users),
	}
	for u := range s.Users {
		c.wake(u, clock.Time(float64(s.Ramp)*(float64(u)/float64(s.Users))))
	}
	return c
}

// wake schedules the next request of user u, unless that is after the end of the traffic.
func (c *closedLoop) wake(u int32, at clock.Time) {
	if at < c.end {
		c.pending.push(at, u)
	}
}

// Peek returns the arrival of the next request of a user that waits for no output.
func (c *closedLoop) Peek() (clock.Time, bool) {
	if c.pending.Len() == 0 || c.id == c.requests {
		return 0, false
	}
	return c.pending.next(), true
}

func (c *closedLoop) Next() Request {
	at, user := c.pending.pop()
	k := int64(c.sent[user])
	c.sent[user]++
	r := Request{ID: c.id, Arrival: at, User: user}
	c.id++
	c.fill(&r, uint64(user), uint64(k), k*int64(c.users)+int64(user))
	return r
}

// Done starts the user's think time.
func (c *closedLoop) Done(r *Request, end End) bool {
	c.think.Seek(uint64(r.User), uint64(c.sent[r.User]))
	c.wake(r.User, knownAt(r, end).Add(c.thinkTime.Sample(c.think)))
	return false
}

// connectionRoundTrip is the least time that a failed attempt takes a user: the connection is opened and refused. It is
// the time within a region. Users whose server is away can therefore not retry endlessly at one instant.
const connectionRoundTrip = clock.Millisecond

// knownAt is when a user of a closed loop knows the end of a request.
func knownAt(r *Request, end End) clock.Time {
	if end.How == Answered {
		return end.At
	}
	return max(end.At, r.Arrival.Add(connectionRoundTrip))
}

// Err returns nil: nothing can go wrong.
func (c *closedLoop) Err() error { return nil }

var _ Source = (*closedLoop)(nil)
