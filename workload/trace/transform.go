package trace

import (
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Each step here turns one Reader into another. Rows keep the ID that they have in the file until the
// end, so that a decision about a row does not depend on the steps before.

// Domains of the decisions, so that they do not go together.
const (
	thinRows = iota + 1
	thinSessions
	jitter
	copies
)

// step is the reader that a step takes its rows from.
type step struct{ Reader }

// Close closes the trace at the bottom.
func (s step) Close() error {
	shut(s.Reader)
	return nil
}

// shut closes a reader that is not read to its end.
func shut(r Reader) {
	if c, ok := r.(io.Closer); ok {
		c.Close() // only read from: nothing can be lost
	}
}

// slice keeps the rows in from ≤ arrival < to and lets the time begin at from. To 0 is no end.
type slice struct {
	step
	from, to clock.Time
}

func (s *slice) Next() (workload.Request, error) {
	for {
		r, err := s.Reader.Next()
		if err != nil {
			return r, err
		}
		if r.Arrival < s.from {
			continue
		}
		if s.to > 0 && r.Arrival >= s.to {
			shut(s.Reader)
			return workload.Request{}, io.EOF
		}
		r.Arrival -= s.from
		return r, nil
	}
}

// spread undoes a coarse recording clock: every row gets a random place in its tick. Rows of a session
// keep their order.
type spread struct {
	step
	quantum clock.Duration
	seed    uint64
	tick    []workload.Request // of one tick, in the new order
	ahead   workload.Request   // the first row of the next
	has     bool
	err     error
}

func (s *spread) Next() (workload.Request, error) {
	for len(s.tick) == 0 {
		if !s.has {
			if s.err != nil {
				return workload.Request{}, s.err
			}
			if s.ahead, s.err = s.Reader.Next(); s.err != nil {
				return workload.Request{}, s.err
			}
			s.has = true
		}
		s.fill()
	}
	r := s.tick[0]
	s.tick = s.tick[1:]
	return r, nil
}

// fill takes the rows of a tick and spreads them.
func (s *spread) fill() {
	at := s.ahead.Arrival
	s.tick = append(s.tick[:0], s.ahead)
	for s.has = false; s.err == nil; {
		var r workload.Request
		if r, s.err = s.Reader.Next(); s.err != nil {
			break
		}
		if r.Arrival != at {
			s.ahead, s.has = r, true
			break
		}
		s.tick = append(s.tick, r)
	}
	width := s.quantum // ticks are not quite even: never past the next
	if s.has {
		width = min(width, s.ahead.Arrival.Sub(at))
	}
	var src rand.PCG
	latest := map[int32]clock.Time{} // of each session
	for i := range s.tick {
		r := &s.tick[i]
		src.Seed(workload.Hash(s.seed, jitter), uint64(r.ID))
		r.Arrival += clock.Time(rand.New(&src).Int64N(int64(width)))
		if r.Session != 0 {
			r.Arrival = max(r.Arrival, latest[r.Session])
			latest[r.Session] = r.Arrival
		}
	}
	slices.SortStableFunc(s.tick, byArrival)
}

func byArrival(a, b workload.Request) int {
	switch {
	case a.Arrival < b.Arrival:
		return -1
	case a.Arrival > b.Arrival:
		return 1
	}
	return 0
}

// keeps decides whether a row belongs to the share of a trace that is kept: whole sessions stay or go.
// It depends on the seed and the row's identity alone.
func keeps(r *workload.Request, share float64, seed uint64) bool {
	h := workload.Hash(workload.Hash(seed, thinRows), uint64(r.ID))
	if r.Session != 0 {
		h = workload.Hash(workload.Hash(seed, thinSessions), uint64(r.Session))
	}
	return float64(h) < share*math.Exp2(64)
}

type thin struct {
	step
	share float64
	seed  uint64
}

func (t *thin) Next() (workload.Request, error) {
	for {
		r, err := t.Reader.Next()
		if err != nil || keeps(&r, t.share, t.seed) {
			return r, err
		}
	}
}

// superposed plays several copies of a trace at once, the later ones shifted round the span. Rows that
// are pushed past its end come at the beginning. Copies share nothing: their sessions and the
// identities of their prompts are kept apart.
type superposed struct {
	rows     []workload.Request
	from     clock.Time // arrival of the first row
	span     clock.Duration
	sessions int32
	voices   []voice
	seed     uint64
}

// voice is one copy.
type voice struct {
	shift clock.Duration
	next  int        // index into the rows
	left  int        // rows to come
	at    clock.Time // of the next
	share float64    // of the rows; 1 is all
}

func superpose(rows []workload.Request, s Stats, whole int, part float64, seed uint64) *superposed {
	p := &superposed{rows: rows, from: s.First, span: s.Span(), sessions: s.Sessions, seed: seed}
	n := whole
	if part > 0 {
		n++
	}
	for c := range n {
		v := voice{shift: clock.Duration(float64(p.span) * (float64(c) / float64(n))), left: len(rows), share: 1}
		if c == whole {
			v.share = part
		}
		// The first row that the shift pushes past the end begins the copy.
		v.next, _ = slices.BinarySearchFunc(rows, p.from.Add(p.span-v.shift), func(r workload.Request, at clock.Time) int {
			if r.Arrival < at {
				return -1
			}
			return 1
		})
		v.next %= len(rows)
		p.settle(&v, uint64(c))
		p.voices = append(p.voices, v)
	}
	return p
}

// settle moves a voice on to the next row that it plays, and finds its time.
func (p *superposed) settle(v *voice, c uint64) {
	for v.left > 0 && v.share < 1 && !keeps(&p.rows[v.next], v.share, workload.Hash(p.seed, copies+c)) {
		v.advance(len(p.rows))
	}
	if v.left == 0 {
		return
	}
	at := p.rows[v.next].Arrival.Add(v.shift)
	if at.Sub(p.from) >= p.span {
		at -= clock.Time(p.span)
	}
	v.at = at
}

func (v *voice) advance(n int) {
	v.left--
	if v.next++; v.next == n {
		v.next = 0
	}
}

func (p *superposed) Next() (workload.Request, error) {
	first := -1
	for c := range p.voices {
		if p.voices[c].left > 0 && (first < 0 || p.voices[c].at < p.voices[first].at) {
			first = c
		}
	}
	if first < 0 {
		return workload.Request{}, io.EOF
	}
	v := &p.voices[first]
	r := p.rows[v.next]
	r.Arrival = v.at
	if first > 0 {
		p.keepApart(&r, int32(first))
	}
	v.advance(len(p.rows))
	p.settle(v, uint64(first))
	return r, nil
}

// keepApart gives the request sessions and texts of its copy's own. Answers of the session stay the
// answers of the session.
func (p *superposed) keepApart(r *workload.Request, c int32) {
	old := r.Session
	if old != 0 {
		r.Session += c * p.sessions
	}
	if r.Content == nil {
		return
	}
	segments := make([]workload.Segment, len(r.Content.Segments))
	for i, s := range r.Content.Segments {
		id := workload.Hash(workload.Hash(copies, uint64(c)), s.ID)
		if old != 0 {
			for turn := range r.Turn {
				if s.ID == workload.AnswerID(old, turn) {
					id = workload.AnswerID(r.Session, turn)
				}
			}
		}
		segments[i] = workload.Segment{ID: id, Tokens: s.Tokens}
	}
	r.Content = &workload.Content{Segments: segments}
}

// speedUp divides all times.
type speedUp struct {
	step
	factor float64
}

func (s *speedUp) Next() (workload.Request, error) {
	r, err := s.Reader.Next()
	if t := float64(r.Arrival) / s.factor; t < float64(math.MaxInt64) {
		r.Arrival = clock.Time(t)
	} else {
		r.Arrival = clock.Never
	}
	return r, err
}

// limit ends after n rows.
type limit struct {
	step
	left int64
}

func (l *limit) Next() (workload.Request, error) {
	if l.left == 0 {
		shut(l.Reader)
		return workload.Request{}, io.EOF
	}
	l.left--
	return l.Reader.Next()
}

// fit holds lengths to what a model can take, and counts the rows that it changes.
type fit struct {
	step
	most   int32
	policy CapPolicy
	count  *int64
}

func (c *fit) Next() (workload.Request, error) {
	for {
		r, err := c.Reader.Next()
		if err != nil || int64(r.InputTokens)+int64(r.OutputTokens) <= int64(c.most) {
			return r, err
		}
		*c.count++
		switch {
		case c.policy == TruncateInput && r.OutputTokens < c.most:
			r.InputTokens = c.most - r.OutputTokens
			return r, nil
		case c.policy == TruncateOutput && r.InputTokens < c.most:
			r.OutputTokens = c.most - r.InputTokens
			return r, nil
		}
	}
}
