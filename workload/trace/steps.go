package trace

import (
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Each step turns one Reader into another. Rows keep their ID from the file up to the end, so that a decision about a
// row does not depend on the steps before it.

// Domains of the random decisions, so that they are independent.
const (
	thinRows = iota + 1
	thinSessions
	jitter
	copies
	passes
)

// step embeds the reader before a step.
type step struct{ Reader }

func (s step) Close() error {
	closeReader(s.Reader)
	return nil
}

// closeReader closes a reader before its end.
func closeReader(r Reader) {
	if c, ok := r.(io.Closer); ok {
		c.Close() // only read from: nothing can be lost
	}
}

// filter keeps the rows of some classes.
type filter struct {
	step
	names   []string
	classes func() []string
	keep    []bool // by class, as far as they are known
}

func (f *filter) Next() (Row, error) {
	for {
		r, err := f.Reader.Next()
		if err != nil {
			return r, err
		}
		for names := f.classes(); len(f.keep) <= int(r.Class); {
			name := ""
			if i := len(f.keep); i < len(names) {
				name = names[i]
			}
			f.keep = append(f.keep, slices.Contains(f.names, name))
		}
		if f.keep[r.Class] {
			return r, nil
		}
	}
}

// poissonArrivals gives the rows of a trace without times Poisson arrivals.
type poissonArrivals struct {
	step
	arrivals workload.Arrivals
}

func (a *poissonArrivals) Next() (Row, error) {
	r, err := a.Reader.Next()
	if err == nil {
		r.Arrival = a.arrivals.Next()
	}
	return r, err
}

// spread undoes a coarse recording clock: each row gets a random place in its tick. Rows of a session keep their
// order.
type spread struct {
	step
	quantum clock.Duration
	seed    uint64
	tick    []Row // rows of one tick in their new order
	ahead   Row   // first row of the next tick
	has     bool
	err     error
}

func (s *spread) Next() (Row, error) {
	for len(s.tick) == 0 {
		if !s.has {
			if s.err != nil {
				return Row{}, s.err
			}
			if s.ahead, s.err = s.Reader.Next(); s.err != nil {
				return Row{}, s.err
			}
			s.has = true
		}
		s.fill()
	}
	r := s.tick[0]
	s.tick = s.tick[1:]
	return r, nil
}

// fill reads the rows of a tick and spreads them.
func (s *spread) fill() {
	at := s.ahead.Arrival
	s.tick = append(s.tick[:0], s.ahead)
	for s.has = false; s.err == nil; {
		var r Row
		if r, s.err = s.Reader.Next(); s.err != nil {
			break
		}
		if r.Arrival != at {
			s.ahead, s.has = r, true
			break
		}
		s.tick = append(s.tick, r)
	}
	width := s.quantum // ticks may be uneven: stay before the next one
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

func byArrival(a, b Row) int {
	switch {
	case a.Arrival < b.Arrival:
		return -1
	case a.Arrival > b.Arrival:
		return 1
	}
	return 0
}

// inShare reports whether a row belongs to the share of a trace that is kept. Sessions are kept or dropped as a
// whole. The decision depends only on the seed and the identity of the row.
func inShare(r *Row, share float64, seed uint64) bool {
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

func (t *thin) Next() (Row, error) {
	for {
		r, err := t.Reader.Next()
		if err != nil || inShare(&r, t.share, t.seed) {
			return r, err
		}
	}
}

// superposed plays several copies of a trace at once, the later ones shifted cyclically over its span. Copies share
// no sessions and no prompt identities.
type superposed struct {
	rows     []Row
	from     clock.Time // arrival of the first row
	span     clock.Duration
	sessions int32
	copies   []traceCopy
	seed     uint64
}

// traceCopy is one of the superposed copies.
type traceCopy struct {
	shift clock.Duration
	next  int        // index into the rows
	left  int        // rows left
	at    clock.Time // of the next
	share float64    // of the rows; 1 is all
}

func superpose(rows []Row, s Stats, whole int, part float64, seed uint64) *superposed {
	p := &superposed{rows: rows, from: s.First, span: s.Span(), sessions: s.Sessions, seed: seed}
	n := whole
	if part > 0 {
		n++
	}
	for c := range n {
		v := traceCopy{shift: clock.Duration(float64(p.span) * (float64(c) / float64(n))), left: len(rows), share: 1}
		if c == whole {
			v.share = part
		}
		// The copy starts with the first row that the shift moves past the end.
		v.next, _ = slices.BinarySearchFunc(rows, p.from.Add(p.span-v.shift), func(r Row, at clock.Time) int {
			if r.Arrival < at {
				return -1
			}
			return 1
		})
		v.next %= len(rows)
		p.seek(&v, uint64(c))
		p.copies = append(p.copies, v)
	}
	return p
}

// seek moves a copy to its next row and sets its time.
func (p *superposed) seek(v *traceCopy, c uint64) {
	for v.left > 0 && v.share < 1 && !inShare(&p.rows[v.next], v.share, workload.Hash(p.seed, copies+c)) {
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

func (v *traceCopy) advance(n int) {
	v.left--
	if v.next++; v.next == n {
		v.next = 0
	}
}

func (p *superposed) Next() (Row, error) {
	first := -1
	for c := range p.copies {
		if p.copies[c].left > 0 && (first < 0 || p.copies[c].at < p.copies[first].at) {
			first = c
		}
	}
	if first < 0 {
		return Row{}, io.EOF
	}
	v := &p.copies[first]
	r := p.rows[v.next]
	r.Arrival = v.at
	if first > 0 {
		separate(&r, copies, int32(first), p.sessions)
	}
	v.advance(len(p.rows))
	p.seek(v, uint64(first))
	return r, nil
}

// separate gives a row sessions and texts of its own copy: copy c of a trace with the given number of sessions.
// References to outputs of the session remain references.
func separate(r *Row, domain uint64, c, sessions int32) {
	old := r.Session
	if old != 0 {
		r.Session += c * sessions
	}
	domain = workload.Hash(domain, uint64(c))
	answers := r.Turn
	r.Content = separateContent(r.Content, domain, old, r.Session, answers)
	if len(r.Then) == 0 {
		return
	}
	then := slices.Clone(r.Then)
	for i := range then {
		answers++
		then[i].Content = separateContent(then[i].Content, domain, old, r.Session, answers)
	}
	r.Then = then
}

// separateContent returns the content with the texts of the copy.
func separateContent(content *workload.Content, domain uint64, old, session, answers int32) *workload.Content {
	if content == nil {
		return nil
	}
	segments := make([]workload.Segment, len(content.Segments))
	for i, s := range content.Segments {
		id := workload.Hash(domain, s.ID)
		if old != 0 {
			for turn := range answers {
				if s.ID == workload.OutputID(old, turn) {
					id = workload.OutputID(session, turn)
				}
			}
		}
		segments[i] = workload.Segment{ID: id, Tokens: s.Tokens}
	}
	return &workload.Content{Segments: segments}
}

// speedUp divides all times, including the waits within sessions.
type speedUp struct {
	step
	factor float64
}

func (s *speedUp) Next() (Row, error) {
	r, err := s.Reader.Next()
	r.Arrival = clock.Time(s.divide(clock.Duration(r.Arrival)))
	if len(r.Then) > 0 {
		r.Then = slices.Clone(r.Then)
		for i := range r.Then {
			r.Then[i].Wait = s.divide(r.Then[i].Wait)
		}
	}
	return r, err
}

func (s *speedUp) divide(d clock.Duration) clock.Duration {
	if t := float64(d) / s.factor; t < float64(math.MaxInt64) {
		return clock.Duration(t)
	}
	return clock.Duration(clock.Never)
}

// limit ends after a number of rows.
type limit struct {
	step
	left int64
}

func (l *limit) Next() (Row, error) {
	if l.left == 0 {
		closeReader(l.Reader)
		return Row{}, io.EOF
	}
	l.left--
	return l.Reader.Next()
}

// loop plays a trace several times in sequence. Passes share no sessions and no texts.
type loop struct {
	again    func() (Reader, error)
	reader   Reader // of the current pass; nil before the next one
	pass     int32
	passes   int32
	period   clock.Duration
	sessions int32
}

func (l *loop) Next() (Row, error) {
	for {
		if l.reader == nil {
			var err error
			if l.reader, err = l.again(); err != nil {
				return Row{}, err
			}
		}
		r, err := l.reader.Next()
		if err == io.EOF && l.pass+1 < l.passes {
			l.pass++
			l.reader = nil
			continue
		}
		if err == nil && l.pass > 0 {
			if t := float64(r.Arrival) + float64(l.pass)*float64(l.period); t < float64(clock.MaxRun)*1.05 {
				r.Arrival += clock.Time(l.pass) * clock.Time(l.period)
			} else {
				r.Arrival = clock.Never
			}
			separate(&r, passes, l.pass, l.sessions)
		}
		return r, err
	}
}

// Close closes the trace at the bottom.
func (l *loop) Close() error {
	if l.reader != nil {
		closeReader(l.reader)
	}
	return nil
}

// outputLimit cuts longer outputs.
type outputLimit struct {
	step
	most int32
}

func (o *outputLimit) Next() (Row, error) {
	r, err := o.Reader.Next()
	if err != nil {
		return r, err
	}
	r.OutputTokens = min(r.OutputTokens, o.most)
	if slices.ContainsFunc(r.Then, func(t Turn) bool { return t.OutputTokens > o.most }) {
		r.Then = slices.Clone(r.Then)
		for i := range r.Then {
			r.Then[i].OutputTokens = min(r.Then[i].OutputTokens, o.most)
		}
	}
	return r, nil
}

// lengthCap limits lengths to the model's context and counts the requests that it changes.
type lengthCap struct {
	step
	maxTotal int32
	policy   CapPolicy
	count    *int64
}

func (c *lengthCap) Next() (Row, error) {
	for {
		r, err := c.Reader.Next()
		if err != nil {
			return r, err
		}
		if !c.apply(&r.InputTokens, &r.OutputTokens) {
			continue
		}
		for i := range r.Then {
			if t := r.Then[i]; !c.apply(&t.InputTokens, &t.OutputTokens) {
				r.Then = r.Then[:i:i] // later turns build on it and are dropped too
				break
			} else if t != r.Then[i] {
				r.Then = slices.Clone(r.Then)
				r.Then[i] = t
			}
		}
		return r, nil
	}
}

// apply changes the lengths according to the policy; it returns false if the request is dropped.
func (c *lengthCap) apply(input, output *int32) bool {
	if int64(*input)+int64(*output) <= int64(c.maxTotal) {
		return true
	}
	*c.count++
	switch {
	case c.policy == TruncateInput && *output < c.maxTotal:
		*input = c.maxTotal - *output
		return true
	case c.policy == TruncateOutput && *input < c.maxTotal:
		*output = c.maxTotal - *input
		return true
	}
	return false
}
