package engine

import (
	"math"
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/sched"
)

// The end of an iteration: tokens are delivered, requests complete, and requests whose clients have left end.

// processGeneral is [Engine.process] where sequences may have been touched by an optional part.
func (e *Engine) processGeneral(f *iteration) {
	if e.pipe != nil {
		e.pipe.land(f)
	}
	for _, i := range f.firsts {
		e.deliverFirst(i, f.end)
	}
	switch kind := e.space.kind; {
	case kind.Singly:
		e.registerDelivered(f)
	case kind.Registers:
		e.registerHeld(f)
	}
	if e.remote.connector != nil {
		e.remote.storePrefills(f, e.now, &e.space)
	}
	e.it.deliverDrafts(f)
	for _, i := range f.returns {
		e.deliverAwaited(i)
	}
	if len(f.finishes)+f.chunks.N == 0 {
		return
	}
	if len(f.finishes) > 0 {
		e.space.Settle()
	}
	for _, i := range f.finishes {
		if s := e.seqs.at(i); s.running() {
			e.space.kind.Tree.Enter(&f.chunks, i)
		}
		e.complete(i, f)
	}
	e.space.kind.Tree.Enter(&f.chunks, none)
}

// deliverAwaited delivers the token of sequence i that was in flight when the sequence was admitted again.
func (e *Engine) deliverAwaited(i int32) {
	s := e.seqs.at(i)
	s.awaited = 0
	e.stream(s)
	if !e.space.kind.Registers {
		return
	}
	computed := s.computed
	if s.phase == decoding {
		e.space.Settle()
		computed = e.cohort.computed(s)
	}
	if s.joinBatch != math.MaxInt64 {
		computed-- // the token that it was given since is not known
	}
	e.space.cache.Register(i, computed)
}

// answer delivers the last token of s, sequence i, to its client.
func (e *Engine) answer(i int32, s *sequence, end clock.Time) {
	s.rec.LastToken = end
	if s.rec.Left == clock.Never {
		s.rec.ClientLast = e.seen(e.line.Last(i))
	}
	e.answered = true
	if e.remote.connector != nil && e.remote.handsOff(s) {
		return
	}
	if e.cfg.Check && s.rec.Left == clock.Never && s.rec.ClientLast < s.rec.ClientFirst {
		e.Fail(e.Broken("the last token of request %d reaches its client at %v, before the first one at %v",
			s.rec.Request.ID, s.rec.ClientLast, s.rec.ClientFirst))
	}
	if s.rec.Left == clock.Never && e.link.LinkLost(end) && MayLeave(&s.rec.Request) {
		e.leaveDuringLinkLoss(s)
	}
	e.host.Answered(&s.rec)
}

// complete ends sequence i at the end of iteration f, which issues its last token. If the engine could not predict the
// end, the next iteration in flight may compute for the sequence already. As in vLLM, seat and blocks are free at once
// all the same, and what that iteration issues is dropped.
func (e *Engine) complete(i int32, f *iteration) {
	s := e.seqs.at(i)
	e.answer(i, s, f.end)
	if e.drafter.async || slices.Contains(f.lasts, i) {
		e.withdraw(i, 1)
	}
	s.rec.Tokens = s.output
	switch s.phase {
	case preempted:
		e.leaveQueue(s)
	case departed:
		e.levels.Waiting--
	default:
		e.space.remember(s)
		e.uncomputed -= s.promptLeft()
		e.leaveRunning(i, e.remote.leaseOf(s))
		e.observeEnd(s, s.output)
	}
	e.end(i)
}

// observeEnd passes the end of s, which ran, to the policy.
func (e *Engine) observeEnd(s *sequence, generated int32) {
	if e.ends != nil {
		p := sched.NewProgress(&s.rec.Request)
		p.Generated, p.MaxTokens = generated, s.declared
		e.ends.Ended(p)
	}
}

// withdraw removes sequence i from the iterations in flight, from the given one on, and returns how many tokens of the
// sequence they would have issued. These are dropped.
func (e *Engine) withdraw(i int32, from int) (tokens int32) {
	for k := from; k < e.inFlight.n; k++ {
		f := e.inFlight.at(k)
		if !e.inFlight.emits(f, i) {
			f.removeRow(i)
			continue
		}
		n := e.inFlight.tokensOf(f, i)
		tokens += n
		e.obs.Dropped(f.end, int(n))
		f.firsts, f.finishes = without(f.firsts, i), without(f.finishes, i)
		f.lasts, f.returns = without(f.lasts, i), without(f.returns, i)
		f.emitters = without(f.emitters, i)
		f.removeRow(i)
	}
	return tokens
}

// end reports the record of sequence i and frees its index.
func (e *Engine) end(i int32) {
	s := e.seqs.at(i)
	s.rec.Released = e.now
	e.line.End(i)
	e.answered = true
	e.gpu.took += s.rec.GPU.Total()
	if s.rec.Preemptions > 0 {
		e.space.again--
	}
	if s.rec.LastToken != clock.Never && e.remote.handsOff(s) {
		e.remote.handOff(s, e.host.Client(s.rec.Request.ID), e.now)
	} else {
		e.remote.forget(s.rec.Request.ID)
		e.host.Ended(&s.rec)
	}
	e.seqs.put(i)
}

// applyAborts ends the requests whose clients have left.
func (e *Engine) applyAborts() {
	e.plain.goesOn = false
	for _, id := range e.aborts {
		p := e.host.Client(id)
		switch {
		case p == nil: // the request has ended
		case p.Seq == none:
			e.levels.Waiting--
			if !e.inbox.remove(id) {
				e.queue.Remove(&p.Request)
			}
			e.uncomputed -= int64(p.Request.InputTokens)
			e.remote.forget(p.Request.ID)
			e.host.Unserved(p, e.now)
			e.answered = true
		default:
			e.cancel(p.Seq)
		}
	}
	e.aborts = e.aborts[:0]
}

// cancel ends sequence i at a boundary, before the oldest iteration in flight is processed. Its tokens in flight are
// dropped.
func (e *Engine) cancel(i int32) {
	e.plain.goesOn = false
	s := e.seqs.at(i)
	issued := s.issued
	if s.phase == decoding {
		issued += int32(e.cohortOf(s).steps - s.joined)
	}
	issued -= e.withdraw(i, 0)
	switch s.phase {
	case preempted:
		e.leaveQueue(s)
	case departed:
		e.levels.Waiting--
	case loading, loaded:
		e.leaveParked(i)
	default:
		e.space.Settle()
		e.uncomputed -= s.promptLeft()
		e.leaveRunning(i, 0)
		e.observeEnd(s, issued)
	}
	s.rec.Tokens = issued
	e.end(i)
}
