package live

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"clifftop/experiments/scenario"
	"clifftop/internal/pq"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Options says how a scenario is served. The zero value serves it in real time.
type Options struct {
	// Speed is the number of simulated seconds per second of the wall clock; 0 is 1.
	Speed float64
	// Journal, if not nil, gets the requests as a Clifftop trace.
	Journal io.Writer
	// JournalFailed, if not nil, is called once if the journal cannot be written. The server goes on.
	JournalFailed func(error)
	// Observers get the events of the simulation, on the goroutine of [Server.Run]. They must return quickly.
	Observers []event.Observer
}

// Server serves a scenario.
type Server struct {
	setup *scenario.Setup
	speed float64
	begun time.Time
	since func(time.Time) time.Duration // time.Since, but for tests

	sim     *sim.Simulation // of the goroutine of Run, as all down to due
	source  source
	streams map[int64]*Stream // that have not ended
	due     pq.Queue[*Stream] // streams with a chunk or an end, by instant; the tie keeps the order of reports
	pushed  int64
	last    clock.Time // of the last command
	reached clock.Time // the latest instant of the wall clock; see step
	journal *journal

	mu      sync.Mutex
	inbox   []command
	next    int64 // ID of the next request
	stopped error // why nothing is accepted any more

	wake chan struct{}
	lag  atomic.Int64 // nanoseconds
	late atomic.Int64 // the longest lag so far
	peak atomic.Int64 // the longest lag since the last call of PeakLag
}

// command is something to do at the instant that corresponds to the wall clock.
type command struct {
	stream *Stream
	send   *workload.Request // the request to send, or nil
	leave  bool              // the client of the stream leaves
	do     func(*sim.Simulation)
}

// New returns a server of a scenario. The scenario's own traffic is not sent. The clock begins with the call.
func New(u *scenario.Setup, o Options) (*Server, error) {
	s := &Server{setup: u, speed: o.Speed, since: time.Since, streams: make(map[int64]*Stream),
		wake: make(chan struct{}, 1)}
	if s.speed == 0 {
		s.speed = 1
	}
	var err error
	observers := append([]event.Observer{&chunks{s: s}}, o.Observers...)
	if s.sim, err = sim.NewFleet(u.Fleet(false), &s.source, observers...); err != nil {
		return nil, err
	}
	if o.Journal != nil {
		s.journal = newJournal(o.Journal, u, o.JournalFailed)
	}
	s.begun = time.Now()
	return s, nil
}

// Setup returns the scenario.
func (s *Server) Setup() *scenario.Setup { return s.setup }

// Speed returns the number of simulated seconds per second of the wall clock.
func (s *Server) Speed() float64 { return s.speed }

// Now returns the simulated instant that corresponds to the wall clock.
func (s *Server) Now() clock.Time {
	return clock.Time(float64(s.since(s.begun)) * s.speed * float64(clock.Nanosecond))
}

// Wall returns the instant of the wall clock that corresponds to a simulated one.
func (s *Server) Wall(at clock.Time) time.Time { return s.begun.Add(s.wall(clock.Duration(at))) }

// wall returns how long a simulated duration takes.
func (s *Server) wall(d clock.Duration) time.Duration {
	return time.Duration(float64(d) / float64(clock.Nanosecond) / s.speed)
}

// Lag returns how late the latest events were handled, in time of the wall clock. It is below a millisecond or two
// unless the machine is too slow for the scenario and the speed.
func (s *Server) Lag() time.Duration { return time.Duration(s.lag.Load()) }

// MaxLag returns the longest lag so far.
func (s *Server) MaxLag() time.Duration { return time.Duration(s.late.Load()) }

// PeakLag returns the longest lag since the last call. It has one caller.
func (s *Server) PeakLag() time.Duration { return time.Duration(s.peak.Swap(0)) }

// errStopped means that the server has ended.
var errStopped = errors.New("the server has ended")

