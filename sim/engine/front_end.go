package engine

import (
	"sort"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// frontEnd sends the outputs of iterations to the clients. It is one server with an ordered queue:
//
//   - When an iteration ends, each sequence that it gives tokens joins the queue, unless it is there already and its
//     turn has not begun: then its tokens are sent together, as one chunk, like those in vLLM's output collector.
//   - A turn takes as long as each; the chunk leaves the front end when it ends.
//   - Of the tokens of a sequence the first joins, each interval-th after it, and the last.
//   - If the front end is idle when an iteration ends, its sequences join in batch order. Otherwise those whose last
//     chunk left longest ago join first, and those without one last, in batch order. So a front end that is never idle
//     serves the same sequences round robin.
//
// All of this follows from the ends of the iterations, so it is computed when they are committed. There are three ways
// of doing so, which give equal results:
//
//   - level: the last iteration was sent in batch order from its end, base. The chunk of a member of the cohort left
//     each times its place after base, and its place follows from the stream order and the slots in gone.
//   - turning: the queue has a chunk of each of the members of the cohort and nothing else, and has been served round
//     robin since from. The member whose chunk was the k-th at from has one at each turn k, k+members, k+2·members, …
//   - Otherwise every sequence keeps the instant of its last chunk, in sent.
//
// Spans are O(1) with the first two; an iteration that is sent in another way visits all sequences. With an interval
// above 1 they all are: which sequences have a chunk differs from one iteration to the next.
type frontEnd struct {
	e        *Engine
	each     clock.Duration
	interval int32
	observed bool       // an observer wants every chunk
	until    clock.Time // when everything in the queue has been sent

	level bool
	base  clock.Time // end of the last iteration with output
	last  int64      // and its number
	gone  []gone     // sequences that got a token in that iteration and have left the cohort since, in its order

	members int        // of the queue while it is turning; 0 otherwise
	from    clock.Time // when the first turn began
	steady  bool       // the members are still those of the cohort

	senders []int32 // scratch: sequences with output, in batch order
	joining []int32
	merged  []int32
	gaps    clock.Duration // sum of all gaps between chunks, for checks
	ended   clock.Duration // sum over the sequences that have ended of the time from the first to the last chunk
}

// gone is the slot and the place of a sequence that is not in the iteration after the last one. If slots have been
// given out anew since it left, the slot is that of the sequence ahead of it.
type gone struct{ slot, place int32 }

// free reports whether each token reaches its client when its iteration ends.
func (q *frontEnd) free() bool { return q.each == 0 && q.interval == 1 }

// chunkGap counts n equal gaps between chunks in the span.
func (q *frontEnd) chunkGap(s *event.Span, gap clock.Duration, n int) {
	if n > 0 {
		q.gaps += gap * clock.Duration(n)
		s.Delivery.Others = append(s.Delivery.Others, event.ChunkGaps{Length: gap, N: n})
	}
}

// send queues the output of up to n iterations like the composed one, which begin with p, and returns of how many. It
// says in the span when clients get them. opening is true for the iteration that was composed.
func (q *frontEnd) send(p *clock.Progression, n int, s *event.Span, opening bool) int {
	it := &q.e.it
	d := &s.Delivery // field by field: whole-struct stores stall the loads that follow
	d.First, d.Later, d.Cycle, d.Others = 0, 0, 0, d.Others[:0]
	number, end := q.e.gpu.batches+1, p.End(1)
	if !opening {
		number = q.last + 1
	}
	switch {
	case it.decodes+len(it.current.firsts) == 0:
		return n
	case q.free():
		s.Delivery.First, s.Delivery.Later = s.Gaps, it.decodes
		if opening {
			q.sendAtOnce(end, s)
		}
		q.base, q.last = p.End(n), number+int64(n-1)
		if q.observed {
			q.reportAtOnce(end)
		}
		return n
	case q.interval > 1 || q.observed:
		q.sendEach(end, s, number, opening)
		return 1
	case q.level && q.until <= end && (!opening || it.inOrder()):
		return q.sendLevel(p, n, s, number, opening)
	case q.steady && number == q.last+1 && q.until > end && (!opening || it.turns(q.members)):
		return q.turn(p, n, s, number)
	}
	q.sendEach(end, s, number, opening)
	return 1
}

// sendAtOnce sends the composed iteration, which ends at the instant end, if that takes no time: the gaps between
// chunks are those between tokens, without tokens after the end of an output.
func (q *frontEnd) sendAtOnce(end clock.Time, s *event.Span) {
	it := &q.e.it
	s.Delivery.First -= len(q.vainSlots())
	for _, i := range it.current.firsts {
		x := q.e.seqs.at(i)
		if q.sent(x, end); x.issued > max(1, x.output) {
			it.countLate(x.lastEnd, -1)
			defer it.countLate(x.lastEnd, 1)
		}
	}
	for _, late := range it.late {
		q.chunkGap(s, end.Sub(late.from), late.n)
	}
}

// inOrder reports whether the composed iteration gives a token to every member of the cohort and to sequences behind
// them, and the iteration with output before it gave one to the same members.
func (it *batchBuilder) inOrder() bool {
	r := it.r
	return !it.walked && !it.slow && !it.current.partial && r.lagging == 0 && it.resumed == 0 &&
		it.decodes == r.cohort.size-it.joined
}

// turns reports whether the composed iteration gives a token to this many members of the cohort, to no other sequence,
// and to none whose output has ended.
func (it *batchBuilder) turns(members int) bool {
	return it.inOrder() && it.decodes == members && len(it.current.firsts) == 0 && len(it.r.outbox.vainSlots()) == 0
}

// vainSlots returns the slots of the sequences that get a token in the composed iteration although the one before has
// completed their output.
func (q *frontEnd) vainSlots() []int32 {
	r := q.e
	if r.inFlight.n == 0 {
		return nil
	}
	f := r.inFlight.at(r.inFlight.n - 1)
	if len(f.lasts)+len(r.it.current.verified) == 0 {
		return nil
	}
	slots := q.joining[:0]
	for k := range r.it.current.verified {
		row := &r.it.current.verified[k]
		if s := r.seqs.at(row.seq); row.fresh > 0 && s.issued > s.output {
			slots = append(slots, s.slot)
		}
	}
	for _, i := range f.lasts {
		if s := r.seqs.at(i); s.phase == decoding && r.it.hasTokenNow(s) {
			slots = append(slots, s.slot)
		}
	}
	q.joining = slots
	return slots
}

// hasTokenNow reports whether s, which decodes, gets a token in the composed iteration.
func (it *batchBuilder) hasTokenNow(s *sequence) bool {
	return it.stepped && !s.lagging && s.joinBatch < it.current.number && !it.r.inOtherCohort(s)
}

// place returns the place of s, a member of the cohort, in the iteration that was sent last, if that was level.
func (q *frontEnd) place(s *sequence) int32 {
	return q.e.running.order.upTo(s.slot) + int32(q.ahead(s.slot))
}

// ahead returns the number of sequences in gone that were ahead of a slot.
func (q *frontEnd) ahead(slot int32) int {
	n := len(q.gone)
	for n > 0 && q.gone[n-1].slot >= slot { // nearly always none is behind
		n--
	}
	return n
}

// leave returns when a place of an iteration is sent that ends at the instant end.
func (q *frontEnd) leave(end clock.Time, place int32) clock.Time {
	return end.Add(clock.Duration(place) * q.each)
}

// sendLevel sends n iterations, at most, in batch order.
func (q *frontEnd) sendLevel(p *clock.Progression, n int, s *event.Span, number int64, opening bool) int {
	it := &q.e.it
	end, all := p.End(1), it.decodes+len(it.current.firsts)
	s.Delivery.First, s.Delivery.Later = it.decodes, it.decodes
	if opening {
		q.countShifts(end, s, number)
	}
	if q.e.cfg.Check {
		q.gaps += end.Sub(q.base) * clock.Duration(s.Delivery.First)
	}
	cycle := clock.Duration(all) * q.each
	if n > 1 && p.First+p.Slope < int64(cycle)*clock.FemtosPerPico {
		n = 1 // the next iteration may end before this one is sent
	}
	q.base, q.last, q.gone = p.End(n), number+int64(n-1), q.gone[:0]
	if n > 1 {
		q.gaps += q.base.Sub(end) * clock.Duration(it.decodes)
	}
	q.until = q.base.Add(cycle)
	for k, i := range it.current.firsts {
		first, place := q.e.seqs.at(i), int32(it.decodes+k+1)
		at := q.leave(end, place)
		if first.issued > 1 && first.issued <= first.output {
			q.chunkGap(s, at.Sub(first.sent), 1)
		}
		q.sent(first, at)
		first.placed, first.sentIn = place, number
		if first.phase == finishing {
			q.goes(first.slot, place)
		}
	}
	return n
}

// countShifts counts the gaps of the members of the cohort. Those behind a sequence that has left get their chunks
// earlier than the iteration is long.
func (q *frontEnd) countShifts(end clock.Time, s *event.Span, number int64) {
	members := int32(q.e.it.decodes)
	consecutive := number == q.last+1
	vain := q.vainSlots()
	if len(q.gone)+len(vain) == 0 && consecutive {
		return
	}
	counted := int32(0)
	for k := 0; k <= len(q.gone); k++ {
		n := members - counted
		if k < len(q.gone) {
			n = min(q.gone[k].place-1-int32(k), members) - counted
		}
		counted += n
		for _, slot := range vain {
			if (k == 0 || slot > q.gone[k-1].slot) && (k == len(q.gone) || slot <= q.gone[k].slot) {
				n--
			}
		}
		if k == 0 && consecutive {
			s.Delivery.First = int(n)
			continue
		}
		q.chunkGap(s, end.Sub(q.base)-clock.Duration(k)*q.each, int(n))
	}
	if !consecutive {
		s.Delivery.First = 0
	}
}

// sent notes that a chunk of s, which completed a prefill, leaves at an instant.
func (q *frontEnd) sent(s *sequence, at clock.Time) {
	if s.sent = at; s.issued == 1 {
		s.first = at
	}
}

// latest returns when the latest chunk of s leaves.
func (q *frontEnd) latest(s *sequence) clock.Time {
	switch {
	case s.phase != decoding:
		return s.sent
	case q.level:
		return q.leave(q.base, q.place(s))
	case q.members > 0:
		return q.sentAt(s)
	case q.free():
		return q.base
	}
	return s.sent
}

// end notes that s ends, for checks.
func (q *frontEnd) end(s *sequence) {
	if q.e.cfg.Check {
		q.ended += q.elapsed(s)
	}
}

// elapsed returns the time from the first chunk of s to its last one so far. Chunks after the end of its output do not
// count.
func (q *frontEnd) elapsed(s *sequence) clock.Duration {
	switch {
	case s.sent == 0:
		return 0
	case s.last != 0:
		return s.last.Sub(s.first)
	}
	return q.latest(s).Sub(s.first)
}

// turn sends n iterations, at most, while the queue is turning.
func (q *frontEnd) turn(p *clock.Progression, n int, s *event.Span, number int64) int {
	cycle := clock.Duration(q.members) * q.each
	femtos := int64(cycle) * clock.FemtosPerPico
	const ulp = clock.FemtosPerPico // instants are rounded to picoseconds
	switch {
	case p.First+int64(n-1)*p.Slope <= femtos-ulp: // every iteration is shorter than a cycle
	case p.First <= femtos-ulp:
		n = int((femtos-ulp-p.First)/p.Slope) + 1
	case p.First < femtos:
		n = 1
	default: // each is longer, and the queue becomes a little shorter
		n = sort.Search(n, func(k int) bool { return q.until.Add(clock.Duration(k)*cycle) <= p.End(k+1) })
	}
	end := p.End(n)
	s.Delivery.Cycle, s.Delivery.Each, s.Delivery.Turn = cycle, q.each, q.until
	begun := clock.Duration(0)
	if now := q.until.Add(-cycle); now < end {
		begun = (end.Sub(now) + q.each - 1) / q.each
	}
	q.until = q.until.Add(begun * q.each)
	q.gaps += begun * cycle
	q.base, q.last = end, number+int64(n-1)
	return n
}

// sentAt returns when the last chunk of a member of the queue leaves that is turning.
func (q *frontEnd) sentAt(s *sequence) clock.Time {
	members := int64(q.members)
	if s.sent <= q.from {
		return s.sent
	}
	turn := int64(s.sent.Sub(q.from))/int64(q.each) - 1
	again := int64(q.until.Sub(q.from))/int64(q.each) - members // turns that were added
	if again > turn {
		turn += (again - turn + members - 1) / members * members
	}
	return q.from.Add(clock.Duration(turn+1) * q.each)
}

// leaves notes when the last chunk of s, which leaves the cohort, is sent.
func (q *frontEnd) leaves(s *sequence) {
	switch {
	case q.free():
		s.sent = q.base
	case q.level:
		q.settle(s)
		q.goes(s.slot, s.placed)
	case q.members > 0:
		q.settle(s)
		q.steady = false
	}
}

// goes adds the slot and the place of a sequence that is not in the iteration after the last one.
func (q *frontEnd) goes(slot, place int32) {
	k := q.ahead(slot)
	if q.gone = append(q.gone, gone{slot, place}); k < len(q.gone)-1 {
		copy(q.gone[k+1:], q.gone[k:])
		q.gone[k] = gone{slot, place}
	}
}

// settle gives s, a member of the cohort, the instant of its last chunk.
func (q *frontEnd) settle(s *sequence) {
	switch {
	case q.level:
		s.placed, s.sentIn = q.place(s), q.last
		s.sent = q.leave(q.base, s.placed)
	case q.members > 0:
		s.sent = q.sentAt(s)
		s.placed, s.sentIn = 0, q.last
	}
}

// settleAll gives all members of the cohort the instants of their last chunks. Those that join it in the iteration that
// is being composed keep theirs, but may be in the stream order already.
func (q *frontEnd) settleAll() {
	if q.level || q.members > 0 {
		joined := int32(0)
		for i := q.e.running.first; i != none; i = q.e.seqs.at(i).next {
			switch s := q.e.seqs.at(i); {
			case s.phase != decoding:
			case s.joinBatch == q.e.it.current.number:
				joined++
			default:
				if q.settle(s); q.level {
					s.placed -= joined
					s.sent = q.leave(q.base, s.placed)
				}
			}
		}
	}
	q.level, q.members, q.steady = false, 0, false
}
