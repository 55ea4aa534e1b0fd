package naive

import (
	"cmp"
	"fmt"
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Run runs the engine described by cfg, sequence by sequence, until the source is exhausted and the system is empty.
// The policy composes every iteration anew. Each one is reported as a span of its own, and in detail if obs is an
// [event.StepObserver].
func Run(cfg engine.Config, src workload.Source, obs event.Observer) error {
	return RunLifetime(cfg, src, obs, Lifetime{Crash: clock.Never})
}

// RunLifetime is [Run] for an engine that may be slow at times, and crash.
func RunLifetime(cfg engine.Config, src workload.Source, obs event.Observer, lifetime Lifetime) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	n := newEngine(cfg, src, obs, lifetime, new(Network))
	err := n.run()
	n.end()
	return err
}

// newEngine makes an engine whose KV transfers go over a network.
func newEngine(cfg engine.Config, src workload.Source, obs event.Observer, lifetime Lifetime,
	network *Network) *Engine {
	n := &Engine{lifetime: lifetime, cfg: cfg, src: src, obs: event.Join(obs), depth: 1,
		byID: make(map[int64]*sequence)}
	n.memory = memory{cfg: &n.cfg, kv: newStore(&n.cfg)}
	n.outbox.each, n.outbox.interval = n.cfg.StreamPerSequence, int32(max(1, n.cfg.StreamInterval))
	n.queue = queue{cfg: &n.cfg, accounts: newAccounts(cfg.Order)}
	n.gpu = gpu{cfg: &n.cfg, slow: lifetime.Slow, pipeline: newPipeline(&n.cfg), lastComposed: -1}
	if cfg.Connector != nil && lifetime.Tiers == nil {
		n.lifetime.Tiers = make([]*Tier, len(cfg.Connector.Tiers))
	}
	n.remote = newRemoteKV(n, network)
	if cfg.AsyncScheduling {
		n.depth = 2
	}
	if n.gpu.pipeline != nil {
		n.depth = cfg.Stages
	}
	return n
}

// Engine is a serving engine that visits every sequence in every iteration.
type Engine struct {
	lifetime Lifetime
	cfg      engine.Config
	src      workload.Source
	obs      *event.Fanout
	depth    int       // how many iterations may be in flight
	instance *Instance // its part of disaggregated prefill and decode; nil if it does both

	clients
	queue
	batch
	memory
	remote *remoteKV // nil if there is no connector
	gpu    gpu
	outbox frontEnd

	byID      map[int64]*sequence
	finishing []*sequence // preempted when the last of their output was in flight
	system    int         // requests sent and not yet ended

	inFlight   []*iteration // oldest first
	changes    changes      // since the last launch
	acted      int64        // requests that had joined the queue at the last boundary
	chunks     int          // prefill chunks processed so far
	freed      int          // times that blocks were freed which were kept for loads, or that a load was aborted
	promise    promise      // what Repeats said last
	blocked    sched.Cause  // why the last composition left the head of the queue
	lastLevels event.Levels // the last levels reported
	fault      error        // what the policy did wrong
}

// changes are sequences that were taken out of the batch, and blocks that moved because of it.
type changes struct {
	preempted []int64
	swapped   []int64 // those of them that were swapped out
	moved     int     // blocks to and from host memory
}

func (n *Engine) run() error {
	for {
		end := clock.Never
		if len(n.inFlight) > 0 {
			end = n.inFlight[0].end
		}
		at := min(n.nextClientInstant(), end, n.remote.next())
		if n.lifetime.Crash <= at && at != clock.Never {
			n.crash(n.lifetime.Crash)
			n.reportLevels(n.lifetime.Crash)
			return n.src.Err()
		}
		if at == clock.Never || n.system+len(n.inFlight) == 0 && n.nextClientInstant() == clock.Never &&
			n.remote.idle() {
			return n.src.Err()
		}
		due := n.advanceTransfers(at)
		n.runClients(at)
		if n.acts(at, due) {
			if err := n.act(at); err != nil {
				return err
			}
		}
		n.reportLevels(at)
		n.memory.reportCache(n.obs, at)
	}
}

