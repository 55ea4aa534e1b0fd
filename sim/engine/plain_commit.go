package engine

import "clifftop/sim/clock"

// The commit of a plain composition: the cohort advances, the last iteration of the span is in flight, and sequences
// whose last token it issues leave the cohort.

// commit commits the iterations of the planned span: it advances the cohort, reports to the observers and puts the last
// iteration in flight.
func (e *Engine) commit() {
	if e.plain.last {
		e.commitPlain()
	} else {
		e.commitGeneral()
	}
}

// commitPlain is commit for a composition of the plain cycle.
func (e *Engine) commitPlain() {
	p, c, it, g := &e.ahead, &e.cohort, &e.it, &e.gpu
	n, f := p.N, it.current
	wait := clock.Duration(0)
	if g.batches > 0 {
		wait = p.Start.Sub(g.free)
	}
	each := g.shareOut(int64(it.decodes+it.prefill), p, &e.span)
	if e.cfg.Check {
		g.given += each * g.sharers
	}
	if e.out.Sent = e.line.SendLevel(f.number, it.decodes, f.firsts, p, &e.span.Delivery); !e.out.Sent {
		e.setPlainOutput()
	}
	taken := e.reporter.report(e, e.plain.blocks.Used()+e.released, wait)
	e.released = 0
	g.lastComposed = g.composing
	if n > 1 {
		e.plain.blocks.Claim(taken)
		c.advance(n - 1)
		before := p.End(n - 1)
		if e.inFlight.n > 0 {
			older := e.inFlight.at(0)
			older.end, older.number, older.stepped = before, g.batches+int64(n-1), true
		}
		if g.lastComposed = before; e.depth > 1 { // the last of a span is composed depth iterations before it ends
			g.lastComposed = p.End(n - e.depth)
		}
	}
	f.end, g.remainder = p.EndAt(n)
	g.free = f.end
	g.batches += int64(n)
	f.number = g.batches
	e.running.remaining -= int64(it.decodes)*int64(n) + int64(len(f.firsts))
	if it.decodes > 0 {
		c.share += each // which charges the GPU time of a token to each member
		g.decodeSteps += int64(n)
	}
	for k, i := range it.chunkSeqs {
		e.seqs.at(i).rec.GPU.Prefill += each * int64(it.chunks[k].New)
	}
	p.N = 0
	e.inFlight.n++
	if c.ends.Len() > 0 && c.ends.Top().Key <= c.steps {
		e.retirePlain(f)
	}
	c.settled = c.steps
	for _, i := range f.firsts {
		s := e.seqs.at(i)
		if s.shared = c.share; s.phase == finishing { // its output has one token
			e.finishPlain(f, i, s)
		}
	}
}

// retirePlain takes the sequences whose last token iteration f issues out of the cohort.
func (e *Engine) retirePlain(f *iteration) {
	c := &e.cohort
	for c.ends.Len() > 0 && c.ends.Top().Key <= c.steps {
		end := c.ends.Pop()
		s := e.seqs.at(end.Value)
		if c.stale(&end) {
			continue // it has left since
		}
		e.line.Leaves(end.Value)
		grown := int32(c.steps - s.joined)
		s.rec.GPU.Decode += c.share - s.shared
		s.computed = s.target + grown
		s.issued += grown
		s.blockCount = e.cfg.blocksFor(s.computed)
		s.phase = finishing
		c.size--
		c.context -= int64(s.computed)
		c.squares -= square(s.computed)
		c.takes.add(s.residue, -1)
		e.finishPlain(f, end.Value, s)
	}
}

// finishPlain lists s, sequence i, among those whose last token iteration f issues.
func (e *Engine) finishPlain(f *iteration, i int32, s *sequence) {
	s.lastBatch, s.lastEnd = f.number, f.end
	e.line.Finishes(i)
	f.finishes = append(f.finishes, i)
}
