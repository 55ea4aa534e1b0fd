package trace

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Opener opens a trace from its beginning; it is called once for each pass. The file is closed when it is
// no longer needed.
type Opener func() (*File, error)

// Switch is on, off, or automatic.
type Switch string

// Settings of a Switch. The zero value is Auto.
const (
	Auto Switch = "auto"
	On   Switch = "on"
	Off  Switch = "off"
)

// CapPolicy says what becomes of a request that is longer than the model's context.
type CapPolicy string

// Policies for long requests. The zero value drops them, as the truncating ones do where one length
// alone fills the context.
const (
	DropLong       CapPolicy = "drop"
	TruncateInput  CapPolicy = "truncate-input"
	TruncateOutput CapPolicy = "truncate-output"
)

// Load says how a trace is cut and at what load it is replayed. The steps are taken in the order of
// the fields. The zero value replays it as it is, coarse clocks aside.
type Load struct {
	// From and To cut a slice of the recorded time, which then begins at 0; To 0 is the end.
	From, To clock.Duration
	// Classes keeps the rows of these classes; none are all.
	Classes []string
	// Dequantise spreads rows over the ticks of a coarse recording clock; by itself where at least
	// half of the rows share a tick.
	Dequantise Switch
	// Scale multiplies the load: below 1 a part of the sessions (or of the rows, where there are no
	// sessions) is kept, above 1 copies of the trace are superposed, shifted against each other.
	// Human time scales stay as they are. 0 is 1.
	Scale float64
	// Rate scales to this mean rate, rows per second, instead of by a factor. A trace without times gets
	// Poisson arrivals of this rate.
	Rate float64
	// Speedup divides all times, think times and the length of the day with them. 0 is 1.
	Speedup float64
	// Loop plays the trace so many times, one after another; the passes share no sessions and no prefixes.
	// 0 is 1.
	Loop int32
	// Limit ends the trace after this many rows; 0 is no limit.
	Limit int64
	// MaxTotal is the longest input and output together, usually the model's context; 0 is no limit.
	MaxTotal int32
	Cap      CapPolicy
	// Duration ends the traffic: requests arrive before it; 0 is no limit.
	Duration clock.Duration
	// Patience is that of all requests; 0 is for ever.
	Patience clock.Duration
	// Seed decides what is kept and where in a tick a row falls.
	Seed uint64
	// AllowLargeScale permits factors above [LargeScale].
	AllowLargeScale bool
}

// LargeScale is the factor above which a trace says little about the traffic that it would become.
const LargeScale = 100

// validate reports all faults.
func (l Load) validate() error {
	var list []error
	fault := func(key, format string, args ...any) {
		list = append(list, &workload.FieldError{Key: "workload.trace." + key, Problem: fmt.Sprintf(format, args...)})
	}
	positive := func(key string, v float64) {
		if !(v >= 0) || math.IsInf(v, 0) {
			fault(key, "%v is not allowed (want more than 0)", v)
		}
	}
	positive("scale", l.Scale)
	positive("rate", l.Rate)
	positive("speedup", l.Speedup)
	if l.Scale != 0 && l.Rate != 0 {
		fault("rate", "rate and scale are given together (want one)")
	}
	if l.From < 0 || l.To < 0 || l.To != 0 && l.To <= l.From {
		fault("to", "a slice from %v to %v is empty (want to after from)", l.From, l.To)
	}
	if l.Loop < 0 {
		fault("loop", "%d is not allowed (want 1 or more)", l.Loop)
	}
	if l.Limit < 0 {
		fault("limit", "%d is not allowed (want 1 or more)", l.Limit)
	}
	switch l.Dequantise {
	case "", Auto, On, Off:
	default:
		fault("dequantise", "%q is not known (want auto, on or off)", l.Dequantise)
	}
	switch l.Cap {
	case "", DropLong, TruncateInput, TruncateOutput:
	default:
		fault("cap", "%q is not known (want drop, truncate-input or truncate-output)", l.Cap)
	}
	return errors.Join(list...)
}

// Source replays a trace; it is a [workload.Source]. Rows arrive when they were recorded, whether or not
// earlier turns of their session have been answered; turns that a row brings with it wait for answers.
type Source struct {
	open    Opener
	file    *File // opened last
	reader  Reader
	load    Load
	stats   Stats
	spread  bool // rows are spread over ticks
	kept    []Row
	classes []string
	applied []string
	long    int64 // requests changed by the cap
	next    Row
	id      int64
	end     clock.Time
	err     error
	over    bool
	conversations
}

