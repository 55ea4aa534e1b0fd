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
	p, c, it := e.ahead, &e.cohort, &e.it
	e.ahead.N = 0
	wait := clock.Duration(0)
	if e.gpu.batches > 0 {
		wait = p.Start.Sub(e.gpu.free)
	}
	each := e.gpu.shareOut(&p, it, &e.span)
	e.setPlainOutput()
	e.reporter.report(e, p, e.space.Used()+e.released, wait)
	e.released = 0
	if more := p.N - 1; more > 0 {
		e.space.takeCount(c.takes.over(c.steps, more))
		c.advance(more)
		if e.inFlight.n > 0 {
			older := e.inFlight.at(0)
			older.end, older.number, older.stepped = p.End(more), e.gpu.batches+int64(more), true
		}
	}
	f := it.current
	e.chargePlain(each, f)
	f.end, f.number = p.End(p.N), e.gpu.batches+int64(p.N)
	e.running.remaining -= int64(it.decodes)*int64(p.N) + int64(len(f.firsts))
	e.gpu.batches += int64(p.N)
	if it.decodes > 0 {
		e.gpu.decodeSteps += int64(p.N)
	}
	e.gpu.lastComposed = e.gpu.composing
	if p.N > 1 { // the last of a span is composed when the iteration depth before it ends
		e.gpu.lastComposed = p.End(p.N - e.depth)
	}
	e.gpu.free, e.gpu.remainder = f.end, p.EndRemainder(p.N)
	e.inFlight.n++
	e.retirePlain(f)
}

// chargePlain charges the GPU time of the iterations to their sequences. each is the time of one token, in
// femtoseconds. The members of the cohort are charged together, through its share.
func (e *Engine) chargePlain(each int64, f *iteration) {
	it, c := &e.it, &e.cohort
	if it.stepped {
		c.share += each
	}
	for k, i := range it.chunkSeqs {
		e.seqs.at(i).rec.GPU.Prefill += each * int64(it.chunks[k].New)
	}
	for _, i := range f.firsts {
		e.seqs.at(i).shared = c.share
	}
}

// retirePlain takes the sequences whose last token iteration f issues out of the cohort, and lists them in f.
func (e *Engine) retirePlain(f *iteration) {
	c := &e.cohort
	for c.ends.Len() > 0 && c.ends.Top().Key <= c.steps {
		end := c.ends.Pop()
		s := e.seqs.at(end.Value)
		if s.phase != decoding || s.serial != end.Tie || s.ends != end.Key {
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
		f.finishes = append(f.finishes, end.Value)
	}
	for _, i := range f.firsts {
		if e.seqs.at(i).phase == finishing { // its output has one token
			f.finishes = append(f.finishes, i)
		}
	}
	for _, i := range f.finishes {
		s := e.seqs.at(i)
		s.lastBatch, s.lastEnd = f.number, f.end
		e.setLast(i, f.end)
	}
	c.settled = c.steps
}
