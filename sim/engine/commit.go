package engine

import (
	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// The commit of planned iterations: the cohort advances, the last iterations are in flight, and sequences with their
// last token leave the cohort.

// commitGeneral is [Engine.commit] for a composition of the general cycle.
func (e *Engine) commitGeneral() {
	p, c, it := e.ahead, &e.cohort, &e.it
	e.ahead.N = 0
	wait := clock.Duration(0)
	if e.gpu.batches > 0 {
		wait = p.Start.Sub(e.gpu.free)
	}
	padded := it.padRows + it.padTokens
	each := e.gpu.shareOut(int64(it.decodes+it.drafts+it.prefill+it.recomputed+padded), &p, &e.span)
	if e.cfg.Check {
		e.gpu.given += each * (e.gpu.sharers - int64(padded))
	}
	e.setOutput()
	taken := e.reporter.report(e, e.space.Used()+e.released, wait)
	e.released = 0
	if p.N > 1 {
		e.advance(&p, taken)
		e.inbox.repeated(p.N - 1)
	}
	e.gpu.charge(each, it, c)
	f := it.current
	f.end, f.number = p.End(p.N), e.gpu.batches+int64(p.N)
	if it.stepped {
		e.groups = e.groups[:0]
	} else if e.pipe == nil {
		e.groups.hold(f, c.size-e.lagging, it.joined, e.gpu.batches, e.gpu.free)
	}
	e.running.remaining -= int64(it.decodes)*int64(p.N) + int64(len(f.firsts)-it.resumed)
	e.gpu.batches += int64(p.N)
	if e.lock != nil && e == e.lock.ranks[0] {
		e.lock.steps += p.N
	}
	if it.decodes > 0 {
		e.gpu.decodeSteps += int64(p.N)
	}
	e.gpu.lastComposed = e.gpu.composing
	if p.N > 1 { // the last of a span is composed when the iteration depth before it ends
		e.gpu.lastComposed = p.End(p.N - e.depth)
	}
	e.gpu.free, e.gpu.remainder = p.End(p.N), p.EndRemainder(p.N)
	e.inFlight.n++
	it.reportGaps(e.obs, p.End(1))
	if e.cfg.Speculative.On() {
		it.launched(f)
	}
	e.retire(f, it)
	if e.detailed {
		it.reportStep()
	}
	if e.pipe != nil {
		e.pipe.depart(f)
	}
}

// advance makes the steps of the cohort for all iterations of p but the first, which the composition has made. They
// take a number of blocks.
func (e *Engine) advance(p *clock.Progression, blocks int) {
	c, more := &e.cohort, p.N-1
	e.space.takeSteps(c.steps, more, blocks)
	if c.booked.members > 0 {
		e.space.booked -= c.booked.over(c.steps, more)
	}
	c.advance(more)
	if e.inFlight.n > 0 {
		older := e.inFlight.at(0)
		older.end, older.number, older.stepped = p.End(p.N-1), e.gpu.batches+int64(more), true
	}
}

// retire takes the members whose last token iteration f issues out of the cohort. It merges them with the prefills
// that f completes, in running order.
func (d *decoders) retire(f *iteration, it *batchBuilder) {
	c := &d.cohort
	for c.ends.Len() > 0 && c.ends.Top().Key <= c.steps {
		e := c.ends.Pop()
		s := d.seqs.at(e.Value)
		if c.stale(&e) || d.inOtherCohort(s) {
			continue
		}
		last := s.issued+int32(c.steps-s.joined) == s.output
		if f.endsUnpredicted(s, e.Value, s.issued+int32(c.steps-s.joined)) {
			d.line.SetLast(e.Value, d.line.Latest(e.Value))
			s.ends++
			c.ends.Push(pq.Item[int32]{Key: s.ends, Tie: s.serial, Value: e.Value})
			f.finishes = append(f.finishes, e.Value)
			continue
		}
		if d.leaveCohort(e.Value); last {
			d.line.SetLast(e.Value, d.line.Sent(e.Value))
		}
		f.finishes = append(f.finishes, e.Value)
	}
	for _, i := range f.firsts {
		s := d.seqs.at(i)
		if f.endsUnpredicted(s, i, s.issued) || s.phase == finishing {
			f.finishes = append(f.finishes, i)
		}
	}
	for _, i := range f.finishes {
		s := d.seqs.at(i)
		s.lastBatch, s.lastEnd = f.number, f.end
		if s.issued == s.output && d.line.Last(i) == 0 {
			d.setLast(i, f.end)
		}
	}
	if (it.slow || it.mixed) && len(f.firsts) > 0 || len(f.verified) > 0 {
		d.seqs.sortBySerial(f.finishes)
	}
}

// setLast sets the instant of the last chunk of sequence i, whose last token is of an iteration that ends at the instant
// end.
func (d *decoders) setLast(i int32, end clock.Time) {
	if !d.line.Free() {
		end = d.line.Sent(i)
	}
	d.line.SetLast(i, end)
}

// withinEdge returns how many iterations of p end by an edge, and at least 1.
func withinEdge(p *clock.Progression, edge clock.Time) int {
	if p.End(p.N) <= edge {
		return p.N
	}
	n := p.FirstEndAtOrAfter(edge)
	if p.End(n) > edge {
		n--
	}
	return max(n, 1)
}

// endsUnpredicted reports whether s, sequence i, ends in iteration f on an EOS that the engine cannot predict. issued
// is its number of issued tokens. It adds such a sequence to the lasts of f.
func (f *iteration) endsUnpredicted(s *sequence, i, issued int32) bool {
	if s.slots == s.output || issued != s.output {
		return false
	}
	f.lasts = append(f.lasts, i)
	return true
}

// reporter reports committed iterations to the observers.
type reporter struct {
	detailed bool // an observer wants every iteration sequence by sequence
	span     event.Span
	edge     clock.Time // no edge of an observer lies between the iterations reported last and this one
	step     event.Step // scratch, as span
}

// describe sets what the composed iteration has and plain ones do not have.
func (o *reporter) describe(r *Engine) {
	it, s := &r.it, &o.span
	s.Plain = r.plain.last
	s.RecomputedTokens, s.LostTokens, s.Shared = it.recomputed, it.lost, r.gpu.batch.SharedTokens
	s.PaddedRows, s.PaddedTokens, s.PaddedContext = it.padRows, it.padTokens, it.padContext
	s.Drafts, s.Accepted, s.Discarded = it.drafts, it.accepted, it.discarded
	s.SwappedBlocks, r.space.moved = r.space.moved, 0
}

// report reports the iterations of the span, in parts that do not cross the edges of an observer. used is the number of
// blocks in use in iteration 0; released blocks are free from iteration 1 on. It returns the number of blocks that the
// cohort takes from the pool from iteration 1 on.
func (o *reporter) report(r *Engine, used int, wait clock.Duration) (taken int) {
	it, c, s := &r.it, &r.cohort, &o.span
	left, step, released := s.N, c.steps, r.released
	s.Wait, s.Decodes, s.Gaps, s.Context = wait, it.decodes, it.gaps, it.context
	s.FirstTokens, s.PrefillTokens = len(it.current.firsts)-it.resumed, it.prefill
	further := !r.plain.last || !s.Plain // than what plain spans have
	if further {
		o.describe(r)
	}
	for opening := true; ; opening = false {
		n := left
		if it.leaving > 0 {
			n = 1
		}
		if n > 1 && s.End(n) > o.edge {
			o.edge = r.obs.Edge(s.Start)
			n = withinEdge(&s.Progression, o.edge)
		}
		sent := n
		if !r.out.Sent {
			sent = r.line.Send(&r.out, &s.Progression, n, &s.Delivery, opening)
			if sent == 0 || r.observed {
				sent = r.deliverListed(&s.Progression, n, sent, s, opening)
			}
		}
		if s.N, s.MostBlocks = sent, used; sent == 1 {
			s.BlockFemtos = clock.Mul64(uint64(used), uint64(s.First))
		} else {
			used -= released
			rest, last := c.takes.femtos(used, &s.Progression, step)
			s.BlockFemtos = rest.Add(clock.Mul64(uint64(released), uint64(s.First)))
			taken += last - used
			used, released, s.MostBlocks = last, 0, max(last, s.MostBlocks)
		}
		if s.UsedBlocks = used; further {
			it.reportEmpty(s, step)
		}
		r.obs.Span(s)
		if left -= sent; left == 0 {
			return taken
		}
		step += int64(sent)
		next := c.takes.at(step - 1)
		taken += next
		used, released = used-released+next, 0
		if it.empty > 0 {
			it.empty -= c.fills.over(step-1, 1) + it.leaving
			it.leaving = 0
		}
		s.Context += int64(sent) * int64(it.decodes)
		s.PaddedContext += int64(sent) * int64(it.padRows)
		s.Carry = s.CarryAfter(sent)
		s.Progression = s.Tail(sent)
		s.HostFemtos += int64(sent) * s.HostSlope
		s.Wait, s.Gaps = 0, it.decodes
		s.Delivery.First, s.Delivery.Others = it.decodes, s.Delivery.Others[:0]
		s.N, r.out.Listed = left, false
	}
}
