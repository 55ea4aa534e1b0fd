package engine

import (
	"math"

	"clifftop/sim/clock"
	"clifftop/sim/queue"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Admission of requests to the running batch.

// Admit implements [sched.Admitter].
func (it *batchBuilder) Admit(place int, n int32) sched.Seq {
	r := it.r
	w := it.waiting(place)
	if w == nil {
		it.unsupported("Admit on an empty queue")
		return sched.None
	}
	r.space.find(w)
	i := r.take(place, w)
	s := r.seqs.at(i)
	switch {
	case s.hosted > 0:
		s.reused = 0
		r.space.swapIn(s)
	case s.phase == loaded:
		r.remote.unpark(i)
		s.reserved, r.space.reserves = r.space.held(s), true
	default:
		s.loaded, s.reused = 0, r.space.takeCached(s)
		s.computed, s.swapped = s.reused, false
		r.uncomputed -= int64(min(s.reused, s.rec.Request.InputTokens))
	}
	if s.rec.Preemptions > 0 {
		s.rec.LaterCachedTokens += max(0, s.reused+s.loaded-s.reached)
	}
	if s.rec.Scheduled == clock.Never {
		s.client = r.fair.Admitted(&s.rec.Request)
		s.rec.Scheduled = r.now
		s.rec.PassedOver = s.rec.Queued <= r.gpu.lastComposed
		s.rec.CachedTokens = s.reused
		if s.pulled {
			s.rec.PulledTokens = s.loaded
		} else {
			s.rec.LoadedTokens = s.loaded
		}
	}
	s.target = s.rec.Request.InputTokens + s.issued
	it.expectTokens(i, s)
	s.phase = prefilling
	s.joinBatch, s.beforeJoin = math.MaxInt64, s.lastBatch
	r.running.join(i)
	r.levels.Running++
	it.growTo(i, s, s.computed, n, r.cfg.admissionSlots(s.computed+n))
	if s.swapped {
		it.resume(i, s)
		return sched.Seq(i)
	}
	missing := s.target - s.computed
	r.running.prefills = append(r.running.prefills, i)
	it.givePrefill(i, s, min(n, missing))
	if n > missing {
		it.pad(s, n-missing, r.cfg.padding(s.target, missing))
	}
	return sched.Seq(i)
}

// take removes w, the request at a place of the queue, and returns its sequence.
func (e *Engine) take(place int, w *queue.Waiting) int32 {
	i := w.Seq
	if i == none {
		i = e.seqs.take()
		e.start(e.seqs.at(i), &w.Request)
		e.line.Begin(i)
		if len(e.late) > 0 {
			delete(e.late, w.Request.ID)
		}
		if MayLeave(&w.Request) {
			p := e.host.Client(w.Request.ID)
			p.Seq = i
			p.Note(&e.seqs.at(i).rec)
			if p.Again {
				e.space.cache.Retain(i)
			}
		}
	}
	e.space.Settle()
	e.queue.Take(place)
	e.levels.Waiting--
	return i
}

// expectTokens records that a token of s, which is being admitted, is in flight, if one is.
func (it *batchBuilder) expectTokens(i int32, s *sequence) {
	r := it.r
	if r.inFlight.n == 0 || s.issued == 0 || !r.inFlight.emits(r.inFlight.at(0), i) {
		return
	}
	s.awaited = 1
	f := r.inFlight.at(0)
	f.returns = append(f.returns, i)
}

// start initializes s as the sequence of request req, which has reached the queue.
func (e *Engine) start(s *sequence, req *workload.Request) {
	s.rec.Request, s.rec.Replica = *req, e.index
	s.rec.Queued = e.Queued(req)
	s.rec.Scheduled = clock.Never
	s.rec.FirstToken, s.rec.LastToken = clock.Never, clock.Never
	s.rec.ClientFirst, s.rec.ClientLast, s.rec.Left = clock.Never, clock.Never, clock.Never
	s.output, s.declared = e.cfg.OutputOf(req), e.cfg.declaredOf(req)
	s.slots = s.output
	if c := e.remote.connector; c != nil {
		s.reached = c.Precomputed(req.ID)
	}
	if e.depth > 1 && (s.declared > s.output || e.cfg.UnpredictedEnds) {
		s.slots++
	}
	e.space.cache.Begin(s.number, req)
}
