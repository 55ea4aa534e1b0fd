package workload

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
)

// Delay is a distribution of waiting times, such as the think time between an output and the user's next request.
// The zero Delay does not wait.
type Delay struct {
	// Distribution is fixed (also when empty), exponential or lognormal.
	Distribution string `yaml:"distribution,omitempty" json:"distribution,omitempty"`
	// Mean is the mean wait.
	Mean clock.Duration `yaml:"mean" json:"mean"`
	// CV is the coefficient of variation of lognormal.
	CV float64 `yaml:"cv,omitempty" json:"cv,omitempty"`
}

// Sample draws a wait.
func (d Delay) Sample(src rand.Source) clock.Duration {
	switch d.Distribution {
	case "exponential":
		return gap(rand.New(src).ExpFloat64() * d.Mean.Seconds())
	case "lognormal":
		l := LognormalOf(d.Mean.Seconds(), d.CV)
		return gap(math.Exp(l.Mu + float64(l.Sigma*rand.New(src).NormFloat64())))
	}
	return d.Mean
}

func (d Delay) check(key string, f *fieldFaults) {
	if d.Mean < 0 || d.Mean > clock.MaxRun {
		f.add(key+".mean", "%v is not allowed (want 0 to %v)", d.Mean, clock.MaxRun)
	}
	switch d.Distribution {
	case "", "fixed", "exponential":
		if d.CV != 0 {
			f.add(key+".cv", "does not apply to %s (want distribution: lognormal)", cmp.Or(d.Distribution, "fixed"))
		}
	case "lognormal":
		f.number(key+".cv", d.CV, d.CV > 0 && d.CV <= 100, "more than 0, at most 100")
		f.lasting(key+".mean", d.Mean)
	default:
		f.add(key+".distribution", "%q is not known (want fixed, exponential or lognormal)", d.Distribution)
	}
}

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
	stall     stallDetector
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
	if c.pending.Len() == 0 || c.id == c.requests || c.stall.err != nil {
		return 0, false
	}
	return c.pending.next(), true
}

// Next sends that request.
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
	at := end.At.Add(c.thinkTime.Sample(c.think))
	c.stall.note(&c.limits, r.Arrival, at)
	c.wake(r.User, at)
	return false
}

// Err returns an error if simulated time no longer advances.
func (c *closedLoop) Err() error { return c.stall.err }

// stallDetector finds traffic in which simulated time no longer advances: all requests are rejected at the instant
// at which they are sent, and their users return at once. A limit on the number of requests ends such traffic by
// itself.
type stallDetector struct {
	at      clock.Time
	returns int // at the instant at
	err     error
}

// maxReturns is the number of returns at one instant that counts as a stall.
const maxReturns = 1 << 20

// note records that a user sends a request at next after one sent at sent.
func (s *stallDetector) note(l *limits, sent, next clock.Time) {
	if next > sent || l.requests != math.MaxInt64 {
		return
	}
	if sent > s.at {
		s.at, s.returns = sent, 0
	}
	if s.returns++; s.returns == maxReturns {
		s.err = fmt.Errorf("at %.4g s: requests are rejected and their users return at once, so that time does not "+
			"advance (want think_time, "+
			"overheads.network_out or run.requests)", clock.Duration(sent).Seconds())
	}
}

// schedule orders numbered senders (users, conversations or sources) by the instant at which they send next; of equal
// instants the lower number comes first.
type schedule struct{ pq.Queue[struct{}] }

func (s *schedule) push(at clock.Time, sender int32) {
	s.Push(pq.Item[struct{}]{Key: int64(at), Tie: int64(sender)})
}

// retryAt returns the earliest instant; the schedule must not be empty.
func (s *schedule) next() clock.Time { return clock.Time(s.Top().Key) }

func (s *schedule) pop() (at clock.Time, sender int32) {
	item := s.Pop()
	return clock.Time(item.Key), int32(item.Tie)
}

var _ Source = (*closedLoop)(nil)