// acts reports whether the engine has a boundary at an instant. due means that a transfer or a lease has ended.
func (n *Engine) acts(at clock.Time, due bool) bool {
	if len(n.inFlight) > 0 {
		return n.inFlight[0].end == at
	}
	return n.joined > n.acted || len(n.inbox.sequences) > 0 || len(n.left) > 0 || due
}

// act runs that boundary.
func (n *Engine) act(at clock.Time) error {
	err := n.boundary(at)
	n.acted = n.joined
	return err
}

// nextClientInstant is the next instant at which a request is sent, leaves the front end or loses its client.
func (n *Engine) nextClientInstant() clock.Time {
	next := clock.Never
	if at, ok := n.src.Peek(); ok {
		next = at
	}
	if len(n.frontEnd) > 0 {
		next = min(next, n.frontEnd[0].visible)
	}
	if _, at := n.nextTimeout(n.cfg.NetworkOut); at < next {
		next = at
	}
	return next
}

// runClients handles all events of clients and of the front end up to the instant at.
func (n *Engine) runClients(at clock.Time) {
	for {
		arrival, more := n.src.Peek()
		switch {
		case n.handleTimeout(at):
		case more && arrival <= at:
			n.arrive(n.src.Next(), arrival)
		case len(n.frontEnd) > 0 && n.frontEnd[0].visible <= at:
			s := n.frontEnd[0]
			n.frontEnd = n.frontEnd[1:]
			if s.tooLong {
				n.refuse(s, event.NeverFits, workload.RefusedTooLong, s.visible)
				continue
			}
			if n.queueFull() {
				n.refuse(s, event.Busy, workload.RefusedBusy, s.visible)
				continue
			}
			s.rec.Queued = s.visible
			if e := n.remote; e != nil && e.Handoff != nil {
				e.legs[s.rec.Request.ID] = e.Handoff(&s.rec.Request)
			}
			if n.instance != nil {
				s.highest = n.instance.computedBefore(&s.rec.Request)
			}
			n.inbox.sequences = append(n.inbox.sequences, s)
			if n.cfg.RecvInterval <= 1 {
				n.receiveRequests()
			}
		default:
			return
		}
	}
}

// arrive handles a request that reaches this engine at the instant at; a router may have held it before.
func (n *Engine) arrive(r workload.Request, at clock.Time) {
	n.obs.Arrived(r.Arrival, &r)
	delay := n.cfg.Frontend + clock.Duration(r.InputTokens)*n.cfg.FrontendPerToken
	s := &sequence{
		rec: event.Record{
			Request: r, Queued: clock.Never, Scheduled: clock.Never, FirstToken: clock.Never, LastToken: clock.Never,
			ClientFirst: clock.Never, ClientLast: clock.Never, Released: clock.Never, Left: clock.Never,
		},
		visible:     at.Add(n.cfg.NetworkIn + delay),
		prompt:      r.InputTokens,
		pipelined:   n.gpu.pipeline != nil,
		ahead:       n.cfg.AsyncScheduling && n.cfg.Speculative.On(),
		unpredicted: n.cfg.UnpredictedEnds && n.depth == 2,
		chunks:      chunks{sent: clock.Never},
	}
	s.output, s.declared = OutputLengths(&n.cfg, &r)
	n.system++
	n.byID[r.ID] = s
	// The last output token is never computed.
	if s.output < 1 || n.BlocksFor(MostTokens(&n.cfg, s.prompt, s.declared)) > n.cfg.UsableBlocks() {
		s.rec.Replica = -1
		if s.tooLong, s.visible = true, r.Arrival.Add(n.cfg.NetworkIn); n.cfg.NetworkIn == 0 {
			n.refuse(s, event.NeverFits, workload.RefusedTooLong, r.Arrival)
			return
		}
	}
	s.kv = newState(&n.cfg, &s.rec.Request, s.output)
	n.frontEnd = insert(n.frontEnd, s, func(a, b *sequence) int {
		return cmp.Or(cmp.Compare(a.visible, b.visible), cmp.Compare(a.rec.Request.ID, b.rec.Request.ID))
	})
	if r.Client != nil {
		n.patient = append(n.patient, s)
	}
}

