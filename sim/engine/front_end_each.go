package engine

import (
	"cmp"
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// sendEach sends an iteration that ends at the instant end, sequence by sequence.
func (q *frontEnd) sendEach(end clock.Time, s *event.Span, number int64, opening bool) {
	e, it := q.e, &q.e.it
	q.settleAll()
	if !opening || !it.walked {
		it.listSenders()
	}
	q.holdBack(number)
	idle := q.until <= end
	q.until = max(q.until, end)
	q.joining = q.joining[:0]
	for _, i := range q.senders {
		if x := e.seqs.at(i); idle || x.sent == 0 || x.sent.Add(-q.each) < end {
			q.joining = append(q.joining, i)
		} else {
			x.placed, x.sentIn = 0, number
		}
	}
	if !idle {
		q.sortJoining()
	}
	gap, same := clock.Duration(0), 0
	for k, i := range q.joining {
		x := e.seqs.at(i)
		before, placed := x.sent, x.placed
		q.until = q.until.Add(q.each)
		if x.placed = 0; x.joinBatch == it.current.number {
			q.sent(x, q.until)
		} else {
			x.sent = q.until
		}
		if idle {
			x.placed = int32(k + 1)
		}
		switch {
		case before == 0 || x.issued == 1 && x.joinBatch == it.current.number || it.inVain(x):
		case q.interval == 1 && placed > 0 && placed == x.placed && x.sentIn == number-1 && e.pipe == nil &&
			(x.joinBatch < it.current.number || x.swapped):
			s.Delivery.First++
			q.gaps += x.sent.Sub(before)
		case x.sent.Sub(before) == gap:
			same++
		default:
			q.chunkGap(s, gap, same)
			gap, same = x.sent.Sub(before), 1
		}
		x.sentIn = number
	}
	q.chunkGap(s, gap, same)
	if q.observed {
		q.reportChunks()
	}
	q.base, q.last, q.gone = end, number, q.gone[:0]
	q.resume(end, idle)
}

// reportChunks reports the chunks of the senders to the observers.
func (q *frontEnd) reportChunks() {
	for _, i := range q.senders {
		q.reportChunk(q.e.seqs.at(i), q.e.seqs.at(i).sent)
	}
}

// reportAtOnce reports the chunks of an iteration that ends at the instant end, where sending takes no time.
func (q *frontEnd) reportAtOnce(end clock.Time) {
	if it := &q.e.it; !it.walked {
		it.listSenders()
	}
	for _, i := range q.senders {
		q.reportChunk(q.e.seqs.at(i), end)
	}
}

// reportChunk reports a chunk of s that leaves the front end at an instant, unless it is not for the client.
func (q *frontEnd) reportChunk(s *sequence, sent clock.Time) {
	if q.e.it.inVain(s) || s.rec.Left != clock.Never || q.e.connector.handsOff(s) {
		return
	}
	q.e.obs.Chunk(event.Chunk{Request: s.rec.Request.ID, Replica: q.e.index, At: q.e.seen(sent),
		Tokens: q.e.it.issued(s)})
}

// resume lets the following iterations be sent without visits to all sequences, if they can be.
func (q *frontEnd) resume(end clock.Time, idle bool) {
	e, it := q.e, &q.e.it
	c, n := &e.cohort, len(q.senders)
	if q.interval > 1 || e.pipe != nil || e.cfg.Speculative.On() || e.lagging > 0 || it.resumed > 0 || !it.stepped && c.size > it.joined {
		return
	}
	if idle {
		q.level = true
		for _, i := range it.current.firsts {
			if s := e.seqs.at(i); s.phase == finishing {
				q.goes(s.slot, s.placed)
			}
		}
		return
	}
	first := clock.Never
	for _, i := range q.senders {
		first = min(first, e.seqs.at(i).sent)
	}
	first = first.Add(-q.each)
	if n == c.size && first < end.Add(q.each) && q.until == first.Add(clock.Duration(n)*q.each) {
		q.members, q.from, q.steady = n, first, true
	}
}

// holdBack removes the sequences from senders that have no chunk in an iteration yet, by its number (as make_request_output
// of vLLM 0.11 does in v1/engine/output_processor.py). A token that is produced again, because it was dropped, is sent.
func (q *frontEnd) holdBack(number int64) {
	if q.interval == 1 {
		return
	}
	it, later := &q.e.it, int32(number-q.e.gpu.batches-1) // iterations since the composed one
	q.senders = slices.DeleteFunc(q.senders, func(i int32) bool {
		s := q.e.seqs.at(i)
		tokens := it.issued(s) + later
		if s.told > 0 && s.told < tokens && tokens-s.told < q.interval && tokens < s.output {
			return true
		}
		s.told = tokens
		return false
	})
}

// issued returns the number of tokens of s that were issued up to the composed iteration.
func (it *batchBuilder) issued(s *sequence) int32 {
	n := s.issued
	if s.phase == decoding && s.joinBatch < it.current.number {
		n += int32(it.r.steps(s) - s.joined)
	}
	return n
}

// inVain reports whether the last token of s that was issued is past its output.
func (it *batchBuilder) inVain(s *sequence) bool { return it.issued(s) > s.output }

// listSenders lists the sequences with output of an iteration in which the whole cohort has a token.
func (it *batchBuilder) listSenders() {
	r := it.r
	q := &r.outbox
	q.senders = q.senders[:0]
	for i := r.running.first; i != none; i = r.seqs.at(i).next {
		s := r.seqs.at(i)
		if s.joinBatch == it.current.number || s.phase == decoding && it.hasTokenNow(s) {
			q.senders = append(q.senders, i)
		}
	}
}

// sortJoining sorts the joining sequences by the instants of their last chunks; those without one come last. They
// consist of few ascending runs: a merge sort of these.
func (q *frontEnd) sortJoining() {
	later := func(a, b int32) int {
		return cmp.Compare(uint64(q.e.seqs.at(a).sent-1), uint64(q.e.seqs.at(b).sent-1))
	}
	for {
		list, out, runs := q.joining, q.merged[:0], 0
		for len(list) > 0 {
			a := run(list, later)
			b := run(list[a:], later)
			x, y := list[:a], list[a:a+b]
			for len(x) > 0 && len(y) > 0 {
				if later(x[0], y[0]) <= 0 {
					out, x = append(out, x[0]), x[1:]
				} else {
					out, y = append(out, y[0]), y[1:]
				}
			}
			out = append(append(out, x...), y...)
			list = list[a+b:]
			runs++
		}
		q.joining, q.merged = out, q.joining
		if runs <= 1 {
			return
		}
	}
}

// run returns the length of the ascending run at the start of a list.
func run(list []int32, compare func(a, b int32) int) int {
	n := min(1, len(list))
	for n < len(list) && compare(list[n-1], list[n]) <= 0 {
		n++
	}
	return n
}
