package engine

import (
	"clifftop/sim/clock"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Engine is one serving engine: the waiting queue, the running batch, the KV pool, the policy and
// the GPU's step timer.
//
// It moves from boundary to boundary. At a boundary it processes the oldest iteration in flight and
// composes the next one. When that is a plain decode of the whole cohort, it promises to repeat it for
// as long as nothing can change, and the next boundary is the end of the promise; an event in
// between may cut the promise at an iteration, never in one. What was promised is committed
// when the boundary comes.
type Engine struct {
	env
	timeline
	requests
	clientSide
	retired bool // another engine has taken its place

	seqs    slab
	running runningBatch
	decoders
	space
	*connector // to KV beyond the pool; nil where there is none
	drafter    drafter

	it batchBuilder
	gpu
	reporter
}

// New makes an engine of a valid configuration.
func New(cfg Config, in Setup) *Engine {
	r := &Engine{
		env: env{cfg: cfg, host: in.Host, obs: in.Observers, transfers: in.Transfers, index: in.Index},
		gpu: gpu{lastComposed: -1}, reporter: reporter{detailed: in.Observers.WantsSteps()},
	}
	r.timeline = timeline{env: &r.env, depth: 1, next: clock.Never, maxSpan: cfg.MaxSpan}
	if cfg.AsyncScheduling && cfg.Stages <= 1 {
		r.depth = 2
	}
	if r.maxSpan == 0 {
		r.maxSpan = 1 << 30
	}
	r.most = r.depth
	r.space.init(r)
	r.cohort.init(&r.seqs, cfg.BlockSize, r.space.caching || cfg.mostCharged() > 0)
	r.running.seqs, r.running.first, r.running.last = &r.seqs, none, none
	r.it.init(r)
	r.inFlight = iterationRing{ring: make([]iteration, max(cfg.Stages, 2)+1), cfg: &r.cfg, seqs: &r.seqs}
	if cfg.Stages > 1 {
		r.pipe = newPipeline(r)
		r.inFlight.pipe = r.pipe
	}
	r.connector = newConnector(r, in.Before)
	r.clientSide.e = r
	r.requests = requests{env: &r.env, seqs: &r.seqs, space: &r.space, queue: newQueue(cfg.Order)}
	r.decoders.init(r)
	r.drafter = newDrafter(cfg.Speculative)
	if old := in.Before; old != nil {
		old.retired = true
		r.levels, r.fault = old.levels, old.fault
		r.gpu.slowdown, r.link, r.gpu.free, r.gpu.remainder = old.gpu.slowdown, old.link, old.gpu.free,
			old.gpu.remainder
	}
	return r
}

// Blocked says why the head of the queue was not admitted at the last scheduling.
func (r *Engine) Blocked() sched.Cause { return r.it.blocked }

// Group is the engines with which this one iterates in lock step, itself included; nil if it iterates alone.
func (r *Engine) Group() []*Engine {
	if r.lock == nil {
		return nil
	}
	return r.lock.ranks
}

// Enqueue puts a request into the waiting queue at the instant at, which is not past the next
// boundary.
func (r *Engine) Enqueue(at clock.Time, req *workload.Request) {
	r.connector.noteHandoff(req)
	if r.queue.push(req, r.keyOf(req, none)) || r.it.looked {
		r.cut(at)
	}
	r.levels.Waiting++
	r.uncomputed += int64(req.InputTokens)
}

// Boundary does what is due at the instant r.next. When requests have ended, and their clients send the
// next ones at once, it leaves the composition of the next iteration to a second call at the same
// instant, so that these find room in it.
func (r *Engine) Boundary() error {
	if r.lock != nil {
		return r.lock.boundary()
	}
	r.now = r.next
	if r.interrupted() {
		r.processAhead()
		return nil
	}
	if !r.answered {
		r.results()
		if r.answered && r.host.ArrivalDue() {
			return nil
		}
	}
	r.answered = false
	for r.inFlight.n < r.most && r.ahead.N == 0 {
		if !r.compose() && !r.again() {
			break
		}
	}
	return r.plan()
}

// again reports whether a composition that came out empty is made again: sequences were preempted, and nothing else
// would ever change that.
func (r *Engine) again() bool { return r.inFlight.n == 0 && r.it.preempted > 0 }

// plan finds the next boundary.
func (r *Engine) plan() error {
	switch {
	case r.ahead.N > 0:
		r.next = r.spanEnd()
	case r.inFlight.n > 0:
		r.next = r.inFlight.at(0).end
	default:
		r.next = clock.Never
	}
	if r.fault == nil && r.cfg.Check {
		return check(r)
	}
	return r.fault
}

// results commits what was promised and processes what has happened by now.
func (r *Engine) results() {
	if r.ahead.N > 0 {
		r.commit()
	}
	if len(r.aborts) > 0 {
		r.applyAborts()
	}
	if r.inFlight.n > 0 && r.inFlight.at(0).end == r.now {
		r.process(r.inFlight.at(0))
		r.inFlight.pop()
	}
	r.connector.receive()
}

// compose lets the policy compose an iteration and launches it. It reports whether there was anything
// to run.
func (r *Engine) compose() bool {
	if !r.decide() {
		return false
	}
	first, slope, n := r.gpu.pace(r)
	first = r.pipe.pass(first)
	if r.fault != nil {
		return false
	}
	r.launch(first, slope, r.it.alike(n))
	return true
}

// decide lets the policy compose an iteration. It reports whether there is anything to run.
func (r *Engine) decide() bool {
	it := &r.it
	it.begin(r.gpu.batches + 1)
	if r.cfg.Check {
		policyCheck{it}.schedule()
	} else {
		r.cfg.Scheduler.Schedule(it)
	}
	r.connector.flush()
	if r.fault != nil {
		return false
	}
	it.finish()
	return it.decodes > 0 || len(it.chunks) > 0
}

// alike is how many iterations, of at most n, will be like the one composed.
func (it *batchBuilder) alike(n int) int {
	if n > 1 && it.repeatable() {
		return it.horizon(n)
	}
	return 1
}

// launch promises n iterations like the one composed, and commits a single one.
func (r *Engine) launch(first, slope int64, n int) {
	it, p := &r.it, &r.ahead
	r.gpu.composing = r.now
	p.Start, p.Remainder = r.now, 0
	if r.gpu.free >= r.now {
		p.Start, p.Remainder = r.gpu.free, r.gpu.remainder
	}
	it.empty, it.leaving = it.emptyBlocks()
	p.First, p.Slope, p.N = first, slope, 1
	if n > 1 {
		p.N = clock.CapN(first, slope, n)
	}
	if p.N == 1 {
		r.commit()
	}
}
