package sim

import (
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/kv"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Replica is one serving engine: the waiting queue, the running batch, the KV pool, the policy and
// the GPU's step timer.
//
// It moves from boundary to boundary. At a boundary it processes the oldest iteration in flight and
// composes the next one. When that is a plain decode of the whole cohort, it promises to repeat it for
// as long as nothing can change, and the next boundary is the end of the promise; an event in
// between may cut the promise at an iteration, never in one. What was promised is committed
// when the boundary comes.
type Replica struct {
	cfg   Config
	host  *Engine
	depth int // iterations in flight

	pool    *kv.Pool
	holes   *kv.Holes // of a contiguous pool, beside pool, which counts
	caching bool
	radix   *kv.Radix // takes the place of the pool, or is nil
	queue   queue
	seqs    slab
	cohort  cohort

	first, last int32 // the running batch, in order of admission
	running     int
	serials     int64
	ranks       ranks
	slots       int32   // slots given out
	prefills    []int32 // running sequences in prefill, in running order
	groups      groups
	drafter     drafter
	speculating int   // sequences that decode with drafts
	lagging     int   // decoding sequences that missed the last step of the others
	windowed    int   // blocks charged for windowed layers
	promised    int   // blocks promised and not taken
	reserves    bool  // sequences have reserved blocks
	uncomputed  int64 // prompt tokens of waiting and running requests that no iteration was given
	hosted      int   // blocks in host memory
	moved       int   // blocks copied to and from there since the last launch
	remaining   int64 // answer tokens that running sequences may still be given, by what clients declared
	longest     int32 // at least the most that one of them may
	answers     int   // running sequences whose answer others may come to share

	now       clock.Time
	next      clock.Time // next boundary
	answered  bool       // requests have ended at the boundary, and the next iteration is not composed
	fault     error
	inFlight  flights
	gpuFree   clock.Time // end of the last iteration
	remainder int64      // femtoseconds past gpuFree
	batches   int64      // iterations launched or promised and committed

	decodeSteps int64 // those of them in which a sequence decoded
	departures  int64 // times that a sequence left the running batch

	it       composition
	released int               // blocks let go since the promise was made
	promise  clock.Progression // N iterations like the one composed; 0 when none is open
	batch    model.Batch
	span     Span
	aborts   []int64
	look     lookup
	maxSpan  int
	step     Step // scratch
}

func newReplica(cfg Config, host *Engine) *Replica {
	r := &Replica{cfg: cfg, host: host, depth: 1, next: clock.Never, caching: cfg.PrefixCaching && !cfg.Radix, maxSpan: cfg.MaxSpan}
	if cfg.AsyncScheduling {
		r.depth = 2
	}
	if r.maxSpan == 0 {
		r.maxSpan = 1 << 30
	}
	if r.caching {
		r.pool = kv.NewCache(cfg.UsableBlocks(), cfg.AppendUnkeyed)
	} else {
		r.pool = kv.NewCounter(cfg.UsableBlocks())
	}
	if cfg.Radix {
		r.radix = kv.NewRadix(cfg.UsableBlocks(), cfg.BlockSize)
	}
	if cfg.Contiguous {
		r.holes = kv.NewHoles(cfg.UsableBlocks())
	}
	r.cohort.init(cfg.BlockSize, r.caching || cfg.Window.Layers > 0)
	r.first, r.last = int32(sched.None), int32(sched.None)
	r.it.r = r
	r.queue = newQueue(cfg.Order)
	r.drafter = newDrafter(cfg.Speculative)
	return r
}

func (r *Replica) seq(i int32) *sequence { return r.seqs.items[i] }

// free is the number of KV blocks that are neither referenced, nor owed by the cohort, nor charged for
// windowed layers.
func (r *Replica) free() int { return r.poolFree() - r.cohort.debt - r.windowed }

func (r *Replica) used() int { return r.pool.Usable() - r.free() }

// blocksFor is the number of blocks that hold the given tokens.
func (r *Replica) blocksFor(tokens int32) int {
	return int((int64(tokens) + int64(r.cfg.BlockSize) - 1) / int64(r.cfg.BlockSize))
}

// pagesFor is what a sequence of the given tokens takes from the pool: its blocks, and the charge
// for windowed layers.
func (r *Replica) pagesFor(tokens int32) int {
	blocks := r.blocksFor(tokens)
	return blocks + r.cfg.Window.Extra(blocks)
}

// enqueue puts a request into the waiting queue at the instant at, which is not past the next
// boundary.
func (r *Replica) enqueue(at clock.Time, req *workload.Request) {
	if r.queue.push(req, r.keyOf(req, none)) || r.it.looked {
		r.cut(at)
	}
	r.host.levels.Waiting++
	r.uncomputed += int64(req.InputTokens)
}

// busy reports whether the queue takes nobody in.
func (r *Replica) busy() bool {
	l, most := &r.host.levels, r.cfg.MaxQueuedRequests
	return most > 0 && l.Waiting+l.Running >= most ||
		r.cfg.MaxQueuedTokens > 0 && r.uncomputed >= r.cfg.MaxQueuedTokens
}

// abort marks a request whose client left at the instant at; it goes at the next boundary.
func (r *Replica) abort(at clock.Time, id int64) {
	r.aborts = append(r.aborts, id)
	r.cut(at)
}

// cut makes the first boundary at or after t the next one.
func (r *Replica) cut(t clock.Time) {
	switch {
	case r.answered:
	case r.inFlight.n == 0 && r.promise.N == 0:
		r.next = min(r.next, t)
	case r.promise.N > 1:
		// Iteration k ≥ 1 is composed when iteration k-depth ends.
		ended := r.promise.FirstEndAtOrAfter(t)
		r.promise.N = min(max(ended+r.depth-1, 1), r.promise.N)
		r.next = r.promiseEnd()
	}
}

// promiseEnd is the boundary at which the promise is used up, or, before it, that at which the
// iteration in flight ahead of it has results.
func (r *Replica) promiseEnd() clock.Time {
	if r.interrupted() {
		return r.inFlight.at(0).end
	}
	return r.promise.End(r.promise.N + 1 - r.depth)
}

// interrupted reports whether results are due while the promise goes on: those of the iteration in
// flight ahead of it, at the boundary where the promise's second iteration is composed.
func (r *Replica) interrupted() bool {
	return r.promise.N > 1 && r.inFlight.n > 0 && r.inFlight.at(0).eventful()
}

// interlude processes results that leave the promise as it is.
func (r *Replica) interlude() {
	f := r.inFlight.at(0)
	used := r.used()
	r.process(f)
	r.released = used - r.used()
	r.answered = false
	f.clear()
	r.next = r.promiseEnd()
}

// stop commits the promised iterations that are composed before the instant at.
func (r *Replica) stop(at clock.Time) {
	if r.promise.N > 0 {
		r.cut(at)
		r.commit()
	}
}

// boundary does what is due at the instant r.next. When requests have ended, and their clients send the
// next ones at once, it leaves the composition of the next iteration to a second call at the same
// instant, so that these find room in it.
func (r *Replica) boundary() error {
	r.now = r.next
	if r.interrupted() {
		r.interlude()
		return nil
	}
	if !r.answered {
		r.results()
		if r.answered && r.host.dueNow() {
			return nil
		}
	}
	r.answered = false
	for r.inFlight.n < r.depth && r.promise.N == 0 {
		if r.compose() {
			continue
		}
		if r.inFlight.n > 0 || r.it.preempted == 0 {
			break
		}
	}
	switch {
	case r.promise.N > 0:
		r.next = r.promiseEnd()
	case r.inFlight.n > 0:
		r.next = r.inFlight.at(0).end
	default:
		r.next = clock.Never
	}
	if r.fault == nil && r.cfg.Check {
		return r.check()
	}
	return r.fault
}

// results commits what was promised and processes what has happened by now.
func (r *Replica) results() {
	if r.promise.N > 0 {
		r.commit()
	}
	if len(r.aborts) > 0 {
		r.applyAborts()
	}
	if r.inFlight.n > 0 && r.inFlight.at(0).end == r.now {
		r.process(r.inFlight.at(0))
		r.inFlight.pop()
	}
}

// compose lets the policy compose an iteration and launches it. It reports whether there was anything
// to run.
func (r *Replica) compose() bool {
	it := &r.it
	it.begin(r.batches + 1)
	if r.cfg.Check {
		audit{it}.schedule()
	} else {
		r.cfg.Scheduler.Schedule(it)
	}
	if r.fault != nil {
		return false
	}
	it.finish()
	if it.decodes == 0 && len(it.chunks) == 0 {
		return false
	}

	start, remainder := r.now, int64(0)
	if r.gpuFree >= r.now {
		start, remainder = r.gpuFree, r.remainder
	}
	first, slope, n := r.pace()
	if r.fault != nil {
		return false
	}
	it.empty, it.leaving = it.emptyBlocks()
	p := &r.promise
	p.Start, p.Remainder, p.First, p.Slope, p.N = start, remainder, first, slope, 1
	if n > 1 && r.repeatable() {
		p.N = r.horizon(n)
	}
	if p.N == 1 {
		r.commit()
	}
	return true
}

// repeatable reports whether the iteration just composed would be composed again and again.
func (r *Replica) repeatable() bool {
	if !r.it.plain() || r.inFlight.n < r.depth-1 || r.maxSpan == 1 || r.cohort.growing > 0 {
		return false
	}
	if r.inFlight.n == 0 {
		return true
	}
	// Results of the iteration ahead change nothing for the cohort, unless somebody waits for the
	// room that they leave, or reads blocks that they share.
	f := r.inFlight.at(0)
	return !f.partial && len(f.lasts) == 0 &&
		(len(f.finishes) == 0 || r.queue.len() == 0 && r.shared() == 0) &&
		len(f.computed) == 0 // or they enter the tree meanwhile
}

// horizon is the number of iterations, at most n, that will be like the one just composed.
func (r *Replica) horizon(n int) int {
	c := &r.cohort
	n = min(n, r.maxSpan, r.cfg.Scheduler.Repeats(&r.it))
	if r.it.asked && r.inFlight.n > 0 && len(r.inFlight.at(0).finishes) > 0 {
		return 1 // the policy may do otherwise when they have left
	}
	n = int(min(int64(n), r.nextFinish()-c.steps+1, r.nextRefile()-c.steps+1))
	if n > 1 {
		free := r.free()
		if r.holes != nil {
			free = 0 // nobody grows out of a hole
		}
		n = 1 + c.takes.within(c.steps, free, n-1)
	}
	if n > 1 && r.queue.fair != nil {
		n = r.queue.fair.sameHead(n)
	}
	return clock.CapN(r.promise.First, r.promise.Slope, n)
}

// nextFinish is the step at which the next member of the cohort issues its last token.
func (r *Replica) nextFinish() int64 {
	h := &r.cohort.ends
	for {
		top := &(*h)[0]
		if s := r.seq(top.ref); s.phase == decoding && s.serial == top.tie && s.ends == top.key {
			return top.key
		}
		h.pop()
	}
}

// commit makes the promised iterations happen: it advances the cohort, tells the observer and puts
// the last iterations in flight.
func (r *Replica) commit() {
	p, c, it := r.promise, &r.cohort, &r.it
	r.promise.N = 0
	wait := clock.Duration(0)
	if r.batches > 0 {
		wait = p.Start.Sub(r.gpuFree)
	}
	r.report(p, r.used()+r.released, wait)
	r.released = 0
	if more := p.N - 1; more > 0 {
		blocks := c.takes.over(c.steps, more)
		if r.caching {
			c.debt += blocks
		} else {
			r.takeCount(blocks)
		}
		if c.promised.members > 0 {
			r.promised -= c.promised.over(c.steps, more)
		}
		if c.fills.members > 0 {
			c.empty -= c.fills.over(c.steps, more)
		}
		c.steps += int64(more)
		c.context += int64(more) * int64(c.size)
		if r.inFlight.n > 0 {
			older := r.inFlight.at(0)
			older.end, older.number, older.stepped = p.End(p.N-1), r.batches+int64(more), true
		}
	}
	f := it.flight
	f.end, f.number = p.End(p.N), r.batches+int64(p.N)
	if it.stepped {
		r.groups = r.groups[:0]
	} else {
		r.groups.hold(f, c.size-r.lagging, it.joined, r.batches, r.gpuFree)
	}
	r.remaining -= int64(it.decodes)*int64(p.N) + int64(len(f.firsts)-it.resumed)
	r.batches += int64(p.N)
	if it.decodes > 0 {
		r.decodeSteps += int64(p.N)
	}
	r.gpuFree, r.remainder = p.End(p.N), p.EndRemainder(p.N)
	r.inFlight.n++
	it.reportGaps(p.End(1))
	if r.cfg.Speculative.On() {
		r.launched(f)
	}
	r.retire(f)
	if r.host.steps != nil {
		it.reportStep()
	}
}

// retire takes the members that issue their last token in flight f out of the cohort, and merges
// them with the completed prefills that end there, in running order.
func (r *Replica) retire(f *flight) {
	c := &r.cohort
	for len(c.ends) > 0 && c.ends[0].key <= c.steps {
		e := c.ends.pop()
		s := r.seq(e.ref)
		if s.phase != decoding || s.serial != e.tie || s.ends != e.key {
			continue
		}
		if !r.it.ranked && s.issued+int32(c.steps-s.joined) == s.output {
			s.lastRank = r.ranks.upTo(s.slot) + int32(len(f.finishes)-len(f.lasts))
		}
		if r.surprises(f, e.ref, s.issued+int32(c.steps-s.joined)) {
			s.ends++
			c.ends.push(entry{s.ends, s.serial, e.ref})
			f.finishes = append(f.finishes, e.ref)
			continue
		}
		r.leaveCohort(e.ref)
		f.finishes = append(f.finishes, e.ref)
	}
	for _, i := range f.firsts {
		s := r.seq(i)
		if r.surprises(f, i, s.issued) || s.phase == finishing {
			f.finishes = append(f.finishes, i)
		}
	}
	for _, i := range f.finishes {
		s := r.seq(i)
		s.lastBatch, s.lastEnd = f.number, f.end
	}
	if (r.it.slow || r.it.mixed) && len(f.firsts) > 0 || len(f.verified) > 0 {
		r.sortBySerial(f.finishes)
	}
}

// surprises notes that flight f completes the answer of sequence i, which has issued so many tokens, if that
// is so and the engine cannot know it before the token is there.
func (r *Replica) surprises(f *flight, i, issued int32) bool {
	s := r.seq(i)
	if s.slots == s.output || issued != s.output {
		return false
	}
	f.lasts = append(f.lasts, i)
	return true
}

func (r *Replica) sortBySerial(list []int32) {
	for i := 1; i < len(list); i++ {
		for j := i; j > 0 && r.seq(list[j]).serial < r.seq(list[j-1]).serial; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
}

// report tells the observer of the iterations of p, in parts that do not cross its edges. used is the
// number of blocks referenced in iteration 0; released ones are gone in iteration 1.
func (r *Replica) report(p clock.Progression, used int, wait clock.Duration) {
	it, c, s := &r.it, &r.cohort, &r.span
	step, context := c.steps, it.context
	s.Wait, s.Decodes, s.Gaps, s.FirstTokens = wait, it.decodes, it.gaps, len(it.flight.firsts)-it.resumed
	s.PrefillTokens, s.RecomputedTokens, s.Shared = it.prefill, it.recomputed, r.batch.SharedTokens
	s.PaddedRows, s.PaddedTokens, s.PaddedContext = it.padRows, it.padTokens, it.padContext
	s.Drafts, s.Accepted, s.Discarded = it.drafts, it.accepted, it.discarded
	s.SwappedBlocks = r.moved
	r.moved = 0
	for {
		n := p.N
		if r.released > 0 || it.leaving > 0 {
			n = 1
		}
		if edge := r.host.obs.Edge(); n > 1 && p.End(n) > edge {
			n = p.FirstEndAtOrAfter(edge)
			if p.End(n) > edge {
				n--
			}
			n = max(n, 1)
		}
		s.Start, s.Remainder, s.First, s.Slope, s.N = p.Start, p.Remainder, p.First, p.Slope, n
		s.Context = context
		if n == 1 {
			s.BlockFemtos = Mul64(uint64(used), uint64(p.First))
		} else {
			s.BlockFemtos = c.takes.femtos(used, &s.Progression, step)
			used += c.takes.over(step, n-1)
		}
		s.UsedBlocks = used
		it.reportEmpty(s, step)
		r.host.obs.Span(s)
		if n == p.N {
			return
		}
		used += c.takes.over(step+int64(n)-1, 1) - r.released
		if it.empty > 0 {
			it.empty -= c.fills.over(step+int64(n)-1, 1) + it.leaving
			it.leaving = 0
		}
		r.released = 0
		step += int64(n)
		context += int64(n) * int64(it.decodes)
		p = p.Tail(n)
		s.PaddedContext += int64(n) * int64(it.padRows)
		s.HostFemtos += int64(n) * s.HostSlope
		s.Wait, s.Gaps = 0, it.decodes
	}
}

// reportEmpty completes s by the blocks that hold nothing; step is the one that iteration 1 makes.
func (it *composition) reportEmpty(s *Span, step int64) {
	c := &it.r.cohort
	s.EmptyBlocks, s.EmptyFemtos = it.empty, Uint128{}
	if it.empty == 0 {
		return
	}
	s.EmptyFemtos = Mul64(uint64(it.empty), uint64(s.Femtos(s.N)))
	if s.N > 1 && c.fills.members > 0 {
		s.EmptyFemtos = s.EmptyFemtos.Sub(c.fills.femtos(0, &s.Progression, step))
		it.empty -= c.fills.over(step, s.N-1)
	}
	s.EmptyBlocks = it.empty
}