// queueFull reports whether the admission limit is reached.
func (n *Engine) queueFull() bool {
	most, mostTokens := n.cfg.MaxQueuedRequests, n.cfg.MaxQueuedTokens
	tokens := int64(0)
	loads := slices.Concat(n.remote.loadingSequences(), n.loaded)
	for _, s := range slices.Concat(loads, n.inbox.sequences, n.waiting, n.running) {
		tokens += int64(max(0, s.prompt-s.computed))
	}
	return most > 0 && len(loads)+len(n.inbox.sequences)+len(n.waiting)+len(n.running)+len(n.finishing) >= most ||
		mostTokens > 0 && tokens >= mostTokens
}

// mostIterations is the length at which a run fails: sequences that preempt each other endlessly would fill the memory.
const mostIterations = 500_000

func (n *Engine) boundary(at clock.Time) error {
	for _, s := range n.left {
		n.abort(s, at)
	}
	n.left = nil
	if len(n.inFlight) > 0 && n.inFlight[0].end == at {
		done := n.inFlight[0]
		n.inFlight = n.inFlight[1:]
		n.process(done)
	}
	n.receive(at)
	n.runClients(at) // a response may make its client send the next request at once
	for len(n.inFlight) < n.depth {
		if n.inbox.due(n.cfg.RecvInterval) {
			n.receiveRequests()
		}
		it := n.compose(at)
		if n.gpu.launched > mostIterations {
			return fmt.Errorf("at %v: after %d iterations %d requests wait and %d run; the policy makes no progress",
				at, n.gpu.launched, len(n.waiting), len(n.running))
		}
		if n.fault != nil {
			return n.fault
		}
		if n.inbox.recent = n.anyGiven(); n.inbox.recent {
			n.launch(it, at)
			n.inbox.decodes = !slices.ContainsFunc(it.shares, func(sh share) bool { return sh.chunk })
		} else if len(n.inFlight) > 0 || !it.preempts && len(n.inbox.sequences) == 0 {
			break
		}
	}
	if len(n.inFlight) == 0 && n.WaitingLen()+len(n.running) > 0 && n.remote.next() == clock.Never {
		return fmt.Errorf("at %v: %d requests wait and %d run, but nothing can be scheduled", at, n.WaitingLen(),
			len(n.running))
	}
	return nil
}

// abort removes s, whose client has left.
func (n *Engine) abort(s *sequence, at clock.Time) {
	n.drop(s)
	n.finish(s, event.TimedOut, at)
}

// drop reports the tokens of s, which ends, in the iterations in flight.
func (n *Engine) drop(s *sequence) {
	for _, it := range n.inFlight {
		for _, sh := range it.shares {
			if sh.seq == s && sh.emits && !sh.dropped {
				n.obs.Dropped(it.end, int(sh.produces))
			}
		}
	}
}

// process delivers the tokens of an iteration that has ended.
func (n *Engine) process(it *iteration) {
	for _, sh := range it.shares {
		if sh.chunk && sh.emits && sh.serial == sh.seq.serial && slices.Contains(n.running, sh.seq) {
			n.remote.store(sh.seq, sh.upTo)
		}
	}
	for _, sh := range it.shares {
		s := sh.seq
		if sh.serial == s.serial {
			s.inFlight -= sh.given
		}
		if s.ended {
			continue // its client has left, or its last token came before
		}
		if sh.chunk {
			n.chunks++
		}
		if sh.chunk && !sh.stashed && sh.serial == s.serial && slices.Contains(n.running, s) {
			ends := sh.emits && !sh.dropped && s.delivered+sh.produces == s.output
			n.kv.done(s, sh.upTo, sh.emits && !ends)
		}
		if sh.emits && !sh.dropped {
			if sh.serial == s.serial && slices.Contains(n.running, s) {
				s.computed -= sh.rejected
				s.unseen -= sh.unseen
				s.rejected -= sh.rejected
			}
			n.deliver(s, sh.produces, it.end, sh.seen.Add(n.cfg.NetworkOut))
		}
		if s.delivered == s.output {
			n.drop(s)
			n.finish(s, event.Completed, it.end)
		}
	}
}

