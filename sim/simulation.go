// Package sim is the simulator: an event loop over a fleet of serving engines. A [clifftop/workload.Source] sends
// requests, and [clifftop/sim/event] observers get what happens. Start reading at [Simulation].
//
// It is deterministic and single-threaded, and does no I/O. Its time is an integer, so that results are equal to the
// last bit on every platform, with any observer and any length of spans. Package [clifftop/sim/simtest] has a plain
// engine that visits every sequence and gives the same results slowly.
package sim

import (
	"context"
	"errors"
	"fmt"
	"math"

	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/part/connector"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Simulation runs one scenario.
//
// Events of one instant happen in this order: planned events of replicas, departures of clients and their aborts,
// arrivals, requests that reach an engine's queue, KV transfers, boundaries of replicas. Events of one kind are ordered
// by request ID, boundaries by replica.
type Simulation struct {
	fleet
	routing
	lifecycle *lifecycle // nil if replicas are always ready
	src       workload.Source
	check     bool

	networkIn, networkOut clock.Duration // between the clients and the server

	// Horizon is the instant at which the run stops if it has not drained before.
	Horizon clock.Time

	unplanned clock.Time // the instant of the last event that was not planned
	reported  event.Levels
	levelsTo  event.LevelObserver

	nextSent  clock.Time // when the source sends the next request, or Never
	limited   bool       // some queue may refuse requests
	linked    bool       // KV may move between engines or to tiers
	locked    bool       // some engines iterate in lock step
	alone     bool       // one replica, always ready, without moves of KV and watchers of the cache
	frontEnd  frontEnd
	clients   clients
	transfers connector.Transfers
}

// New returns a simulation of one replica. It validates the configuration, whose scheduler must not be in use by
// another engine.
func New(cfg engine.Config, src workload.Source, observers ...event.Observer) (*Simulation, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return newSimulation(Fleet{Replicas: []engine.Config{cfg}}, src, event.Join(observers...)), nil
}

// NewFleet returns a simulation of many replicas. It validates the configuration, whose schedulers and routers must not
// be in use by another simulation.
func NewFleet(f Fleet, src workload.Source, observers ...event.Observer) (*Simulation, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	return newSimulation(f, src, event.Join(observers...)), nil
}

func newSimulation(f Fleet, src workload.Source, obs *event.Fanout) *Simulation {
	e := &Simulation{src: src, fleet: newFleet(&f, obs), Horizon: clock.Never, levelsTo: obs.LevelObserver()}
	e.networkIn, e.networkOut = f.Replicas[0].NetworkIn, f.Replicas[0].NetworkOut
	e.clients.networkOut = e.networkOut
	e.frontEnd.surelyFits = math.MaxInt32
	for i, cfg := range f.Replicas {
		e.frontEnd.surelyFits = min(e.frontEnd.surelyFits, cfg.SurelyFits())
		e.check, e.limited = e.check || cfg.Check, e.limited || cfg.Limited()
		e.linked = e.linked || cfg.Connector != nil || f.Disaggregation != nil
		e.replicas = append(e.replicas, e.newReplica(cfg, i, obs.Replica(i), nil))
	}
	e.routing.init(&f, &e.fleet)
	if f.Disaggregation != nil {
		e.disaggregated = newDisaggregator(f.Disaggregation, e)
	}
	if f.Lockstep != nil {
		e.lock(f.Lockstep)
	}
	if f.Lifecycle != nil {
		e.initLifecycle(&f)
	}
	e.alone = len(e.replicas) == 1 && !e.linked && e.lifecycle == nil && !e.caches.followed() &&
		e.scrape == clock.Never && e.replicas[0].own == nil
	return e
}

// Now is the current instant of the simulation.
func (e *Simulation) Now() clock.Time { return e.now }

// InSystem is the number of requests that were sent and have not ended.
func (e *Simulation) InSystem() int { return e.levels.System }

// Links returns what the links have carried so far: by replica those of its connector, first Links and then Tiers, and
// after all of them those of a [Disaggregation], by replica.
func (e *Simulation) Links() []connector.LinkUse { return e.transfers.Use(e.now) }

// Effort returns the compositions of all engines so far.
func (e *Simulation) Effort() (all engine.Effort) {
	for _, r := range e.replicas {
		all.Add(r.Effort())
	}
	return all
}

// errStuck means that requests wait, nothing runs, and no event will change that.
var errStuck = errors.New("sim: deadlock: the policy can never admit the waiting requests")

// ctxEvery is the number of events between checks of the context.
const ctxEvery = 1 << 12

// Run runs until the source is exhausted and the system is empty, the horizon is reached, or ctx is done. In the last
// case it returns the context's error; what was observed up to then is valid.
func (e *Simulation) Run(ctx context.Context) error {
	_, err := e.RunUntil(ctx, nil)
	return err
}

// RunUntil is [Simulation.Run] with pauses: it returns early, with done false, after an arrival for which pause is
// true. Then the next call goes on, and the result equals the result of a single call.
func (e *Simulation) RunUntil(ctx context.Context, pause func() bool) (done bool, err error) {
	e.look()
	bound := min(e.Horizon, clock.Time(clock.MaxRun)+1)
	for left := 0; ; left-- {
		if left <= 0 {
			if left = ctxEvery; ctx.Err() != nil {
				e.stop(e.now)
				return true, ctx.Err()
			}
		}
		if e.alone {
			n, paused, err := e.runAlone(bound, left, pause)
			if err != nil {
				e.stop(e.now)
				return true, err
			} else if paused {
				return false, nil
			}
			left -= n
		}
		at, kind, r := e.upcoming()
		if kind == eventPlanned || at >= bound {
			if done, err := e.mayEnd(at, kind); err != nil {
				e.stop(e.now)
				return true, err
			} else if done {
				return true, e.src.Err()
			}
		}
		if err := e.handle(at, kind, r); err != nil {
			e.stop(e.now)
			return true, err
		}
		if kind == eventArrival && pause != nil && pause() {
			return false, nil
		}
	}
}

// runAlone handles the events of the only replica that come before an instant and before every departure of a client,
// at most so many. It is [Simulation.upcoming] and [Simulation.handle] with what a lone replica needs of them. It
// returns how many events it has handled, and whether pause was true.
func (e *Simulation) runAlone(bound clock.Time, most int, pause func() bool) (n int, paused bool, err error) {
	r := e.replicas[0]
	for n < most {
		at, kind := r.Next(), eventBoundary
		if t := e.frontEnd.next(); t <= at {
			at, kind = t, eventQueueing
		}
		if e.nextSent <= at {
			at, kind = e.nextSent, eventArrival
		}
		if d := &e.clients.departures; at >= bound || d.Len() > 0 && clock.Time(d.Top().Key) <= at {
			break
		}
		if at < e.now {
			return n, false, r.Broken("time goes back to %v", at)
		}
		e.now = at
		n++
		switch kind {
		case eventBoundary:
			err = r.Boundary()
		case eventArrival:
			err = e.arrive()
		default:
			e.reach(e.frontEnd.due.Pop())
		}
		if levelsDiffer(e, r.Levels(), r.Blocked()) {
			reportAlone(e, r.Levels(), r.Blocked())
		}
		if err != nil || kind == eventArrival && pause != nil && pause() {
			return n, err == nil, err
		}
	}
	return n, false, nil
}

// levelsDiffer reports whether the levels of the only replica are not those that were reported last.
func levelsDiffer(e *Simulation, now *event.Levels, blocked sched.Cause) bool {
	was := &e.levels
	return now.Waiting != was.Waiting || now.Running != was.Running || now.Decoding != was.Decoding ||
		was.System != e.reported.System || now.Waiting > 0 && blocked != was.Blocked
}

// reportAlone reports the levels of the only replica to the observers. It does what [fleet.sync] and
// [Simulation.reportLevels] do.
func reportAlone(e *Simulation, now *event.Levels, blocked sched.Cause) {
	if now.Waiting == 0 {
		blocked = sched.NotBlocked
	}
	l := &e.levels
	l.Waiting, l.Running, l.Decoding, l.Blocked = now.Waiting, now.Running, now.Decoding, blocked
	e.reported.System = l.System
	e.levelsTo.Levels(e.now, l)
}

// reportLevels reports the levels to the observers if they have changed.
func (e *Simulation) reportLevels(at clock.Time) {
	if !e.levels.Equal(&e.reported) {
		e.reported = e.levels
		e.levelsTo.Levels(at, &e.reported)
	}
}

// Kinds of events, in their order at one instant.
const (
	eventPlanned   = iota // a planned event of a replica
	eventDeparture        // a client leaves, or its abort arrives
	eventArrival          // a request is sent
	eventQueueing         // a request reaches the router or a queue
	eventTransfer         // a KV transfer ends, or a link changes
	eventBoundary         // of a replica
)

// upcoming returns the next event and the replica with the next boundary. Its instant is Never if there is none.
func (e *Simulation) upcoming() (at clock.Time, kind int, r *Replica) {
	at, r = e.boundaryNext()
	kind = eventBoundary
	if e.linked {
		if t := e.transfers.Next(); t < clock.Never && t <= at &&
			(at < clock.Never || t == e.now || e.transfers.Awaited() > 0 || !e.quiet()) {
			at, kind = t, eventTransfer
		}
	}
	if e.frontEnd.next() <= at {
		at, kind = e.frontEnd.next(), eventQueueing
	}
	if e.nextSent <= at && e.nextSent < clock.Never {
		at, kind = e.nextSent, eventArrival
	}
	if e.clients.departures.Len() > 0 && clock.Time(e.clients.departures.Top().Key) <= at {
		at, kind = clock.Time(e.clients.departures.Top().Key), eventDeparture
	}
	if e.lifecycle != nil && e.lifecycle.planned.Len() > 0 && clock.Time(e.lifecycle.planned.Top().Key) <= at {
		at, kind = clock.Time(e.lifecycle.planned.Top().Key), eventPlanned
	}
	return at, kind, r
}

// mayEnd reports whether the run ends before the next event, of a kind and at the instant at, which is planned or not
// before the bound.
func (e *Simulation) mayEnd(at clock.Time, kind int) (done bool, err error) {
	if kind == eventPlanned && at > e.now && e.Horizon == clock.Never {
		if e.onlyPlannedLeft() {
			return e.end()
		}
		if e.lifecycle.routerStuck(at) {
			return false, ErrStranded
		}
	}
	switch {
	case at == clock.Never:
		return e.end()
	case at >= e.Horizon:
		e.stop(e.Horizon)
		return true, nil
	case at > clock.Time(clock.MaxRun):
		return false, errTooLong()
	}
	return false, nil
}

func errTooLong() error {
	return fmt.Errorf("sim: the run goes past %.0f days; slice or speed up the workload", clock.MaxRun.Seconds()/86400)
}

// handle handles the next event, of a kind, at the instant at, with the replica r if it is a boundary.
func (e *Simulation) handle(at clock.Time, kind int, r *Replica) (err error) {
	if at < e.now {
		return r.Broken("time goes back to %v", at)
	}
	if at > e.scrape {
		e.scrapeUpTo(at)
	}
	if e.now = at; kind != eventPlanned {
		e.unplanned = at
	}
	switch kind {
	case eventPlanned:
		err = e.lifecycle.runPlanned()
	case eventArrival:
		err = e.arrive()
	case eventDeparture:
		e.depart(e.clients.departures.Pop())
	case eventQueueing:
		e.reach(e.frontEnd.due.Pop())
	case eventTransfer:
		e.changed = pass(at, e.transfers.Happens(at), e.replicas)
		if e.check {
			err = e.transfers.Check(at)
		}
	case eventBoundary:
		e.noteBoundary(r.Index())
		err = r.Boundary()
		e.changed = r
	}
	if e.alone {
		if levelsDiffer(e, r.Levels(), r.Blocked()) {
			reportAlone(e, r.Levels(), r.Blocked())
		}
		return err
	}
	if e.changed != nil {
		e.syncTouched()
	}
	e.reportLevels(at)
	if e.caches.observed {
		e.reportCaches(at)
	}
	return err
}

// syncTouched updates the fleet after the replica changed that the current event concerns.
func (e *Simulation) syncTouched() {
	p := e.changed
	e.sync(p)
	if e.locked {
		for _, rank := range p.Group() {
			e.sync(e.replicas[rank.Index()])
		}
	}
	if p.leaving && e.lifecycle.allDrained(p.Index()) {
		e.lifecycle.drained(int(e.lifecycle.lead[p.Index()]))
	}
	e.changed = nil
}

// quiet reports whether no request is in the system or will come.
func (e *Simulation) quiet() bool {
	_, more := e.src.Peek()
	return e.levels.System == 0 && !more
}

// dueNow reports whether a request arrives or reaches a queue at the current instant.
func (e *Simulation) dueNow() bool {
	if e.frontEnd.next() <= e.now {
		return true
	}
	return e.nextSent <= e.now
}

// look asks the source for the instant of its next request. It is called after each change of the source.
func (e *Simulation) look() {
	e.nextSent = clock.Never
	if at, ok := e.src.Peek(); ok {
		e.nextSent = at
	}
}

// tell tells the source that a request has ended for its client, and reports whether the client sends it again.
func (e *Simulation) tell(r *workload.Request, end workload.End) (again bool) {
	again = e.src.Done(r, end)
	e.look()
	return again
}

// end checks the final state when no event is left.
func (e *Simulation) end() (done bool, err error) {
	switch {
	case e.levels.Held > 0:
		return false, ErrStranded
	case e.levels.Waiting > 0:
		return false, errStuck
	}
	if !e.check {
		return true, nil
	}
	for _, r := range e.replicas {
		if (e.levels != event.Levels{} || r.KV().Used() != 0 || r.KV().Shared() != 0) {
			return false, r.Broken("nothing is left to do, but %+v and %d blocks are in use", e.levels, r.KV().Used())
		}
	}
	if s := e.disaggregated; s != nil && len(s.outputs)+len(s.first) > 0 {
		return false,
			fmt.Errorf("sim: broken invariant at %v: nothing is left to do, but %d prefills and %d handovers remain",
				e.now, len(s.outputs), len(s.first))
	}
	return true, e.transfers.Check(e.now)
}

// stop commits what has begun by the instant at, so that observers get it.
func (e *Simulation) stop(at clock.Time) {
	e.now = at
	for _, r := range e.replicas {
		r.Stop(at)
	}
	if e.caches.observed {
		e.reportCaches(at)
	}
}