// Replay makes the source. It reads the (sliced) trace once to sum it up, so that faults in it show before
// the run starts, and keeps the rows of a short one; superposition holds the rows of any in memory, all
// else streams.
func Replay(open Opener, l Load) (*Source, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	s := &Source{open: open, load: l, end: clock.Never, conversations: newConversations()}
	if l.Duration > 0 {
		s.end = clock.Time(l.Duration)
	}
	if err := s.scan(); err != nil {
		return nil, err
	}
	var err error
	if s.reader, err = s.steps(); err != nil {
		return nil, err
	}
	s.advance()
	return s, nil
}

// selected opens the trace and selects its rows.
func (s *Source) selected() (Reader, error) {
	if s.kept != nil {
		return &kept{rows: s.kept}, nil
	}
	f, err := s.open()
	if err != nil {
		return nil, err
	}
	s.file = f
	if s.load.From != 0 || s.load.To != 0 {
		f.Slice(s.load.From, s.load.To)
	}
	if len(s.load.Classes) > 0 {
		return &filter{step: step{f}, names: s.load.Classes, classes: f.Classes}, nil
	}
	return f, nil
}

// scan reads the selected rows through.
func (s *Source) scan() error {
	r, err := s.selected()
	if err != nil {
		return err
	}
	all := &keeper{Reader: r}
	if s.stats, err = Scan(all); err != nil {
		return err
	}
	l := s.load
	s.classes = s.file.Classes()
	for _, c := range l.Classes {
		if l.From == 0 && l.To == 0 && !slices.Contains(s.classes, c) {
			return &workload.FieldError{Key: "workload.trace.classes", Problem: fmt.Sprintf("%q is not a class of this trace (want %s)", c, classList(s.classes))}
		}
	}
	if s.stats.Rows == 0 && len(l.Classes) > 0 {
		return &workload.FieldError{Key: "workload.trace.classes", Problem: fmt.Sprintf("no rows are of these classes (want %s)", classList(s.classes))}
	}
	if s.stats.Rows == 0 {
		return &workload.FieldError{Key: "workload.trace.from", Problem: "the slice has no rows (want a part of the trace that has some)"}
	}
	s.kept = all.rows
	if l.From != 0 || l.To != 0 {
		s.note("slice: %s, %d rows", sliceName(l), s.file.Counts().Accepted)
	}
	if len(l.Classes) > 0 {
		s.note("filter: class %s, %d rows", strings.Join(l.Classes, ", "), s.stats.Rows)
	}
	if s.file.Timeless() {
		return s.timeless()
	}
	return nil
}

// timeless checks what can be asked of a trace without times.
func (s *Source) timeless() error {
	switch l := s.load; {
	case l.Scale != 0:
		return &workload.FieldError{Key: "workload.trace.scale", Problem: "the trace has no times that could be scaled (want rate)"}
	case l.Rate == 0:
		return &workload.FieldError{Key: "workload.trace.rate", Problem: "is missing: the trace has no times (want requests per second, which then arrive as a Poisson process)"}
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

// steps builds the chain of what is done to the selected rows.
func (s *Source) steps() (r Reader, err error) {
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
			shut(r)
			return nil, &workload.FieldError{Key: "workload.trace.loop", Problem: fmt.Sprintf("%d passes of %d sessions are too many", l.Loop, sessions)}
		}
		again := func() (Reader, error) {
			r, _, err := s.loaded(false)
			return r, err
		}
		r = &loop{again: again, reader: r, passes: l.Loop, period: period, sessions: int32(sessions)}
		s.note("loop: %d passes of %v", l.Loop, period)
	}
	if s.file.Timeless() {
		rate := l.Rate * max(l.Speedup, 1)
		if l.Speedup > 0 {
			rate = l.Rate * l.Speedup
		}
		r = &arrive{step{r}, workload.Poisson{PerSecond: rate}.Start(l.Seed, 0)}
		s.note("arrivals: Poisson, %v per second", rate)
	}
	if l.Limit > 0 {
		r = &limit{step{r}, l.Limit}
		s.note("limit: the first %d rows", l.Limit)
	}
	if l.MaxTotal > 0 {
		r = &fit{step: step{r}, most: l.MaxTotal, policy: l.Cap, count: &s.long}
	}
	return r, nil
}

