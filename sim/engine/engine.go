// Package engine simulates one serving engine, which vLLM calls EngineCore: the waiting queue, the running batch, the
// KV cache and the iterations on the GPU. Package sim runs one engine per replica of a fleet.
//
// Start with plain.go. The plain cycle there is continuous batching as straight code: it composes the next iteration and
// plans how often that repeats (plain.go), commits it (plain_commit.go), and handles its results (plain_results.go). An
// [Engine] moves from one iteration boundary to the next (engine.go). The decoding sequences are a cohort (cohort.go):
// one counter of steps stands for all of them, so that no loop visits sequences while nothing changes.
//
// The general cycle composes what the plain one does not: iterations with optional parts, and those in which a request is
// preempted. It lets a policy of package sched compose through a view (batch_builder.go, batch_view.go, decode.go,
// admit.go), and has a commit (commit.go) and results (results.go) of its own. Both cycles work on the same state.
//
// KV in tiers and from other engines is the optional part in package connector: connector.go has its interface, and
// load.go the sequences that wait for it. Other optional parts each have a file: pipeline stages (pipeline.go),
// data-parallel ranks in lock step (lockstep.go), and speculative decoding (speculative.go, verify.go). The KV cache,
// prefix caching included, is package kv; space.go chooses its kind. The waiting queue is package queue, and the stream
// to the clients package delivery. The interface [Host] has what an engine needs of the fleet around it.
//
// The definition of what this package must compute is the naive engine of package simtest, which visits every sequence
// in every iteration. Random tests demand equal results.
package engine

