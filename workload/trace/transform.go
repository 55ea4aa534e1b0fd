package trace

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Opener opens a trace at its beginning. It is called once per pass. The file is closed when it is no longer
// needed.
type Opener func() (*File, error)

// Transformed is a trace transformed to another load. It is a [Reader].
type Transformed struct {
	open     Opener
	file     *File // opened last
	reader   Reader
	load     Load
	stats    Stats
	spread   bool // rows are spread over ticks
	buffered []Row
	classes  []string
	applied  []string
	long     int64 // requests above Load.MaxTotal so far
}

// Transform selects rows of a trace and changes their load. It reads the selected rows once for statistics, so that
// faults in them are reported immediately, and buffers short traces. Superposition holds the rows of any trace in
// memory; all other steps are streaming. It returns errors of the trace, or a [*workload.FieldError] for a field of l.
func Transform(open Opener, l Load) (*Transformed, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	s := &Transformed{open: open, load: l}
	if err := s.scan(); err != nil {
		return nil, err
	}
	var err error
	s.reader, err = s.steps()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Next returns the next row.
func (s *Transformed) Next() (Row, error) { return s.reader.Next() }

// Close ends reading before the end.
func (s *Transformed) Close() error {
	closeReader(s.reader)
	return nil
}

// selected opens the trace and selects its rows.
func (s *Transformed) selected() (Reader, error) {
	if s.buffered != nil {
		return &bufferedReader{rows: s.buffered}, nil
	}
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	s.file = f
	if s.load.From != 0 || s.load.To != 0 {
		f.Slice(s.load.From, s.load.To)
	}
	return s.filtered(f), nil
}

// filtered keeps the rows of the load's classes, and cuts their outputs.
func (s *Transformed) filtered(f *File) Reader {
	var r Reader = f
	if len(s.load.Classes) > 0 {
		r = &filter{step: step{r}, names: s.load.Classes, classes: f.Classes}
	}
	if s.load.MaxOutput > 0 {
		r = &outputLimit{step: step{r}, most: s.load.MaxOutput}
	}
	return r
}

// Before calls visit for the requests before the slice in order of arrival, to fill a prefix cache. Their IDs are
// negative. If the load is scaled, it visits those of the kept sessions, or of all copies. It does nothing unless
// [Load.WarmPrefix] is set.
func (s *Transformed) Before(visit func(*workload.Request)) error {
	if !s.load.WarmPrefix {
		return nil
	}
	f, err := s.open()
	if err != nil {
		return err
	}
	defer f.Close()
	f.Slice(0, s.load.From)
	r := s.filtered(f)
	id := int64(0)
	for {
		row, err := r.Next()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		for _, copied := range s.copiesOf(row) {
			q := copied.Request
			id--
			q.ID = id
			visit(&q)
			for _, t := range copied.Then {
				id--
				q.ID = id
				q.Turn++
				q.InputTokens, q.OutputTokens, q.Content = t.InputTokens, t.OutputTokens, t.Content
				visit(&q)
			}
		}
	}
}

// copiesOf returns what thinning or superposition makes of a row.
func (s *Transformed) copiesOf(row Row) []Row {
	k := s.load.Scale
	if s.load.Rate > 0 && s.stats.Rate() > 0 {
		k = s.load.Rate / s.stats.Rate()
	}
	if k > 0 && k < 1 {
		if !inShare(&row, k, s.load.Seed) {
			return nil
		}
		return []Row{row}
	}
	list := []Row{row}
	for c := int32(1); float64(c) < k; c++ {
		if part := k - float64(c); part < 1-1e-9 && !inShare(&row, part, workload.Hash(s.load.Seed, copies+uint64(c))) {
			continue
		}
		next := row
		separate(&next, copies, c, s.stats.Sessions)
		list = append(list, next)
	}
	return list
}

// scan reads the selected rows and collects statistics.
func (s *Transformed) scan() error {
	r, err := s.selected()
	if err != nil {
		return err
	}
	all := &bufferingReader{Reader: r}
	if s.stats, err = Scan(all); err != nil {
		return err
	}
	l := s.load
	s.classes = s.file.Classes()
	for _, c := range l.Classes {
		if l.From == 0 && l.To == 0 && !slices.Contains(s.classes, c) {
			return &workload.FieldError{Key: "workload.trace.classes",
				Problem: fmt.Sprintf("%q is not a class of this trace (want %s)", c, classList(s.classes))}
		}
	}
	if s.stats.Rows == 0 && len(l.Classes) > 0 {
		return &workload.FieldError{Key: "workload.trace.classes",
			Problem: fmt.Sprintf("no row has one of these classes (want %s)", classList(s.classes))}
	}
	if s.stats.Rows == 0 {
		return &workload.FieldError{Key: "workload.trace.from",
			Problem: "the slice from..to has no rows (want another part of the trace)"}
	}
	s.buffered = all.rows
	if l.From != 0 || l.To != 0 {
		s.note("slice: %s, %d rows", sliceName(l), s.file.Counts().Accepted)
	}
	if len(l.Classes) > 0 {
		s.note("filter: class %s, %d rows", strings.Join(l.Classes, ", "), s.stats.Rows)
	}
	if l.MaxOutput > 0 {
		s.note("outputs: at most %d tokens", l.MaxOutput)
	}
	if s.file.Timeless() {
		return s.timeless()
	}
	return nil
}

// timeless checks the options for a trace without times.
func (s *Transformed) timeless() error {
	switch l := s.load; {
	case l.Scale != 0:
		return &workload.FieldError{Key: "workload.trace.scale",
			Problem: "does not apply to a trace without times (want rate)"}
	case l.Rate == 0:
		return &workload.FieldError{Key: "workload.trace.rate",
			Problem: "is missing and the trace has no times (want requests per second of a Poisson process)"}
	}
	return nil
}

func classList(names []string) string {
	var list []string
	for _, n := range names {
		if n != "" {
			list = append(list, n)
		}
	}
	if list == nil {
		return "none: it has no classes"
	}
	const most = 20
	if len(list) > most {
		list = append(list[:most:most], "…")
	}
	return strings.Join(list, ", ")
}

func sliceName(l Load) string {
	if l.To == 0 {
		return fmt.Sprintf("from %v on", l.From)
	}
	return fmt.Sprintf("from %v to %v", l.From, l.To)
}

// steps builds the chain of steps for the selected rows.
func (s *Transformed) steps() (r Reader, err error) {
	l := s.load
	period := s.stats.Span()
	if s.file.Timeless() {
		period = 0
	}
	r, copies, err := s.loaded(true)
	if err != nil {
		return nil, err
	}
	if s.spread {
		period += s.stats.Quantum
	}
	if l.Speedup > 0 {
		period = clock.Duration(float64(period) / l.Speedup)
	}
	if l.Loop > 1 {
		sessions := int64(s.stats.Sessions) * int64(copies)
		if sessions*int64(l.Loop) > math.MaxInt32 {
			closeReader(r)
			return nil, &workload.FieldError{Key: "workload.trace.loop",
				Problem: fmt.Sprintf("%d passes of %d sessions are too many", l.Loop, sessions)}
		}
		again := func() (Reader, error) {
			r, _, err := s.loaded(false)
			return r, err
		}
		r = &loop{again: again, reader: r, passes: l.Loop, period: period, sessions: int32(sessions)}
		s.note("loop: %d passes of %v", l.Loop, period)
	}
	if s.file.Timeless() {
		rate := l.Rate
		if l.Speedup > 0 {
			rate *= l.Speedup
		}
		r = &poissonArrivals{step{r}, workload.Poisson{PerSecond: rate}.Start(l.Seed, 0)}
		s.note("arrivals: Poisson, %v per second", rate)
	}
	if l.Limit > 0 {
		r = &limit{step{r}, l.Limit}
		s.note("limit: the first %d rows", l.Limit)
	}
	if l.MaxTotal > 0 {
		r = &lengthCap{step: step{r}, maxTotal: l.MaxTotal, policy: l.Cap, count: &s.long}
	}
	return r, nil
}

// loaded builds one pass of the trace at its load and returns the number of copies. Only the first pass adds notes.
func (s *Transformed) loaded(first bool) (r Reader, copies int, err error) {
	notes := s.applied
	defer func() {
		if !first {
			s.applied = notes
		}
	}()
	l := s.load
	if r, err = s.selected(); err != nil || s.file.Timeless() {
		return r, 1, err
	}
	in := r
	if l.Dequantise == On && s.stats.Quantum == 0 {
		s.note("de-quantise: the times show no tick")
	} else if l.Dequantise == On || l.Dequantise != Off && s.stats.Quantised() {
		r = &spread{step: step{r}, quantum: s.stats.Quantum, seed: l.Seed}
		s.spread = true
		s.note("de-quantise: rows spread over ticks of %v", s.stats.Quantum)
	}
	if r, copies, err = s.scale(r); err != nil {
		closeReader(in)
		return nil, 0, err
	}
	if l.Speedup != 0 && l.Speedup != 1 {
		r = &speedUp{step{r}, l.Speedup}
		s.note("speed-up: times divided by %v", l.Speedup)
	}
	return r, copies, nil
}

// scale thins or superposes the rows and returns the number of copies of the sessions.
func (s *Transformed) scale(r Reader) (Reader, int, error) {
	k := s.load.Scale
	if s.load.Rate > 0 {
		if s.stats.Rate() == 0 {
			return nil, 0, &workload.FieldError{Key: "workload.trace.rate",
				Problem: "the trace has no rate because all rows arrive together (want scale)"}
		}
		k = s.load.Rate / s.stats.Rate()
	}
	switch {
	case k == 0 || k == 1:
		return r, 1, nil
	case k > LargeScale && !s.load.AllowLargeScale:
		return nil, 0, &workload.FieldError{Key: "workload.trace.scale", Problem: fmt.Sprintf(
			"%.4g times the load of the trace is not meaningful (want at most %d)", k, LargeScale)}
	case k < 1:
		s.note("thin: %.4g of the %s kept", k, s.units())
		return &thin{step{r}, k, s.load.Seed}, 1, nil
	}
	whole := int(k)
	part := k - float64(whole)
	if part < 1e-9 {
		part = 0
	}
	if int64(s.stats.Sessions)*int64(whole+1) > math.MaxInt32 {
		return nil, 0, &workload.FieldError{Key: "workload.trace.scale",
			Problem: fmt.Sprintf("%d copies of %d sessions are too many", whole+1, s.stats.Sessions)}
	}
	rows, err := readAll(r)
	if err != nil {
		return nil, 0, err
	}
	stats := s.stats
	if len(rows) > 0 { // spreading moves the first row
		stats.First = rows[0].Arrival
		stats.Last = rows[len(rows)-1].Arrival
	}
	if stats.Span() == 0 {
		return nil, 0, &workload.FieldError{Key: "workload.trace.scale",
			Problem: "copies cannot be shifted because all rows arrive together (want a longer trace)"}
	}
	text := fmt.Sprintf("superpose: %d copies", whole)
	if part > 0 {
		text += fmt.Sprintf(" and %.4g of the %s of another", part, s.units())
	}
	s.note("%s, shifted evenly over %v", text, stats.Span())
	return superpose(rows, stats, whole, part, s.load.Seed), whole + 1, nil
}

func (s *Transformed) units() string {
	if s.stats.Sessions > 0 {
		return "sessions"
	}
	return "rows"
}

func (s *Transformed) note(format string, args ...any) {
	s.applied = append(s.applied, fmt.Sprintf(format, args...))
}

// Applied returns the steps in order. The last one includes the number of capped rows so far.
func (s *Transformed) Applied() []string {
	if s.load.MaxTotal == 0 {
		return s.applied
	}
	policy := s.load.Cap
	if policy == "" {
		policy = DropLong
	}
	return append(s.applied[:len(s.applied):len(s.applied)],
		fmt.Sprintf("cap: at most %d tokens, %d rows over it (%s)", s.load.MaxTotal, s.long, policy))
}

// Stats returns the statistics of the selected rows before their load was changed.
func (s *Transformed) Stats() Stats { return s.stats }

// Rate returns the nominal mean rate of the replay in rows per second; 0 if all rows arrive together.
func (s *Transformed) Rate() float64 {
	rate := s.stats.Rate()
	if s.load.Scale > 0 {
		rate *= s.load.Scale
	}
	if s.load.Rate > 0 {
		rate = s.load.Rate
	}
	if s.load.Speedup > 0 {
		rate *= s.load.Speedup
	}
	return rate
}

// Expected returns the approximate number of requests of the replay, without the cap and the end of the traffic.
func (s *Transformed) Expected() int64 {
	factor := float64(max(1, s.load.Loop))
	switch old := s.stats.Rate(); {
	case s.load.Scale > 0:
		factor *= s.load.Scale
	case s.load.Rate > 0 && old > 0:
		factor *= s.load.Rate / old
	}
	rows := float64(s.stats.Rows) * factor
	if s.load.Limit > 0 {
		rows = min(rows, float64(s.load.Limit))
	}
	return int64(rows * float64(s.stats.Requests) / float64(max(1, s.stats.Rows)))
}

// Classes returns the class names; empty if the format has none.
func (s *Transformed) Classes() []string { return s.classes }

// File returns the trace as it was opened last, with the counts of its rows.
func (s *Transformed) File() *File { return s.file }
