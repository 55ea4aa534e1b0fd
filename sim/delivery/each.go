package delivery

import (
	"cmp"
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// sendEach sends an iteration that ends at the instant end, sequence by sequence. Senders that have no chunk in it are
// removed from the output.
func (l *Line) sendEach(o *Output, end clock.Time, d *event.Delivery, number int64) {
	l.settleAll(o.Number)
	l.holdBack(o, number)
	idle := l.until <= end
	l.until = max(l.until, end)
	l.joining = l.joining[:0]
	for _, x := range o.Senders {
		if s := &l.streams[x.Seq]; idle || s.sent == 0 || s.sent.Add(-l.Each) < end {
			l.joining = append(l.joining, x)
		} else {
			s.placed, s.sentIn = 0, number
		}
	}
	if !idle {
		l.sortJoining()
	}
	gap, same := clock.Duration(0), 0
	for k := range l.joining {
		x := &l.joining[k]
		s := &l.streams[x.Seq]
		before, placed := s.sent, s.placed
		l.until = l.until.Add(l.Each)
		if s.sent = l.until; x.FirstToken {
			s.first = l.until
		}
		if s.placed = 0; idle {
			s.placed = int32(k + 1)
		}
		switch {
		case before == 0 || x.FirstToken || x.vain():
		case l.Interval == 1 && placed > 0 && placed == s.placed && s.sentIn == number-1 && !l.Staged &&
			(!x.New || x.Swapped):
			d.First++
			l.gaps += s.sent.Sub(before)
		case s.sent.Sub(before) == gap:
			same++
		default:
			l.chunkGap(d, gap, same)
			gap, same = s.sent.Sub(before), 1
		}
		s.sentIn = number
	}
	l.chunkGap(d, gap, same)
	l.base, l.last, l.gone = end, number, l.gone[:0]
	l.resume(o, end, idle)
}

// settleAll gives all decoding sequences the instants of their last chunks. Those that begin to decode after the
// composed iteration, whose number is given, keep theirs, but are in the stream order already.
func (l *Line) settleAll(number int64) {
	if l.level || l.members > 0 {
		joined := int32(0)
		for _, i := range l.bySlot {
			if i == none || !l.streams[i].decodes {
				continue
			}
			s := &l.streams[i]
			if s.joined == number {
				joined++
			} else if l.settle(s); l.level {
				s.placed -= joined
				s.sent = l.leave(l.base, s.placed)
			}
		}
	}
	l.level, l.members, l.steady = false, 0, false
}

// resume lets the following iterations be sent without visits to all sequences, if they can be.
func (l *Line) resume(o *Output, end clock.Time, idle bool) {
	if l.Interval > 1 || l.Staged || !o.Settles {
		return
	}
	if idle {
		l.level = true
		for k := range o.Firsts {
			if f := &o.Firsts[k]; f.Ends {
				s := &l.streams[f.Seq]
				l.goes(l.ahead(s.slot), s.slot, s.placed)
			}
		}
		return
	}
	first, n := clock.Never, len(o.Senders)
	for _, x := range o.Senders {
		first = min(first, l.streams[x.Seq].sent)
	}
	first = first.Add(-l.Each)
	if n == o.Members && first < end.Add(l.Each) && l.until == first.Add(clock.Duration(n)*l.Each) {
		l.members, l.from, l.steady = n, first, true
	}
}

// holdBack removes the senders that have no chunk in an iteration yet, by its number (as make_request_output of vLLM
// 0.11 does in v1/engine/output_processor.py). A token that is produced again, because it was dropped, is sent.
func (l *Line) holdBack(o *Output, number int64) {
	if l.Interval == 1 {
		return
	}
	later := int32(number - o.Number) // iterations since the composed one
	o.Senders = slices.DeleteFunc(o.Senders, func(x Sender) bool {
		s, tokens := &l.streams[x.Seq], x.Issued+later
		if s.told > 0 && s.told < tokens && tokens-s.told < l.Interval && tokens < x.Output {
			return true
		}
		s.told = tokens
		return false
	})
}

// sortJoining sorts the joining sequences by the instants of their last chunks; those without one come last. They
// consist of few ascending runs: a merge sort of these.
func (l *Line) sortJoining() {
	later := func(a, b Sender) int {
		return cmp.Compare(uint64(l.streams[a.Seq].sent-1), uint64(l.streams[b.Seq].sent-1))
	}
	for {
		list, out, runs := l.joining, l.merged[:0], 0
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
		l.joining, l.merged = out, l.joining
		if runs <= 1 {
			return
		}
	}
}

// run returns the length of the ascending run at the start of a list.
func run(list []Sender, compare func(a, b Sender) int) int {
	n := min(1, len(list))
	for n < len(list) && compare(list[n-1], list[n]) <= 0 {
		n++
	}
	return n
}
