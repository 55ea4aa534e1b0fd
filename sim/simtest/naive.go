package simtest

import (
	"cmp"
	"fmt"
	"slices"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Naive runs the engine described by cfg, sequence by sequence, until the source is exhausted and
// the system has drained. The scheduler must be a [*sched.VLLM]; only its knobs are used. Every
// iteration is reported as a span of its own, and in detail if obs is a [sim.StepObserver].
func Naive(cfg sim.Config, src workload.Source, obs sim.Observer) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	policy, ok := cfg.Scheduler.(*sched.VLLM)
	if !ok {
		return fmt.Errorf("the naive engine schedules like *sched.VLLM, not like %T", cfg.Scheduler)
	}
	n := &naive{cfg: cfg, policy: policy, src: src, obs: obs, pool: newPool(cfg.UsableBlocks(), cfg.AppendUnkeyed), depth: 1}
	n.steps, _ = obs.(sim.StepObserver)
	if cfg.AsyncScheduling {
		n.depth = 2
	}
	return n.run()
}

// naive is the state of a run.
type naive struct {
	cfg    sim.Config
	policy *sched.VLLM
	src    workload.Source
	obs    sim.Observer
	steps  sim.StepObserver // nil if obs is none
	depth  int              // how many iterations may be in flight

	frontEnd []*sequence // on their way to the queue, by (visible, ID)
	patient  []*sequence // those whose client may still leave, by (leaves, ID)
	left     []*sequence // those whose client has left since the last boundary
	waiting  []*sequence // the engine's queue
	running  []*sequence // the running batch
	system   int         // requests sent and not yet ended
	pool     *pool

	inFlight     []*iteration // oldest first
	launched     int          // iterations launched so far
	gpuFree      clock.Time   // end of the last one launched
	gpuRemainder int64        // femtoseconds past gpuFree
	blocked      sched.Cause  // why the last composition left the head of the queue
	preempted    []int64      // since the last launch
	told         sim.Levels   // the last levels reported
}

// sequence is a request and its state.
type sequence struct {
	rec sim.Record
	// visible is when it reaches the queue, leaves when its client leaves.
	visible, leaves clock.Time
	// prompt and answer are its lengths; the answer is cut at the longest sequence allowed.
	prompt, answer int32
	// keys are those of all blocks that it can fill; none without prefix caching.
	keys []uint64

	ended bool
	// scheduled and delivered are the answer tokens that were given to iterations, and those
	// whose iteration has been processed.
	scheduled, delivered int32
	// emissions: the serial number and the end of the iteration that gave its last token.
	lastIteration int
	lastEnd       clock.Time
	// highest is the largest number of computed tokens that it ever had.
	highest int32

	// The rest is as of the last admission.

	computed int32 // tokens whose KV is in the cache or scheduled to be
	blocks   []int // the block table
	windowed int   // blocks charged for windowed layers
	entered  int   // leading blocks that are in the prefix cache, or were taken from it
	produces bool  // has scheduled a token since, so that it is past its prefill
	decoding bool  // has been delivered a token since
}

// known is the number of tokens that the sequence has for sure.
func (s *sequence) known() int32 { return s.prompt + s.delivered }

// missing is the number of tokens that still have to be computed for the next token of the answer;
// 0 if all of the answer is scheduled.
func (s *sequence) missing() int32 {
	if s.scheduled == s.answer {
		return 0
	}
	return s.prompt + s.scheduled - s.computed
}

func (n *naive) run() error {
	for {
		end := clock.Never
		if len(n.inFlight) > 0 {
			end = n.inFlight[0].end
		}
		at := min(n.nextClientInstant(), end)
		if at == clock.Never {
			return n.src.Err()
		}
		n.clients(at)
		if at == end || len(n.inFlight) == 0 && len(n.waiting) > 0 {
			if err := n.boundary(at); err != nil {
				return err
			}
		}
		n.tellLevels(at)
	}
}