// deliver sends tokens of s that were produced at the instant at to its client, which gets them at the instant seen.
func (n *Engine) deliver(s *sequence, tokens int32, at, seen clock.Time) {
	s.delivered += tokens
	if s.delivered == tokens {
		s.rec.FirstToken = at
		if !s.clientLeft() {
			s.rec.ClientFirst = seen
		}
	}
	if slices.Contains(n.running, s) {
		s.decoding = true
		if n.cfg.AsyncScheduling {
			n.kv.known(s, s.computed-(s.scheduled-s.delivered)-s.unseen)
		}
		n.propose(s)
	}
	if s.delivered == s.output {
		s.rec.LastToken = at
		n.patient, n.aborting = without(n.patient, s), without(n.aborting, s)
		if !s.clientLeft() {
			s.rec.ClientLast = seen
			n.notifyClient(s, workload.End{How: workload.Answered, At: seen, First: s.rec.ClientFirst,
				Tokens: s.output})
		}
	}
}

// finish removes s from all lists and reports how it ended.
func (n *Engine) finish(s *sequence, how event.Outcome, at clock.Time) {
	if how == event.Completed && slices.Contains(n.running, s) {
		s.leased = n.remote.startLease(s, at)
	}
	ran := slices.Contains(n.running, s)
	n.leaveRunning(s, how == event.Completed)
	if policy, ok := n.cfg.Scheduler.(sched.EndObserver); ok && ran {
		p := s.progress()
		p.Generated = s.delivered
		policy.Ended(p)
	}
	n.abortLoad(s)
	n.inbox.sequences, n.waiting = without(n.inbox.sequences, s), without(n.waiting, s)
	n.finishing = without(n.finishing, s)
	n.patient, n.aborting = without(n.patient, s), without(n.aborting, s)
	n.hosted -= s.hosted
	n.system--
	s.hosted, s.ended = 0, true
	delete(n.byID, s.rec.Request.ID)
	s.rec.Outcome, s.rec.Released, s.rec.Tokens = how, at, s.delivered
	if s.clientLeft() {
		s.rec.Outcome, s.rec.Refusal = event.TimedOut, event.NotRefused
		if s.rec.Ending == workload.Cancelled {
			s.rec.Outcome = event.Cancelled
		}
	}
	if n.instance != nil && n.instance.ended(s, at) {
		return // a request that is handed over has no record yet
	}
	n.obs.Finished(&s.rec)
}

// leaveRunning removes s from the running batch, if it is there, and frees its blocks.
func (n *Engine) leaveRunning(s *sequence, ended bool) {
	if !slices.Contains(n.running, s) {
		return
	}
	n.running = without(n.running, s)
	n.departures++
	n.remote.store(s, min(int32(s.kv.entered)*n.cfg.BlockSize, s.computed))
	s.booked = 0
	if !s.leased {
		n.releaseBlocks(s, ended)
	}
}

// waits is the number of requests that wait: in the queue, for KV that is being loaded, or for their last token.
func (n *Engine) waits() int {
	return len(n.inbox.sequences) + n.WaitingLen() + len(n.remote.loadingSequences()) + len(n.finishing)
}

// reportLevels reports the levels if they have changed.
func (n *Engine) reportLevels(at clock.Time) {
	now := event.Levels{System: n.system, Waiting: n.waits(), Running: len(n.running)}
	for _, s := range n.running {
		if s.decoding {
			now.Decoding++
		}
	}
	if now.Waiting > 0 {
		now.Blocked = n.blocked
	}
	if now != n.lastLevels {
		n.lastLevels = now
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
