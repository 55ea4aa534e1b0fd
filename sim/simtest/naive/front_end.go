package naive

import (
	"cmp"
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// frontEnd sends the outputs of iterations to the clients, one request after the other.
type frontEnd struct {
	each     clock.Duration // time for one request
	interval int32          // tokens of a chunk
	until    clock.Time     // when it has sent all that is in its queue
}

// chunks is the state of the stream to the client of a sequence.
type chunks struct {
	sent clock.Time // when its last chunk leaves the front end; Never if none was queued
	// rank is the place of that chunk among those of its iteration, if the front end was idle when the iteration ended,
	// and 0 otherwise.
	rank int
	// told is the number of tokens up to the last chunk that was queued.
	told int32
	// lastIteration and lastEnd are the number and the end of the iteration that gave its last token.
	lastIteration int
	lastEnd       clock.Time
}

// waits reports whether the front end has not begun at an instant to send the last chunk of s.
func (f *frontEnd) waits(s *sequence, at clock.Time) bool {
	return s.sent != clock.Never && s.sent-clock.Time(f.each) >= at
}

// tells reports whether the tokens of a share are queued: the first one of a request, each interval-th after it, and
// the last one. A token that is produced again, because it was dropped, is queued again.
func (f *frontEnd) tells(sh *share) bool {
	s := sh.seq
	produced := s.scheduled
	return f.interval == 1 || s.told == 0 || produced-s.told >= f.interval || produced >= s.output ||
		produced <= s.told
}

// order returns the shares of an iteration that join the queue when it ends, in the order in which they do: all of them
// in batch order if the front end is idle. Otherwise the tokens of a sequence that waits are sent with those before;
// of the others, those that were sent longest ago come first, and those that are new last.
func (f *frontEnd) order(it *iteration) (joining []*share) {
	idle := f.until <= it.end
	for k := range it.shares {
		if sh := &it.shares[k]; sh.emits && f.tells(sh) {
			if sh.seq.told = sh.seq.scheduled; idle || !f.waits(sh.seq, it.end) {
				joining = append(joining, sh)
			}
		}
	}
	if !idle {
		slices.SortStableFunc(joining, func(a, b *share) int { return cmp.Compare(a.seq.sent, b.seq.sent) })
	}
	return joining
}

// sendOutputs queues the outputs of an iteration that was just scheduled, and notes the gaps between chunks in its
// span.
func (n *Engine) sendOutputs(it *iteration, span *event.Span) {
	f := &n.outbox
	joining := f.order(it)
	idle := f.until <= it.end
	f.until = max(f.until, it.end)
	for k := range it.shares {
		if s := it.shares[k].seq; it.shares[k].emits && !slices.Contains(joining, &it.shares[k]) {
			s.rank = 0
		}
	}
	for k, sh := range joining {
		s, before := sh.seq, sh.seq.chunks
		f.until = f.until.Add(f.each)
		s.sent, s.rank = f.until, 0
		if idle {
			s.rank = k + 1
		}
		level := before.rank > 0 && s.rank > 0 && (before.rank == s.rank || f.each == 0) &&
			f.interval == 1 && s.lastIteration == n.gpu.launched-1 && n.gpu.pipeline == nil && !sh.chunk
		switch {
		case sh.first || sh.vain:
		case level:
			span.Delivery.First++
		default:
			span.Delivery.Others = append(span.Delivery.Others, event.ChunkGaps{Length: s.sent.Sub(before.sent), N: 1})
		}
	}
	for k := range it.shares {
		it.shares[k].seen = it.shares[k].seq.sent
	}
}