// Submit sends a request, which arrives now. Its lengths must be at least 1. The server sets ID, Arrival and Client.
func (s *Server) Submit(r workload.Request) *Stream {
	t := &Stream{server: s, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	r.ID = s.next
	t.id = r.ID
	if s.stopped != nil {
		t.fail(s.stopped)
		s.mu.Unlock()
		return t
	}
	s.next++
	s.inbox = append(s.inbox, command{stream: t, send: &r})
	s.mu.Unlock()
	s.nudge()
	return t
}

// Do calls a function with the simulation between two events, and returns when it has returned. It reports whether the
// server still runs.
func (s *Server) Do(f func(*sim.Simulation)) bool {
	done := make(chan struct{})
	if !s.order(command{do: func(x *sim.Simulation) { defer close(done); f(x) }}) {
		return false
	}
	<-done
	return true
}

// order queues a command. It reports whether the server still runs.
func (s *Server) order(c command) bool {
	s.mu.Lock()
	if s.stopped != nil {
		s.mu.Unlock()
		return false
	}
	s.inbox = append(s.inbox, c)
	s.mu.Unlock()
	s.nudge()
	return true
}

// nudge wakes the goroutine of Run.
func (s *Server) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// patience is how long Run waits, after its context is done, for the ends of requests whose streams were closed.
const patience = 5 * time.Second

// Run handles the events until ctx is done and the requests have ended, or the simulation fails. Requests whose streams
// were closed end at the next iteration boundary; Run does not wait longer than five seconds for that. It may be called
// once.
func (s *Server) Run(ctx context.Context) error {
	alarm := newAlarm()
	defer alarm.close()
	var commands []command
	flushed := s.begun
	ending := ctx.Done()
	var latest <-chan time.Time
	for {
		s.mu.Lock()
		commands, s.inbox = s.inbox, commands[:0]
		s.mu.Unlock()
		now := s.Now()
		if err := s.step(now, commands); err != nil {
			return s.stop(err)
		}
		clear(commands)
		if at := time.Now(); at.Sub(flushed) >= time.Second {
			flushed = at
			s.journal.flush()
		}
		if ctx.Err() != nil && len(s.streams) == 0 && s.idle() {
			return s.stop(nil)
		}
		alarm.set(s.rest())
		select {
		case <-s.wake:
		case <-alarm.rings():
		case <-ending:
			ending, latest = nil, time.After(patience)
		case <-latest:
			return s.stop(nil)
		}
	}
}

// step carries out commands and handles what is due.
func (s *Server) step(now clock.Time, commands []command) error {
	// Two processors' clocks may differ by some nanoseconds, and events have been handled up to the later one.
	now = max(now, s.reached)
	s.reached = now
	s.noteLag(now)
	for i := range commands {
		// Every command has an instant of its own, so that a replay has the same order of events.
		at := max(now, s.last+1)
		s.last = at
		if err := s.sim.Advance(at); err != nil {
			return err
		}
		s.carryOut(at, &commands[i])
	}
	if err := s.sim.Advance(max(now, s.last+1)); err != nil {
		return err
	}
	s.deliver(now)
	return nil
}

func (s *Server) carryOut(at clock.Time, c *command) {
	switch t := c.stream; {
	case c.do != nil:
		c.do(s.sim)
	case c.leave:
		if s.streams[t.id] == t {
			s.sim.Leave(t.id, at)
		}
	default:
		r := c.send
		r.Arrival, r.Client = at, &workload.Client{Leaves: true}
		s.streams[r.ID] = t
		s.journal.sent(r)
		s.source.push(r)
	}
}

// noteLag notes how late the handling at the instant now is.
func (s *Server) noteLag(now clock.Time) {
	lag := int64(0)
	if at := s.upcoming(); at < now {
		lag = int64(s.wall(now.Sub(at)))
	}
	s.lag.Store(lag)
	s.late.Store(max(lag, s.late.Load()))
	s.peak.Store(max(lag, s.peak.Load()))
}

// upcoming returns the simulated instant of the next event or chunk.
func (s *Server) upcoming() clock.Time {
	at := s.sim.Next()
	if s.due.Len() > 0 {
		at = min(at, clock.Time(s.due.Top().Key))
	}
	return at
}

// rest returns how long nothing is due.
func (s *Server) rest() time.Duration {
	at := s.upcoming()
	if at == clock.Never {
		return time.Hour
	}
	// An event is due after its instant, because a request may still arrive then.
	return max(0, time.Until(s.Wall(at+1))+1)
}

// idle reports whether no command waits.
func (s *Server) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inbox) == 0
}

// stop ends the server and all streams.
func (s *Server) stop(err error) error {
	why := err
	if why == nil {
		why = errStopped
	}
	s.mu.Lock()
	s.stopped = why
	waiting := s.inbox
	s.inbox = nil
	s.mu.Unlock()
	for _, c := range waiting {
		switch {
		case c.do != nil:
			c.do(s.sim)
		case c.send != nil:
			c.stream.fail(why)
		}
	}
	for _, t := range s.streams {
		t.fail(why)
	}
	clear(s.streams)
	s.journal.close()
	return err
}
