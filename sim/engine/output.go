package engine

import (
	"clifftop/sim/clock"
	"clifftop/sim/delivery"
	"clifftop/sim/event"
)

// What the composed iteration gives to clients, as package delivery needs it.

// deliverListed lists the sequences with output of the composed iteration, or of one that repeats it, and reports their
// chunks. The iteration is sent unless sent says that this is done, and of how many equal ones, which begin with p.
func (e *Engine) deliverListed(p *clock.Progression, n, sent int, s *event.Span, opening bool) int {
	o := &e.out
	if !o.Listed {
		e.it.listSenders()
		o.Listed = true
	}
	if sent == 0 {
		sent = e.line.Send(o, p, n, &s.Delivery, opening)
	}
	if e.observed {
		e.reportChunks(p.End(1))
	}
	return sent
}

// setPlainOutput describes what a plain composition gives to clients that is not sent in level form.
func (e *Engine) setPlainOutput() {
	it, o := &e.it, &e.out
	o.Number, o.Decodes, o.Gaps, o.Members = it.current.number, it.decodes, it.gaps, e.cohort.size
	o.InOrder, o.Settles, o.Listed = true, true, false
	o.Firsts, o.Late, o.Vain = o.Firsts[:0], o.Late[:0], o.Vain[:0]
	for _, i := range it.current.firsts {
		s := e.seqs.at(i)
		o.Firsts = append(o.Firsts, delivery.First{Seq: i, Issued: 1, Output: s.output, Ends: s.phase == finishing})
	}
}

// setOutput describes what the composed iteration gives to clients. The senders are listed only if they are needed.
func (e *Engine) setOutput() {
	it, o := &e.it, &e.out
	o.Number, o.Decodes, o.Gaps, o.Members = it.current.number, it.decodes, it.gaps, e.cohort.size
	o.Firsts, o.Late, o.Listed, o.Sent = o.Firsts[:0], o.Late[:0], it.walked, false
	for _, i := range it.current.firsts {
		s := e.seqs.at(i)
		o.Firsts = append(o.Firsts, delivery.First{Seq: i, Issued: s.issued, Output: s.output,
			Ends: s.phase == finishing, LastEnd: s.lastEnd})
	}
	for _, late := range it.late {
		o.Late = append(o.Late, delivery.Late{From: late.from, N: late.n})
	}
	o.InOrder = !it.walked && !it.slow && !it.current.partial && e.lagging == 0 && it.resumed == 0 &&
		it.decodes == e.cohort.size-it.joined
	o.Settles = e.cfg.Speculative.Tokens == 0 && e.lagging == 0 && it.resumed == 0 &&
		(it.stepped || e.cohort.size == it.joined)
	e.listVain()
}

// listVain lists the sequences that get a token in the composed iteration although the one before has completed their
// output.
func (e *Engine) listVain() {
	e.out.Vain = e.out.Vain[:0]
	if e.inFlight.n == 0 {
		return
	}
	f := e.inFlight.at(e.inFlight.n - 1)
	if len(f.lasts)+len(e.it.current.verified) == 0 {
		return
	}
	for k := range e.it.current.verified {
		row := &e.it.current.verified[k]
		if s := e.seqs.at(row.seq); row.fresh > 0 && s.issued > s.output {
			e.out.Vain = append(e.out.Vain, row.seq)
		}
	}
	for _, i := range f.lasts {
		if s := e.seqs.at(i); s.phase == decoding && e.it.hasTokenNow(s) {
			e.out.Vain = append(e.out.Vain, i)
		}
	}
}

// hasTokenNow reports whether s, which decodes, gets a token in the composed iteration.
func (it *batchBuilder) hasTokenNow(s *sequence) bool {
	return it.stepped && !s.lagging && s.joinBatch < it.current.number && !it.r.inOtherCohort(s)
}

// listSenders lists the sequences with output of an iteration in which the whole cohort has a token.
func (it *batchBuilder) listSenders() {
	r := it.r
	r.out.Senders = r.out.Senders[:0]
	for i := r.running.first; i != none; i = r.seqs.at(i).next {
		s := r.seqs.at(i)
		if s.joinBatch == it.current.number || s.phase == decoding && it.hasTokenNow(s) {
			it.addSender(i, s)
		}
	}
}

// addSender adds s, sequence i, to the sequences with output.
func (it *batchBuilder) addSender(i int32, s *sequence) {
	starts := s.joinBatch == it.current.number
	it.r.out.Senders = append(it.r.out.Senders, delivery.Sender{Seq: i, Issued: it.issued(s), Output: s.output,
		New: starts, FirstToken: starts && s.issued == 1, Swapped: s.swapped})
}

// issued returns the number of tokens of s that were issued up to the composed iteration.
func (it *batchBuilder) issued(s *sequence) int32 {
	n := s.issued
	if s.phase == decoding && s.joinBatch < it.current.number {
		n += int32(it.r.cohortOf(s).steps - s.joined)
	}
	return n
}

// reportChunks reports the chunks of the composed iteration, which ends at the instant end, to the observers.
func (e *Engine) reportChunks(end clock.Time) {
	for _, x := range e.out.Senders {
		s := e.seqs.at(x.Seq)
		if x.Issued > s.output || s.rec.Left != clock.Never || e.remote.handsOff(s) {
			continue
		}
		if !e.line.Free() {
			end = e.line.Sent(x.Seq)
		}
		e.obs.Chunk(event.Chunk{Request: s.rec.Request.ID, Replica: e.index, At: e.seen(end), Tokens: x.Issued})
	}
}
