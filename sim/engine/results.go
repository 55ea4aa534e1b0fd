package engine

import (
	"math"
	"slices"

	"clifftop/sim/clock"
)

// The end of an iteration: tokens are delivered, requests complete, and requests whose clients have left end.

// process delivers the tokens of the oldest iteration in flight and frees what it has finished.
func (r *Engine) process(f *iteration) {
	r.pipe.land(f)
	for _, i := range f.firsts {
		if s := r.seqs.at(i); !s.over {
			r.deliverFirst(s, f.end)
		}
	}
	if r.space.caching {
		r.registerHeld(f)
	}
	r.connector.computed(f)
	r.it.deliverDrafts(f)
	for _, i := range f.returns {
		r.deliverAwaited(i)
	}
	if len(f.finishes)+len(f.computed) == 0 {
		return
	}
	if len(f.finishes) > 0 {
		r.space.Settle()
	}
	f.sortChunks()
	for _, i := range f.finishes {
		if s := r.seqs.at(i); s.running() {
			r.space.insertChunks(f, s.serial)
		}
		if slices.Contains(f.lasts, i) && r.keepsSeat(i, f) {
			continue
		}
		r.complete(i, f)
	}
	r.space.insertChunks(f, math.MaxInt64)
}

// deliverAwaited delivers the token of sequence i that was in flight when the sequence was admitted again.
func (r *Engine) deliverAwaited(i int32) {
	s := r.seqs.at(i)
	s.awaited = 0
	r.stream(s)
	if !r.space.caching {
		return
	}
	computed := s.computed
	if s.phase == decoding {
		r.space.Settle()
		computed = r.cohort.computed(s)
	}
	if s.joinBatch != math.MaxInt64 {
		computed-- // the token that it was given since is not known
	}
	r.space.register(s, computed)
}

// keepsSeat handles sequence i, which ends in iteration f on an EOS that the engine could not predict. If the next
// iteration in flight computes for the sequence already, the sequence keeps its seat and its blocks until that
// iteration has been processed. keepsSeat reports whether it does.
func (r *Engine) keepsSeat(i int32, f *iteration) bool {
	s := r.seqs.at(i)
	if !s.running() || r.inFlight.n == 1 || !r.inFlight.partOf(r.inFlight.at(1), i) {
		return false
	}
	r.answer(s, f.end)
	if s.phase == prefilling { // the sequence was preempted and admitted again
		s.phase = finishing
		r.running.prefills = without(r.running.prefills, i)
	}
	if next := r.inFlight.at(1); !slices.Contains(next.finishes, i) {
		next.finishes = append(next.finishes, i)
		r.seqs.sortBySerial(next.finishes)
	}
	return true
}

// answer delivers the last token of s to its client.
func (r *Engine) answer(s *sequence, end clock.Time) {
	s.over = true
	s.rec.LastToken = end
	if s.rec.Left == clock.Never {
		s.rec.ClientLast = r.seen(end, s.lastPlace)
	}
	if s.running() {
		issued := s.issued
		if s.phase == decoding {
			issued += int32(r.steps(s) - s.joined)
		}
		r.running.remaining -= int64(s.declared - issued)
	}
	r.answered = true
	if r.connector.handsOff(s) {
		return
	}
	if s.rec.Left == clock.Never && r.link.LinkLost(end) && MayLeave(&s.rec.Request) {
		r.leaveDuringLinkLoss(s)
	}
	r.host.Answered(&s.rec)
}

// complete ends sequence i at the end of iteration f, which issues its last token, or one token too many.
func (r *Engine) complete(i int32, f *iteration) {
	s := r.seqs.at(i)
	if !s.over {
		r.answer(s, f.end)
	} else if r.inFlight.emits(f, i) {
		r.obs.Dropped(f.end, 1)
	}
	s.rec.Tokens = s.output
	switch s.phase {
	case preempted:
		r.leaveQueue(s)
	case departed:
		r.levels.Waiting--
	default:
		r.space.remember(s)
		r.uncomputed -= s.promptLeft()
		s.lease = r.connector.leaseOf(s.rec.Request.ID)
		r.leaveRunning(i)
	}
	r.end(i)
}

// remember adds the computed tokens of s, which is complete, to the prefix cache: all but the last token, unless s was
// preempted and admitted again while that token was in flight.
func (k *space) remember(s *sequence) {
	computed := s.computed
	if s.phase == decoding {
		computed = k.members.computed(s)
	}
	computed = min(computed, s.rec.Request.InputTokens+s.output-1)
	k.register(s, computed)
	k.insert(s, computed)
}

// end reports the record of sequence i and frees its index.
func (r *Engine) end(i int32) {
	s := r.seqs.at(i)
	s.rec.Released = r.now
	r.answered = true
	r.gpu.took += s.rec.GPU.Total()
	if s.over && r.connector.handsOff(s) {
		r.connector.handOff(s)
	} else {
		r.connector.forgetHandoff(s.rec.Request.ID)
		r.host.Ended(&s.rec)
	}
	r.seqs.put(i)
}

// applyAborts ends the requests whose clients have left.
func (r *Engine) applyAborts() {
	for _, id := range r.aborts {
		p := r.host.Client(id)
		switch {
		case p == nil: // the request has ended
		case p.Seq == none:
			r.levels.Waiting--
			r.queue.remove(&p.Request)
			r.uncomputed -= int64(p.Request.InputTokens)
			r.connector.forgetHandoff(p.Request.ID)
			r.host.Unserved(p, r.now)
			r.answered = true
		default:
			r.cancel(p.Seq)
		}
	}
	r.aborts = r.aborts[:0]
}

// cancel ends sequence i at a boundary, before the oldest iteration in flight is processed. Its tokens in flight are
// dropped.
func (r *Engine) cancel(i int32) {
	s := r.seqs.at(i)
	issued := s.issued
	if s.phase == decoding {
		issued += int32(r.steps(s) - s.joined)
	}
	for k := range r.inFlight.n {
		f := r.inFlight.at(k)
		if !r.inFlight.emits(f, i) {
			continue
		}
		tokens := r.inFlight.tokensOf(s)
		issued -= tokens
		r.obs.Dropped(f.end, int(tokens))
		f.firsts, f.finishes = without(f.firsts, i), without(f.finishes, i)
		f.lasts, f.returns = without(f.lasts, i), without(f.returns, i)
		f.emitters, f.verified = without(f.emitters, i), without(f.verified, i)
	}
	switch s.phase {
	case preempted:
		r.leaveQueue(s)
	case departed:
		r.levels.Waiting--
	case loading, loaded:
		r.connector.leaveParked(i)
	default:
		r.space.Settle()
		r.uncomputed -= s.promptLeft()
		r.leaveRunning(i)
	}
	s.rec.Tokens = issued
	r.end(i)
}