// loaded is one pass of the trace at its load, of so many copies. Notes are taken in the first.
func (s *Source) loaded(first bool) (r Reader, copies int, err error) {
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
	if (l.Dequantise == On || l.Dequantise != Off && s.stats.Quantised()) && s.stats.Quantum > 0 {
		r = &spread{step: step{r}, quantum: s.stats.Quantum, seed: l.Seed}
		s.spread = true
		s.note("de-quantise: rows spread over ticks of %v", s.stats.Quantum)
	}
	if r, copies, err = s.scale(r); err != nil {
		shut(in)
		return nil, 0, err
	}
	if l.Speedup != 0 && l.Speedup != 1 {
		r = &speedUp{step{r}, l.Speedup}
		s.note("speed-up: times divided by %v", l.Speedup)
	}
	return r, copies, nil
}

// scale thins or superposes, and says how many copies of the sessions there are.
func (s *Source) scale(r Reader) (Reader, int, error) {
	k := s.load.Scale
	if s.load.Rate > 0 {
		if s.stats.Rate() == 0 {
			return nil, 0, &workload.FieldError{Key: "workload.trace.rate", Problem: "all rows arrive together, so that the trace has no rate (want scale)"}
		}
		k = s.load.Rate / s.stats.Rate()
	}
	switch {
	case k == 0 || k == 1:
		return r, 1, nil
	case k > LargeScale && !s.load.AllowLargeScale:
		return nil, 0, &workload.FieldError{Key: "workload.trace.scale", Problem: fmt.Sprintf(
			"%.4g times the load of the trace is too much to mean anything (want at most %d)", k, LargeScale)}
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
		return nil, 0, &workload.FieldError{Key: "workload.trace.scale", Problem: fmt.Sprintf("%d copies of %d sessions are too many", whole+1, s.stats.Sessions)}
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
		return nil, 0, &workload.FieldError{Key: "workload.trace.scale", Problem: "all rows arrive together, so that copies cannot be shifted (want a longer trace)"}
	}
	text := fmt.Sprintf("superpose: %d copies", whole)
	if part > 0 {
		text += fmt.Sprintf(" and %.4g of the %s of another", part, s.units())
	}
	s.note("%s, shifted evenly over %v", text, stats.Span())
	return superpose(rows, stats, whole, part, s.load.Seed), whole + 1, nil
}

func (s *Source) units() string {
	if s.stats.Sessions > 0 {
		return "sessions"
	}
	return "rows"
}

func (s *Source) note(format string, args ...any) {
	s.applied = append(s.applied, fmt.Sprintf(format, args...))
}

// Applied names the steps taken, in their order; the count of the last is that up to now.
func (s *Source) Applied() []string {
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

// Stats sums up the slice of the trace before its load was changed.
func (s *Source) Stats() Stats { return s.stats }

// Rate is the nominal mean rate of the replay in rows per second; 0 where all arrive together.
func (s *Source) Rate() float64 {
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

// Expected is about the number of requests of the replay, caps and the end of the traffic aside.
func (s *Source) Expected() int64 {
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

// Classes is the table of class names, where the format has one.
func (s *Source) Classes() []string { return s.classes }

// File is the trace as it was opened last, with what became of its rows.
func (s *Source) File() *File { return s.file }

func (s *Source) advance() {
	if s.over {
		return
	}
	r, err := s.reader.Next()
	switch {
	case err == io.EOF:
		s.over = true
	case err != nil:
		s.over, s.err = true, err
	case r.Arrival > clock.Time(clock.MaxRun) && s.end == clock.Never:
		s.over, s.err = true, fmt.Errorf("row %d arrives after more than %v (want a slice, or speedup)", r.ID, clock.MaxRun)
		shut(s.reader)
	case r.Arrival >= s.end:
		s.over = true
		shut(s.reader)
	default:
		s.next = r
	}
}

// Peek returns the arrival of the next request. Those that wait for an answer are not seen before.
func (s *Source) Peek() (clock.Time, bool) {
	if at, ok := s.ready(); ok && (s.over || at < s.next.Arrival) {
		return at, true
	}
	return s.next.Arrival, !s.over
}

// Next returns the next request.
func (s *Source) Next() workload.Request {
	var r Row
	if at, ok := s.ready(); ok && (s.over || at < s.next.Arrival) {
		r = s.resume()
	} else {
		r = s.next
		s.advance()
	}
	r.ID, r.Patience = s.id, s.load.Patience
	s.id++
	s.sent(&r)
	return r.Request
}

// Done tells that a request has ended, which others may wait for.
func (s *Source) Done(r *workload.Request, at clock.Time) { s.answered(r, at, s.end) }

// Err is the error that ended the trace early, or nil.
func (s *Source) Err() error { return s.err }

var _ workload.Source = (*Source)(nil)
