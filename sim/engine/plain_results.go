package engine

import "clifftop/sim/clock"

// The results of an iteration whose sequences were not touched by an optional part.

// process delivers the tokens of f, the oldest iteration in flight, and ends the requests that are complete.
func (e *Engine) process(f *iteration) {
	if !e.plain.on || e.plain.blocks == nil || f.partial || len(f.lasts)+len(f.returns) > 0 {
		e.processGeneral(f)
		return
	}
	for _, i := range f.firsts {
		s := e.seqs.at(i)
		if s.rec.FirstToken == clock.Never {
			s.rec.FirstToken = f.end
			if s.rec.Left == clock.Never {
				s.rec.ClientFirst = e.seen(e.line.First(i))
			}
			e.host.Began(&s.rec.Request, int32(e.index))
		}
		if (s.phase == decoding || s.phase == finishing) && !s.streamed {
			s.streamed = true
			e.levels.Decoding++
		}
	}
	for _, i := range f.finishes {
		if s := e.seqs.at(i); s.phase == finishing {
			e.completePlain(i, s, f.end)
		} else {
			e.complete(i, f)
		}
	}
}

// completePlain ends s, sequence i, whose last token was computed at an instant. Its seat and its blocks are free.
func (e *Engine) completePlain(i int32, s *sequence, end clock.Time) {
	e.answer(i, s, end)
	s.rec.Tokens = s.output
	e.line.Exit(i)
	b := &e.running
	if s.prev == none {
		b.first = s.next
	} else {
		e.seqs.at(s.prev).next = s.next
	}
	if s.next == none {
		b.last = s.prev
	} else {
		e.seqs.at(s.next).prev = s.prev
	}
	b.remaining -= int64(s.declared - s.issued)
	b.size--
	b.departures++
	if s.rec.Request.SharesOutput() {
		b.answers--
	}
	e.levels.Running--
	if s.streamed {
		e.levels.Decoding--
	}
	e.plain.blocks.Return(s.blockCount)
	s.rec.Released = e.now
	e.line.End(i)
	e.gpu.took += s.rec.GPU.Total()
	if s.rec.Preemptions > 0 {
		e.space.again--
	}
	e.host.Ended(&s.rec)
	e.seqs.put(i)
}
