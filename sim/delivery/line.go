// Package delivery computes when the clients of an engine get its output. It knows sequences by a number, and exchanges
// values with the engine: what an iteration gives to whom, and which gaps between chunks that makes.
package delivery

import (
	"sort"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Line is the front end of an engine, which sends the output of iterations to the clients. It is one server with an
// ordered queue:
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
//   - level: the last iteration was sent in batch order from its end, base. The chunk of a decoding sequence left
//     each times its place after base, and its place follows from the stream order and the slots in gone.
//   - turning: the queue has a chunk of each of the decoding sequences and nothing else, and has been served round
//     robin since from. The sequence whose chunk was the k-th at from has one at each turn k, k+members, k+2·members, …
//   - Otherwise every sequence keeps the instant of its last chunk, in sent.
//
// Spans are O(1) with the first two; an iteration that is sent in another way visits all sequences. With an interval
// above 1 they all are: which sequences have a chunk differs from one iteration to the next.
type Line struct {
	Config
	streams []stream // by sequence
	order            // of the running sequences

	until clock.Time // when everything in the queue has been sent
	level bool
	base  clock.Time // end of the last iteration with output
	last  int64      // and its number
	gone  []gone     // sequences that got a token in that iteration and have stopped decoding since, in its order

	members int        // of the queue while it is turning; 0 otherwise
	from    clock.Time // when the first turn began
	steady  bool       // the members are still the decoding sequences

	joining []Sender // scratch
	merged  []Sender
	sums
}

// Config is the constants of a front end.
type Config struct {
	Each     clock.Duration // time to send the output of a sequence
	Interval int32          // tokens of a chunk
	Staged   bool           // the engine has pipeline stages
	Singly   bool           // every chunk is asked for: iterations are sent sequence by sequence
	Check    bool           // the sums for [Line.Imbalance] are kept
}

// sums are for checks.
type sums struct {
	gaps  clock.Duration // of all gaps between chunks
	ended clock.Duration // over the sequences that have ended, of the time from the first to the last chunk
}

// stream is the progress of the stream to the client of a sequence.
type stream struct {
	// first, last and sent are when the first, the last and the latest chunk leave the front end. sent is not kept
	// while the sequence decodes and the line is level or turning.
	first, last, sent clock.Time
	sentIn            int64 // the latest iteration with a token
	joined            int64 // the iteration after which it began to decode
	slot              int32 // its slot in the stream order
	placed            int32 // the place of the latest chunk in its iteration, if the front end was idle; 0 otherwise
	told              int32 // tokens up to the latest chunk, if the front end holds tokens back
	decodes           bool
	live              bool // it has not ended
}

// gone is the slot and the place of a sequence that is not in the iteration after the last one. If slots have been
// given out anew since it left, the slot is that of the sequence ahead of it.
type gone struct{ slot, place int32 }

// Output is what an iteration gives to clients, or each of several equal iterations.
type Output struct {
	Number  int64 // of the iteration that was composed
	Decodes int   // decoding sequences with a token
	Gaps    int   // of them those whose last token is of the iteration before
	Firsts  []First
	Late    []Late // gaps between tokens that are longer than the iteration
	// InOrder means that each decoding sequence has a token, and then sequences behind them in the running batch.
	InOrder bool
	// Vain are sequences that get a token after the end of their output.
	Vain []int32
	// Senders are the sequences with a token, in batch order, if they are Listed.
	Senders []Sender
	Listed  bool
	Sent    bool // [Line.SendLevel] has sent all iterations
	// Settles means that after this iteration the decoding sequences, as many as Members, go on in step.
	Settles bool
	Members int
}

// First is a sequence that produces a token at the end of its prefill.
type First struct {
	Seq            int32
	Issued, Output int32      // tokens with this one, and in all
	Ends           bool       // it does not decode after this
	LastEnd        clock.Time // end of the iteration of its token before, if it has one
}

// Late is n gaps between tokens that began at an instant.
type Late struct {
	From clock.Time
	N    int
}

// Sender is a sequence with a token.
type Sender struct {
	Seq            int32
	Issued, Output int32 // tokens with this one, and in all
	New            bool  // it has completed a prefill in this iteration
	FirstToken     bool  // and this is its first token
	Swapped        bool  // it continues after its KV was in host memory
}

// vain reports whether the token is past the output.
func (s *Sender) vain() bool { return s.Issued > s.Output }

// Free reports whether each token reaches its client when its iteration ends.
func (l *Line) Free() bool { return l.Each == 0 && l.Interval == 1 }

// Begin begins the stream of sequence i.
func (l *Line) Begin(i int32) {
	for int(i) >= len(l.streams) {
		l.streams = append(l.streams, stream{})
	}
	l.streams[i] = stream{live: true}
}

// End ends the stream of sequence i.
func (l *Line) End(i int32) {
	if l.Check {
		l.ended += l.elapsed(i)
	}
	l.streams[i].live = false
}

// First returns when the first chunk of sequence i leaves the front end.
func (l *Line) First(i int32) clock.Time { return l.streams[i].first }

// Sent returns when the latest chunk of sequence i, which does not decode, leaves the front end.
func (l *Line) Sent(i int32) clock.Time { return l.streams[i].sent }

// Last returns when the last chunk of sequence i leaves the front end; 0 while that is not known.
func (l *Line) Last(i int32) clock.Time { return l.streams[i].last }

// SetLast sets when the last chunk of sequence i leaves the front end. 0 takes it back.
func (l *Line) SetLast(i int32, at clock.Time) { l.streams[i].last = at }

// Finishes notes that the chunk of sequence i that was sent last is its last one.
func (l *Line) Finishes(i int32) { l.streams[i].last = l.streams[i].sent }

// Latest returns when the latest chunk of sequence i leaves.
func (l *Line) Latest(i int32) clock.Time {
	s := &l.streams[i]
	switch {
	case !s.decodes:
		return s.sent
	case l.level:
		return l.leave(l.base, l.place(s))
	case l.members > 0:
		return l.sentAt(s)
	case l.Free():
		return l.base
	}
	return s.sent
}

// Imbalance returns the sum of all gaps between chunks and the sum of the times from the first to the last chunks. They
// are equal.
func (l *Line) Imbalance() (gaps, elapsed clock.Duration) {
	elapsed = l.ended
	for i := range l.streams {
		if l.streams[i].live {
			elapsed += l.elapsed(int32(i))
		}
	}
	return l.gaps, elapsed
}

// elapsed returns the time from the first chunk of sequence i to its last one so far. Chunks after the end of its
// output do not count.
func (l *Line) elapsed(i int32) clock.Duration {
	switch s := &l.streams[i]; {
	case s.sent == 0:
		return 0
	case s.last != 0:
		return s.last.Sub(s.first)
	default:
		return l.Latest(i).Sub(s.first)
	}
}

// turns reports whether an iteration gives a token to each sequence of the turning queue, to no other sequence, and to
// none whose output has ended.
func (l *Line) turns(o *Output, number int64, end clock.Time, opening bool) bool {
	return l.steady && number == l.last+1 && l.until > end && (!opening ||
		o.InOrder && o.Decodes == l.members && len(o.Firsts) == 0 && len(o.Vain) == 0)
}

// Send queues the output of up to n equal iterations, the first ones of p, and returns of how many. It says in d when
// clients get it. opening is true for the iteration that was composed, and false for one that repeats it. If Send
// returns 0, the senders must be listed.
func (l *Line) Send(o *Output, p *clock.Progression, n int, d *event.Delivery, opening bool) int {
	d.First, d.Later, d.Cycle, d.Others = 0, 0, 0, d.Others[:0] // whole-struct stores stall the loads that follow
	if o.Decodes+len(o.Firsts) == 0 {
		return n
	}
	number, end := l.last+1, p.End(1)
	if opening {
		number = o.Number
	}
	switch {
	case l.Free():
		if d.First, d.Later = o.Decodes, o.Decodes; opening {
			d.First = o.Gaps
			l.sendAtOnce(o, end, d)
		}
		l.base, l.last = p.End(n), number+int64(n-1)
		return n
	case l.Interval > 1 || l.Singly:
	case l.level && l.until <= end && (!opening || o.InOrder):
		return l.sendLevel(o, p, n, d, number, end, opening)
	case l.turns(o, number, end, opening):
		return l.turn(p, n, d, number)
	}
	if !o.Listed {
		return 0
	}
	l.sendEach(o, end, d, number)
	return 1
}

// chunkGap counts n equal gaps between chunks.
func (l *Line) chunkGap(d *event.Delivery, gap clock.Duration, n int) {
	if n > 0 {
		l.gaps += gap * clock.Duration(n)
		d.Others = append(d.Others, event.ChunkGaps{Length: gap, N: n})
	}
}

// sendAtOnce sends the composed iteration, which ends at the instant end, if that takes no time: the gaps between
// chunks are those between tokens, without tokens after the end of an output.
func (l *Line) sendAtOnce(o *Output, end clock.Time, d *event.Delivery) {
	d.First -= len(o.Vain)
	for k := range o.Firsts {
		l.sent(&o.Firsts[k], end)
	}
	for _, late := range o.Late {
		n := late.N
		for k := range o.Firsts {
			if f := &o.Firsts[k]; f.Issued > max(1, f.Output) && f.LastEnd == late.From {
				n--
			}
		}
		l.chunkGap(d, end.Sub(late.From), n)
	}
}

// sent notes that a chunk of a sequence that completed a prefill leaves at an instant.
func (l *Line) sent(f *First, at clock.Time) {
	s := &l.streams[f.Seq]
	if s.sent = at; f.Issued == 1 {
		s.first = at
	}
}

// leave returns when a place of an iteration is sent that ends at the instant end.
func (l *Line) leave(end clock.Time, place int32) clock.Time {
	return end.Add(clock.Duration(place) * l.Each)
}

// SendLevel sends all iterations of p in batch order, if the line is level and each of them ends when the one before
// has been sent. It reports whether it has sent them, and says in d when clients get iteration 0; in the others a gap
// is as long as the iteration. p begins with the iteration of a number. In each of them all decoding sequences have a
// token, and in iteration 0 firsts have one, which have completed a prefill.
func (l *Line) SendLevel(number int64, decodes int, firsts []int32, p *clock.Progression, d *event.Delivery) bool {
	d.First, d.Later, d.Cycle = decodes, decodes, 0
	d.Others = d.Others[:0]
	if decodes+len(firsts) == 0 {
		return true
	}
	end := p.End(1)
	if !l.level || l.until > end {
		return false
	}
	base, cycle := end, clock.Duration(decodes+len(firsts))*l.Each
	if p.N > 1 {
		if p.First+p.Slope < int64(cycle)*clock.FemtosPerPico {
			return false // the next iteration may end before this one is sent
		}
		base = p.End(p.N)
	}
	if len(l.gone) > 0 || number != l.last+1 {
		l.countShifts(number, decodes, nil, end, d)
	}
	if l.Check {
		l.gaps += end.Sub(l.base)*clock.Duration(d.First) + base.Sub(end)*clock.Duration(decodes)
	}
	l.last, l.base, l.until = number+int64(p.N-1), base, base+clock.Time(cycle)
	l.gone = l.gone[:0]
	for k, i := range firsts {
		l.streams[i].first = l.sentLevel(i, int32(decodes+k+1), end, number)
	}
	return true
}

// sendLevel is SendLevel for n iterations, at most, of any kind. It returns how many it has sent, at least one.
func (l *Line) sendLevel(o *Output, p *clock.Progression, n int, d *event.Delivery, number int64, end clock.Time,
	opening bool) int {
	d.First, d.Later = o.Decodes, o.Decodes
	if opening && (len(l.gone)+len(o.Vain) > 0 || number != l.last+1) {
		l.countShifts(number, o.Decodes, o.Vain, end, d)
	}
	cycle := clock.Duration(o.Decodes+len(o.Firsts)) * l.Each
	if n > 1 && p.First+p.Slope < int64(cycle)*clock.FemtosPerPico {
		n = 1
	}
	base := p.End(n)
	l.gaps += end.Sub(l.base)*clock.Duration(d.First) + base.Sub(end)*clock.Duration(o.Decodes)
	l.last, l.base, l.until = number+int64(n-1), base, base.Add(cycle)
	l.gone = l.gone[:0]
	for k := range o.Firsts {
		f, s := &o.Firsts[k], &l.streams[o.Firsts[k].Seq]
		before := s.sent
		at := l.sentLevel(f.Seq, int32(o.Decodes+k+1), end, number)
		if f.Issued == 1 {
			s.first = at
		} else if f.Issued <= f.Output {
			l.chunkGap(d, at.Sub(before), 1)
		}
	}
	return n
}

// sentLevel notes that sequence i, which has completed a prefill, has a place in the iteration of a number that is sent
// in batch order from its end. It returns when its chunk leaves.
func (l *Line) sentLevel(i, place int32, end clock.Time, number int64) clock.Time {
	s := &l.streams[i]
	s.sent, s.placed, s.sentIn = l.leave(end, place), place, number
	if !s.decodes {
		l.goes(l.ahead(s.slot), s.slot, place)
	}
	return s.sent
}

// countShifts counts the gaps of the decoding sequences in the iteration of a number, which ends at an instant. Those
// behind a sequence that has left get their chunks earlier than the iteration is long.
func (l *Line) countShifts(number int64, decodes int, vain []int32, end clock.Time, d *event.Delivery) {
	members, counted := int32(decodes), int32(0)
	gap := end.Sub(l.base)
	for k := 0; k <= len(l.gone); k++ {
		n := members - counted
		if k < len(l.gone) {
			n = min(l.gone[k].place-1-int32(k), members) - counted
		}
		counted += n
		for _, i := range vain {
			slot := l.streams[i].slot
			if (k == 0 || slot > l.gone[k-1].slot) && (k == len(l.gone) || slot <= l.gone[k].slot) {
				n--
			}
		}
		if k == 0 && number == l.last+1 {
			d.First = int(n)
			continue
		}
		l.chunkGap(d, gap-clock.Duration(k)*l.Each, int(n))
	}
	if number != l.last+1 {
		d.First = 0
	}
}

// turn sends n iterations, at most, while the queue is turning.
func (l *Line) turn(p *clock.Progression, n int, d *event.Delivery, number int64) int {
	cycle := clock.Duration(l.members) * l.Each
	femtos := int64(cycle) * clock.FemtosPerPico
	const ulp = clock.FemtosPerPico // instants are rounded to picoseconds
	switch {
	case p.First+int64(n-1)*p.Slope <= femtos-ulp: // every iteration is shorter than a cycle
	case p.First <= femtos-ulp:
		n = int((femtos-ulp-p.First)/p.Slope) + 1
	case p.First < femtos:
		n = 1
	default: // each is longer, and the queue becomes a little shorter
		n = sort.Search(n, func(k int) bool { return l.until.Add(clock.Duration(k)*cycle) <= p.End(k+1) })
	}
	end := p.End(n)
	d.Cycle, d.Each, d.Turn = cycle, l.Each, l.until
	begun := clock.Duration(0)
	if now := l.until.Add(-cycle); now < end {
		begun = (end.Sub(now) + l.Each - 1) / l.Each
	}
	l.until = l.until.Add(begun * l.Each)
	l.gaps += begun * cycle
	l.base, l.last = end, number+int64(n-1)
	return n
}

// sentAt returns when the last chunk of a member of the queue leaves that is turning.
func (l *Line) sentAt(s *stream) clock.Time {
	members := int64(l.members)
	if s.sent <= l.from {
		return s.sent
	}
	turn := int64(s.sent.Sub(l.from))/int64(l.Each) - 1
	again := int64(l.until.Sub(l.from))/int64(l.Each) - members // turns that were added
	if again > turn {
		turn += (again - turn + members - 1) / members * members
	}
	return l.from.Add(clock.Duration(turn+1) * l.Each)
}

// settle gives s, which decodes, the instant of its last chunk.
func (l *Line) settle(s *stream) {
	switch {
	case l.level:
		s.placed, s.sentIn = l.place(s), l.last
		s.sent = l.leave(l.base, s.placed)
	case l.members > 0:
		s.sent = l.sentAt(s)
		s.placed, s.sentIn = 0, l.last
	}
}