// nextClientInstant is the next instant at which a request is sent, leaves the front end or
// is given up.
func (n *naive) nextClientInstant() clock.Time {
	next := clock.Never
	if at, ok := n.src.Peek(); ok {
		next = at
	}
	if len(n.frontEnd) > 0 {
		next = min(next, n.frontEnd[0].visible)
	}
	if len(n.patient) > 0 {
		next = min(next, n.patient[0].leaves)
	}
	return next
}

// clients does all that clients and the front end do up to the instant at.
func (n *naive) clients(at clock.Time) {
	for {
		arrival, more := n.src.Peek()
		switch {
		case len(n.patient) > 0 && n.patient[0].leaves <= at:
			n.leave(n.patient[0])
		case more && arrival <= at:
			n.arrive(n.src.Next())
		case len(n.frontEnd) > 0 && n.frontEnd[0].visible <= at:
			s := n.frontEnd[0]
			n.frontEnd = n.frontEnd[1:]
			s.rec.Queued = s.visible
			n.enqueue(s)
		default:
			return
		}
	}
}

func (n *naive) arrive(r workload.Request) {
	n.obs.Arrived(r.Arrival, &r)
	delay := n.cfg.Frontend + clock.Duration(r.InputTokens)*n.cfg.FrontendPerToken
	s := &sequence{
		rec: sim.Record{
			Request: r, Queued: clock.Never, Scheduled: clock.Never, FirstToken: clock.Never, LastToken: clock.Never,
			ClientFirst: clock.Never, ClientLast: clock.Never, Released: clock.Never,
		},
		visible: r.Arrival.Add(delay), leaves: clock.Never,
		prompt: r.InputTokens, answer: min(r.OutputTokens, n.cfg.MaxModelLen-r.InputTokens),
	}
	n.system++
	// The last token of the answer is never computed.
	if s.answer < 1 || n.pagesFor(s.prompt+s.answer-1) > n.cfg.UsableBlocks() {
		s.rec.Refusal = sim.NeverFits
		n.finish(s, sim.Rejected, r.Arrival)
		n.src.Done(&s.rec.Request, r.Arrival)
		return
	}
	if n.cfg.PrefixCaching {
		walk := workload.NewBlockKeys(&s.rec.Request, n.cfg.BlockSize)
		for range (s.prompt + s.answer - 1) / n.cfg.BlockSize {
			key, _ := walk.Next()
			s.keys = append(s.keys, key)
		}
	}
	n.frontEnd = insert(n.frontEnd, s, func(a, b *sequence) int {
		return cmp.Or(cmp.Compare(a.visible, b.visible), cmp.Compare(a.rec.Request.ID, b.rec.Request.ID))
	})
	if r.Patience > 0 {
		s.leaves = r.Arrival.Add(r.Patience)
		n.patient = insert(n.patient, s, func(a, b *sequence) int {
			return cmp.Or(cmp.Compare(a.leaves, b.leaves), cmp.Compare(a.rec.Request.ID, b.rec.Request.ID))
		})
	}
}

// leave tells the source that the client of s leaves. The engine learns of it at the next boundary.
func (n *naive) leave(s *sequence) {
	n.patient = without(n.patient, s)
	if slices.Contains(n.frontEnd, s) {
		n.frontEnd = without(n.frontEnd, s)
		n.finish(s, sim.Cancelled, s.leaves)
	} else {
		n.left = append(n.left, s)
	}
	n.src.Done(&s.rec.Request, s.leaves)
}

// enqueue puts s where the policy wants a request that comes from the front end.
func (n *naive) enqueue(s *sequence) {
	if n.cfg.Order != nil {
		n.waiting = insert(n.waiting, s, compareUrgency)
	} else {
		n.waiting = append(n.waiting, s)
	}
}

// requeue puts s where the policy wants a request that was preempted.
func (n *naive) requeue(s *sequence) {
	if n.cfg.Order != nil {
		n.waiting = insert(n.waiting, s, compareUrgency)
	} else {
		n.waiting = slices.Insert(n.waiting, 0, s)
	}
}