import (
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/delivery"
	"clifftop/sim/kv"
	"clifftop/sim/queue"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Engine is one serving engine: the waiting queue, the running batch, the KV cache, the scheduling policy and the
// step times of the GPU. Each of these is a component with its own state and methods; the methods of Engine are those
// that need several components.
//
// An engine moves from one iteration boundary to the next. At a boundary it processes the oldest iteration in flight
// and composes the next one. If that is a plain decode step of the whole cohort, the engine plans a span: it repeats
// the iteration for as long as nothing can change, and the next boundary is the end of the span. An event may cut the
// span at an iteration boundary. At the next boundary the iterations of the span are committed.
type Engine struct {
	timeline
	requests
	clientSide

	seqs    slab
	running runningBatch
	decoders
	space   Space
	remote  remoteKV
	drafter drafter
	pipe    *pipeline // nil without pipeline parallelism

	plain  plainCycle
	effort Effort
	it     batchBuilder
	ends   sched.EndObserver // the scheduler, if it observes the ends of sequences, or nil
	gpu
	line     delivery.Line
	out      delivery.Output // of the composed iteration
	observed bool            // an observer wants every chunk
	reporter
	env
}

// New returns an engine. Its configuration must be valid.
func New(cfg Config, in Setup) *Engine {
	r := &Engine{
		env:      env{cfg: cfg, host: in.Host, obs: in.Observers, index: in.Index},
		gpu:      gpu{lastComposed: -1, deviates: model.ReadsDeviation(cfg.Timer)},
		reporter: reporter{detailed: in.Observers.WantsSteps()},
	}
	r.span.Replica, r.span.Plain = in.Index, true
	r.timeline = timeline{env: &r.env, depth: 1, next: clock.Never, maxSpan: cfg.MaxSpan}
	if cfg.AsyncScheduling && cfg.Stages <= 1 {
		r.depth = 2
	}
	if r.maxSpan == 0 {
		r.maxSpan = 1 << 30
	}
	r.plain = newPlainCycle(&r.cfg, in.Observers.WantsSteps() || in.Observers.WantsChunks())
	r.space.init(&r.cfg, &r.seqs, &r.cohort, r.depth > 1, r.plain.on)
	r.plain.blocks, _ = r.space.cache.(*kv.Counted)
	r.cohort.init(&r.seqs, cfg.BlockSize, r.space.hashed != nil || r.space.mostCharged > 0)
	r.running.seqs, r.running.first, r.running.last = &r.seqs, none, none
	r.it.init(r)
	r.inFlight = newIterationRing(max(r.depth, cfg.Stages), &r.cfg, &r.seqs)
	if cfg.Stages > 1 {
		r.maxSpan = 1
		r.pipe = newPipeline(cfg.Stages, cfg.BlockSize, &r.decoders)
		r.inFlight.berths = r.berths
	}
	if r.remote.connector = in.Connector; in.Connector != nil {
		r.space.writesBack = in.Connector.Attach(r.space.hashed)
	}
	r.observed = in.Observers.WantsChunks()
	r.line.Config = delivery.Config{Each: cfg.StreamPerSequence, Interval: int32(max(1, cfg.StreamInterval)),
		Staged: cfg.Stages > 1, Singly: r.observed, Check: cfg.Check}
	r.requests = requests{env: &r.env, seqs: &r.seqs, space: &r.space, queue: queue.New(cfg.Order),
		inbox: inbox{interval: cfg.RecvInterval}}
	r.decoders.init(r)
	if cfg.Speculative.Tokens > 0 {
		r.drafter = newDrafter(cfg.Speculative, r.depth > 1)
	}
	if old := in.Before; old != nil {
		r.levels, r.fault, r.effort = old.levels, old.fault, old.effort
		r.gpu.slowdown, r.link, r.gpu.free, r.gpu.remainder = old.gpu.slowdown, old.link, old.gpu.free,
			old.gpu.remainder
	}
	r.ends, _ = cfg.Scheduler.(sched.EndObserver)
	return r
}

// Blocked returns why the head of the queue was not admitted at the last composition.
func (e *Engine) Blocked() sched.Cause { return e.it.blocked }

// KV returns the KV of the engine.
func (e *Engine) KV() *Space { return &e.space }

// Group returns the engines that iterate in lock step with this one, itself included; nil if it iterates alone.
func (e *Engine) Group() []*Engine {
	if e.lock == nil {
		return nil
	}
	return e.lock.ranks
}

// Enqueue adds a request to the waiting queue at the instant at, which is not later than the next boundary.
func (e *Engine) Enqueue(at clock.Time, req *workload.Request) {
	if c := e.remote.connector; c != nil {
		c.Queued(req)
	}
	if e.space.forgets && e.needsNames(req) {
		e.keepNames()
	}
	if e.inbox.delays() {
		e.inbox.requests = append(e.inbox.requests, *req)
		if e.answered || e.ahead.N <= 1 {
			e.cutOwn(at)
		} else {
			e.cutTo(e.inbox.from(e.composedFrom(at)))
		}
	} else if e.queue.Push(req, e.keyOf(req, none)) || e.it.looked {
		e.cut(at)
	}
	e.levels.Waiting++
	e.uncomputed += int64(req.InputTokens)
}

// Boundary handles the events that are due at the next boundary. When requests have ended and their clients send the
// next ones at once, the next iteration is composed in a second call at the same instant, so that the new requests
// can be part of it.
func (e *Engine) Boundary() error {
	if e.lock != nil {
		return e.lock.boundary()
	}
	if e.now = e.next; e.inFlight.early {
		e.processAhead()
		return nil
	}
	if !e.answered {
		e.results()
		if e.answered && e.host.ArrivalDue() {
			return nil
		}
	}
	e.answered = false
	for e.inFlight.n < e.inFlight.most && e.ahead.N == 0 {
		if !e.compose() && !e.again() {
			break
		}
	}
	return e.plan()
}

// again reports whether to compose again after an empty composition: no iteration is in flight, and sequences were
// preempted, or requests have not been received.
func (e *Engine) again() bool {
	return e.inFlight.n == 0 && (e.it.preempted > 0 || len(e.inbox.requests) > 0)
}

// plan sets the next boundary, and returns the fault of the engine, if it has one.
func (e *Engine) plan() error {
	if !e.plain.last {
		e.queue.Restore()
	}
	switch {
	case e.ahead.N > 0:
		e.spanEnd()
	case e.inFlight.n > 0:
		e.next = e.inFlight.at(0).end
	default:
		e.next = clock.Never
	}
	if e.fault == nil && e.cfg.Check {
		return check(e)
	}
	return e.fault
}

// results commits the planned span, and processes client departures, the oldest iteration in flight and KV that has
// arrived.
func (e *Engine) results() {
	if e.ahead.N > 0 {
		e.commit()
	}
	if len(e.aborts) > 0 {
		e.applyAborts()
	}
	if e.inFlight.n > 0 {
		if f := e.inFlight.at(0); f.end == e.now {
			e.process(f)
			e.inFlight.pop()
		}
	}
	if e.remote.due {
		e.receiveKV()
	}
}

// composeGeneral lets the policy compose an iteration, which is not plain for a reason, and launches it. It reports
// whether the iteration has any tokens.
func (e *Engine) composeGeneral(why Reason) bool {
	e.effort.general(why)
	e.nameBlocks()
	if !e.decide() {
		return false
	}
	first, slope, n := e.pace()
	if e.fault != nil {
		return false
	}
	e.launch(first, slope, e.repeat(n))
	return true
}

// decide lets the policy compose an iteration, and reports whether it has any tokens.
func (e *Engine) decide() bool {
	it := &e.it
	e.plain.last, e.plain.goesOn = false, false
	e.receiveNew()
	if e.cfg.UnpredictedEnds && e.inFlight.n > 0 {
		e.space.kind.Tree.EnterUnfinished(&e.inFlight.at(0).chunks)
	}
	it.begin(e.gpu.batches + 1)
	if e.cfg.Check {
		policyCheck{it}.schedule()
	} else {
		e.cfg.Scheduler.Schedule(it)
	}
	if c := e.remote.connector; c != nil {
		c.Composed(e.now)
	}
	if e.fault != nil {
		return false
	}
	e.space.kind.Tree.Composed(it)
	it.finish()
	switch e.inbox.recent = noBatch; {
	case len(it.chunks) > 0:
		e.inbox.recent = otherBatch
	case it.decodes+it.behind > 0:
		e.inbox.recent = decodeBatch
	}
	return e.inbox.recent != noBatch
}

// launch plans a span of n iterations like the one composed. It commits a single iteration at once.
func (e *Engine) launch(first, slope int64, n int) {
	it, p := &e.it, &e.ahead
	e.gpu.composing = e.now
	p.Start, p.Remainder = e.now, 0
	if e.gpu.free >= e.now {
		p.Start, p.Remainder = e.gpu.free, e.gpu.remainder
	}
	it.empty, it.leaving = it.emptyBlocks()
	p.First, p.Slope, p.N = first, slope, 1
	if n > 1 {
		p.N = clock.CapN(first, slope, n)
	}
	if p.N == 1 {
		e.commit()
	}
}

// Drained reports whether a draining engine has no work left: it has no requests, no other engine will load the KV that
// it keeps, and all copies to persistent tiers are complete.
func (e *Engine) Drained() bool { return e.levels.System == 0 && e.remote.drained() }

// Halt commits the iterations that have begun by the instant at. After it the engine begins no iteration, and copies
// no KV to tiers.
func (e *Engine) Halt(at clock.Time) {
	e.answered = false
	e.Stop(at)
	e.now = at
	if c := e.remote.connector; c != nil {
		c.Halt()
	}
}

// CheckEmpty asserts, if invariants are checked, that an engine that has failed has no requests and no blocks in use.
func (e *Engine) CheckEmpty() {
	if e.cfg.Check && e.fault == nil {
		e.fault = (&checker{e: e}).checkEmpty()
	}
}
