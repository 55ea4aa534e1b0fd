package sim

import "clifftop/sim/clock"

// What an iteration's end brings: tokens delivered, requests completed, clients found gone.

// process delivers the tokens of the oldest iteration in flight and releases what it finished.
func (r *Replica) process(f *flight) {
	for _, i := range f.firsts {
		r.deliverFirst(r.seq(i), f.end)
	}
	if r.caching {
		r.registerHeld(f)
	}
	if len(f.finishes) == 0 {
		return
	}
	r.settle()
	for _, i := range f.finishes {
		r.complete(i, f.end)
	}
}

// deliverFirst notes the first token after an admission.
func (r *Replica) deliverFirst(s *sequence, end clock.Time) {
	if s.rec.FirstToken == clock.Never {
		s.rec.FirstToken = end
		s.rec.ClientFirst = end.Add(clock.Duration(s.firstRank) * r.cfg.StreamPerSequence)
	}
	if s.phase == decoding || s.phase == finishing {
		s.streamed = true
		r.host.levels.Decoding++
	}
}

// complete ends sequence i, whose last token was delivered at the instant end.
func (r *Replica) complete(i int32, end clock.Time) {
	s := r.seq(i)
	s.rec.Outcome = Completed
	s.rec.LastToken = end
	s.rec.ClientLast = end.Add(clock.Duration(s.lastRank) * r.cfg.StreamPerSequence)
	s.rec.Tokens = s.output
	if s.phase == departed {
		r.host.levels.Waiting--
	} else {
		if r.caching {
			r.register(s, (s.rec.Request.InputTokens+s.output-1)/r.cfg.BlockSize)
		}
		r.leaveRunning(i)
	}
	r.end(i)
}

// end tells that the life of sequence i is over and forgets it.
func (r *Replica) end(i int32) {
	s := r.seq(i)
	s.rec.Released = r.now
	r.answered = true
	r.host.ended(&s.rec)
	r.seqs.put(i)
}

// applyAborts removes the requests whose clients left.
func (r *Replica) applyAborts() {
	for _, id := range r.aborts {
		p, ok := r.host.patient[id]
		switch {
		case !ok: // it ended meanwhile
		case p.seq == none:
			r.host.levels.Waiting--
			r.queue.remove(&p.req)
			r.host.leftUnserved(p, r.now)
			r.answered = true
		default:
			r.cancel(p.seq)
		}
	}
	r.aborts = r.aborts[:0]
}

// cancel ends sequence i at a boundary, before the oldest flight is processed. Its tokens in flight
// are not delivered.
func (r *Replica) cancel(i int32) {
	s := r.seq(i)
	issued := s.issued
	if s.phase == decoding {
		issued += int32(r.cohort.steps - s.joined)
	}
	for k := range r.inFlight.n {
		f := r.inFlight.at(k)
		if !r.emits(f, i) {
			continue
		}
		issued--
		r.host.obs.Dropped(f.end, 1)
		f.firsts, f.finishes = without(f.firsts, i), without(f.finishes, i)
		f.emitters = without(f.emitters, i)
	}
	switch s.phase {
	case preempted:
		r.queue.remove(&s.rec.Request)
		r.host.levels.Waiting--
	case departed:
		r.host.levels.Waiting--
	default:
		r.settle()
		r.leaveRunning(i)
	}
	s.rec.Outcome, s.rec.Tokens = Cancelled, issued
	r.end(i)
}

// emits reports whether flight f issues a token of sequence i.
func (r *Replica) emits(f *flight, i int32) bool {
	if f.partial {
		for _, e := range f.emitters {
			if e == i {
				return true
			}
		}
		return false
	}
	s := r.seq(i)
	switch {
	case f.number <= s.joinBatch:
		return f.number == s.joinBatch || f.number == s.beforeJoin
	case !f.stepped:
		return false
	}
	return s.phase == decoding || f.number <= s.lastBatch
}

// tokensInFlight is the number of tokens of sequence i that are issued and not delivered.
func (r *Replica) tokensInFlight(i int32) int32 {
	var n int32
	for k := range r.inFlight.n {
		if r.emits(r.inFlight.at(k), i) {
			n++
		}
	}
	return n
}
