// Package sim is the simulator proper: an event loop over a replica of a serving engine, fed by a
// [clifftop/workload.Source] and watched by an [Observer].
//
// It is deterministic and single-threaded, and does no I/O. Its time is integer, so that results are
// equal to the last bit whatever the platform, the observer, or the number of iterations taken at
// once. Package [clifftop/sim/simtest] holds a plain per-sequence stepper that gives the same
// results slowly.
package sim

import (
	"context"
	"errors"
	"fmt"

	"clifftop/sim/clock"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Engine runs one scenario.
//
// At one instant events happen in this order: departures of clients and their aborts, arrivals, requests that reach
// the engine's queue, the replica's boundary. Events of one kind go by request ID.
type Engine struct {
	cfg     Config
	src     workload.Source
	obs     Observer
	steps   StepObserver // obs, when it wants every step
	replica *Replica

	// Horizon is the instant at which the run stops if it has not drained before.
	Horizon clock.Time

	now      clock.Time
	levels   Levels
	reported Levels

	arriving   workload.Request
	frontend   heap // requests on their way to the queue, by instant and ID
	pending    []workload.Request
	vacant     []int32
	departures heap // deadlines of clients, and their aborts
	patient    map[int64]*patient
}

// NewEngine returns an engine that is ready to run. The configuration is validated; its scheduler must
// not be in use by another engine.
func NewEngine(cfg Config, src workload.Source, obs Observer) (*Engine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, src: src, obs: obs, Horizon: clock.Never, patient: make(map[int64]*patient)}
	if s, ok := obs.(StepObserver); ok {
		e.steps = s
		cfg.MaxSpan = 1
	}
	e.replica = newReplica(cfg, e)
	return e, nil
}

// Now is the instant up to which the run has come.
func (e *Engine) Now() clock.Time { return e.now }

// InSystem is the number of requests that were sent and have not ended.
func (e *Engine) InSystem() int { return e.levels.System }

// ErrStuck means that requests wait while nothing runs, and nothing will change that.
var ErrStuck = errors.New("sim: requests wait that the policy never admits")

// ctxEvery is the number of events between looks at the context.
const ctxEvery = 1 << 12

// Run runs until the source is exhausted and the system empty, the horizon is reached, or ctx is done;
// in the last case it returns the context's error, and what was observed up to then is
// valid.
func (e *Engine) Run(ctx context.Context) error {
	for n := 0; ; n++ {
		if n%ctxEvery == 0 && ctx.Err() != nil {
			e.stop(e.now)
			return ctx.Err()
		}
		done, err := e.event()
		if err != nil {
			e.stop(e.now)
			return err
		}
		if done {
			return e.src.Err()
		}
	}
}

// event handles the next event. done means that there was none.
func (e *Engine) event() (done bool, err error) {
	const (
		arrival = iota
		departure
		queueing
		boundary
	)
	at, kind := e.replica.next, boundary
	if len(e.frontend) > 0 && clock.Time(e.frontend[0].key) <= at {
		at, kind = clock.Time(e.frontend[0].key), queueing
	}
	if t, ok := e.src.Peek(); ok && t <= at {
		at, kind = t, arrival
	}
	if len(e.departures) > 0 && clock.Time(e.departures[0].key) <= at {
		at, kind = clock.Time(e.departures[0].key), departure
	}
	if at >= e.Horizon {
		if at == clock.Never {
			return e.drained()
		}
		e.stop(e.Horizon)
		return true, nil
	}
	if at > clock.Time(clock.MaxRun) {
		return false, fmt.Errorf("sim: the run goes past %.0f days; slice or speed up the workload", clock.MaxRun.Seconds()/86400)
	}
	if at < e.now {
		return false, e.replica.broken("time goes back to %v", at)
	}
	e.now = at
	switch kind {
	case arrival:
		e.arriving = e.src.Next()
		err = e.arrive(&e.arriving)
	case departure:
		e.depart(e.departures.pop())
	case queueing:
		e.reachQueue(e.frontend.pop())
	case boundary:
		err = e.replica.boundary()
	}
	e.levels.Blocked = sched.NotBlocked
	if e.levels.Waiting > 0 {
		e.levels.Blocked = e.replica.it.blocked
	}
	if !e.levels.equal(&e.reported) {
		e.reported = e.levels
		e.obs.Levels(at, &e.reported)
	}
	return false, err
}

// dueNow reports whether a request arrives or reaches the queue at this very instant.
func (e *Engine) dueNow() bool {
	if len(e.frontend) > 0 && clock.Time(e.frontend[0].key) <= e.now {
		return true
	}
	at, ok := e.src.Peek()
	return ok && at <= e.now
}

func (e *Engine) drained() (done bool, err error) {
	if e.levels.Waiting > 0 {
		return false, ErrStuck
	}
	if r := e.replica; e.cfg.Check && (e.levels != Levels{} || r.used() != 0 || r.shared() != 0) {
		return false, r.broken("nothing is left to do, but %+v and %d blocks are in use", e.levels, r.used())
	}
	return true, nil
}

// stop commits what has begun by the instant at, so that the observer knows it.
func (e *Engine) stop(at clock.Time) {
	e.now = at
	e.replica.stop(at)
}