// compareUrgency is negative when a goes before b under the priority policy.
func compareUrgency(a, b *sequence) int {
	p, q := &a.rec.Request, &b.rec.Request
	return cmp.Or(cmp.Compare(p.Priority, q.Priority), cmp.Compare(p.Arrival, q.Arrival), cmp.Compare(p.ID, q.ID))
}

// boundary is one turn of the engine's loop.
func (n *naive) boundary(at clock.Time) error {
	for _, s := range n.left {
		n.abort(s, at)
	}
	n.left = nil
	if len(n.inFlight) > 0 && n.inFlight[0].end == at {
		done := n.inFlight[0]
		n.inFlight = n.inFlight[1:]
		n.process(done)
	}
	n.clients(at) // an answer may make its client send the next request at once
	for len(n.inFlight) < n.depth {
		it := n.compose(at)
		if len(it.shares) > 0 {
			n.launch(it, at)
		} else if len(n.inFlight) > 0 || !it.preempts {
			break
		}
	}
	if len(n.inFlight) == 0 && len(n.waiting)+len(n.running) > 0 {
		return fmt.Errorf("at %v: %d requests wait and %d run, but nothing can be scheduled", at, len(n.waiting), len(n.running))
	}
	return nil
}

// abort removes s, whose client has left.
func (n *naive) abort(s *sequence, at clock.Time) {
	for _, it := range n.inFlight {
		for _, sh := range it.shares {
			if sh.seq == s && sh.emits {
				n.obs.Dropped(it.end, 1)
			}
		}
	}
	n.finish(s, sim.Cancelled, at)
}

// process delivers the tokens of an iteration that has ended.
func (n *naive) process(it *iteration) {
	rank := clock.Duration(0)
	for _, sh := range it.shares {
		if !sh.emits {
			continue
		}
		rank++
		s := sh.seq
		if s.ended {
			continue // its client has left
		}
		seen := it.end.Add(rank * n.cfg.StreamPerSequence)
		s.delivered++
		if s.delivered == 1 {
			s.rec.FirstToken, s.rec.ClientFirst = it.end, seen
		}
		if slices.Contains(n.running, s) {
			s.decoding = true
			n.enter(s, s.computed-(s.scheduled-s.delivered))
		}
		if s.delivered == s.answer {
			s.rec.LastToken, s.rec.ClientLast = it.end, seen
			n.finish(s, sim.Completed, it.end)
			n.src.Done(&s.rec.Request, seen)
		}
	}
}

// finish takes s out of wherever it is and reports how it ended.
func (n *naive) finish(s *sequence, how sim.Outcome, at clock.Time) {
	n.running = without(n.running, s)
	n.waiting = without(n.waiting, s) // also one that was preempted after its last token had been scheduled
	n.patient = without(n.patient, s)
	n.release(s)
	n.system--
	s.blocks, s.ended = nil, true
	s.rec.Outcome, s.rec.Released, s.rec.Tokens = how, at, s.delivered
	n.obs.Finished(&s.rec)
}

// tellLevels reports the levels if they have changed.
func (n *naive) tellLevels(at clock.Time) {
	now := sim.Levels{System: n.system, Waiting: len(n.waiting), Running: len(n.running)}
	for _, s := range n.running {
		if s.decoding {
			now.Decoding++
		}
	}
	if len(n.waiting) > 0 {
		now.Blocked = n.blocked
	}
	if now != n.told {
		n.told = now
		n.obs.Levels(at, &now)
	}
}

// insert puts s into the sorted list, behind its equals.
func insert(list []*sequence, s *sequence, compare func(a, b *sequence) int) []*sequence {
	i := 0
	for i < len(list) && compare(list[i], s) <= 0 {
		i++
	}
	return slices.Insert(list, i, s)
}

// without is the list without s.
func without(list []*sequence, s *sequence) []*sequence {
	return slices.DeleteFunc(list, func(x *sequence) bool { return x == s })
}