// visible is the instant at which a request reaches the engine's queue.
func (e *Engine) visible(r *workload.Request) clock.Time {
	return r.Arrival.Add(e.cfg.NetworkIn + e.cfg.Frontend + clock.Duration(r.InputTokens)*e.cfg.FrontendPerToken)
}

// outputOf is the number of tokens that the answer to r will have: its length, cut at the longest
// sequence that the model takes.
func (e *Engine) outputOf(r *workload.Request) int32 {
	return min(r.OutputTokens, e.cfg.MaxModelLen-r.InputTokens)
}

// declaredOf is the longest answer to r that the engine has to expect.
func (e *Engine) declaredOf(r *workload.Request) int32 {
	return min(max(r.OutputTokens, e.cfg.MaxTokens), e.cfg.MaxModelLen-r.InputTokens)
}

// neverFits reports whether r can never be served.
func (e *Engine) neverFits(r *workload.Request) bool {
	return r.InputTokens >= e.cfg.MaxModelLen ||
		e.replica.pagesFor(e.cfg.most(r.InputTokens, e.declaredOf(r))) > e.cfg.UsableBlocks()
}

// arrive takes in a request that its client has just sent.
func (e *Engine) arrive(r *workload.Request) error {
	if r.Arrival < e.now || r.InputTokens < 1 || r.OutputTokens < 1 {
		return fmt.Errorf("sim: request %d: arrival %v at %v with %d input and %d output tokens is not valid",
			r.ID, r.Arrival, e.now, r.InputTokens, r.OutputTokens)
	}
	e.obs.Arrived(e.now, r)
	fits := !e.neverFits(r)
	if !fits && e.cfg.NetworkIn == 0 {
		e.refuse(r, NeverFits)
		return nil
	}
	e.levels.System++
	leaves := mayLeave(r)
	if leaves {
		e.watch(r)
	}
	at := e.visible(r)
	if !fits {
		at = r.Arrival.Add(e.cfg.NetworkIn)
	}
	if at > e.now || leaves || len(e.frontend) > 0 || e.cfg.limited() {
		e.frontend.push(entry{int64(at), r.ID, e.hold(r)})
		return nil
	}
	e.join(r)
	return nil
}

// refuse rejects a request now, whose client may have left.
func (e *Engine) refuse(r *workload.Request, why Refusal) {
	rec := unserved(r)
	rec.Outcome, rec.Refusal, rec.Released, rec.Ending = Rejected, why, e.now, why.ending()
	p, waits := e.patient[r.ID]
	if waits {
		p.note(&rec)
		delete(e.patient, r.ID)
	}
	if rec.Left == clock.Never {
		rec.Again = e.src.Done(r, workload.End{How: rec.Ending, At: e.now.Add(e.cfg.NetworkOut), First: clock.Never})
	}
	e.obs.Finished(&rec)
}

// hold keeps a request that is in the front end.
func (e *Engine) hold(r *workload.Request) int32 {
	if n := len(e.vacant); n > 0 {
		i := e.vacant[n-1]
		e.vacant = e.vacant[:n-1]
		e.pending[i] = *r
		return i
	}
	e.pending = append(e.pending, *r)
	return int32(len(e.pending) - 1)
}

// reachQueue hands a request from the front end to the replica.
func (e *Engine) reachQueue(x entry) {
	r := &e.pending[x.ref]
	e.vacant = append(e.vacant, x.ref)
	if mayLeave(r) {
		p, ok := e.patient[r.ID]
		if !ok {
			return // its client left
		}
		p.frontend = false
	}
	if e.cfg.NetworkIn > 0 && e.neverFits(r) {
		e.levels.System--
		e.refuse(r, NeverFits)
		return
	}
	e.join(r)
}

// join puts a request into the replica's queue, unless it is busy.
func (e *Engine) join(r *workload.Request) {
	if !e.replica.busy() {
		e.replica.enqueue(e.now, r)
		return
	}
	e.levels.System--
	e.refuse(r, Busy)
}

// unserved is the record of a request that was never admitted.
func unserved(r *workload.Request) Record {
	return Record{
		Request: *r,
		Queued:  clock.Never, Scheduled: clock.Never, FirstToken: clock.Never, LastToken: clock.Never,
		ClientFirst: clock.Never, ClientLast: clock.Never, Left: clock.Never,
	}
}

// ended tells that a request in the system has ended. A client that leaves knew it when it left; the
// others learn it with the last token.
func (e *Engine) ended(rec *Record) {
	e.levels.System--
	if mayLeave(&rec.Request) {
		delete(e.patient, rec.Request.ID)
	}
	e.obs.Finished(rec)
}

// answered tells the source that a client who has not left has its whole answer, as of rec.
func (e *Engine) answered(rec *Record) {
	if mayLeave(&rec.Request) {
		delete(e.patient, rec.Request.ID)
	}
	if rec.Left == clock.Never {
		rec.Again = e.src.Done(&rec.Request, workload.End{At: rec.ClientLast, First: rec.ClientFirst, Tokens: e.outputOf(&rec.Request)})
	}
}
