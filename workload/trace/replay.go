package trace

import (
	"errors"
	"fmt"
	"io"
	"math"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Opener opens a trace from its beginning; it is called once for each pass. A reader that is an
// io.Closer is closed when it is no longer needed.
type Opener func() (Reader, error)

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
	// Dequantise spreads rows over the ticks of a coarse recording clock; by itself where at least
	// half of the rows share a tick.
	Dequantise Switch
	// Scale multiplies the load: below 1 a part of the sessions (or of the rows, where there are no
	// sessions) is kept, above 1 copies of the trace are superposed, shifted against each other.
	// Human time scales stay as they are. 0 is 1.
	Scale float64
	// Rate scales to this mean rate, requests per second, instead of by a factor.
	Rate float64
	// Speedup divides all times, think times and the length of the day with them. 0 is 1.
	Speedup float64
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

// Source replays a trace; it is a [workload.Source].
type Source struct {
	reader  Reader
	load    Load
	stats   Stats
	classes []string
	applied []string
	long    int64 // rows changed by the cap
	next    workload.Request
	id      int64
	end     clock.Time
	err     error
	over    bool
}

// Replay makes the source. It reads the (sliced) trace once to sum it up, so that faults in it show before
// the run starts, and keeps the rows of a short one; superposition holds the rows of any in memory, all
// else streams.
func Replay(open Opener, l Load) (*Source, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	s := &Source{load: l, end: clock.Never}
	if l.Duration > 0 {
		s.end = clock.Time(l.Duration)
	}
	var file Reader
	cut := func() (Reader, error) {
		r, err := open()
		file = r
		if err != nil || l.From == 0 && l.To == 0 {
			return r, err
		}
		return &slice{step: step{r}, from: clock.Time(l.From), to: clock.Time(l.To)}, nil
	}
	r, err := cut()
	if err != nil {
		return nil, err
	}
	first := &keeper{Reader: r}
	if s.stats, err = Scan(first); err != nil {
		return nil, err
	}
	if c, ok := file.(interface{ Classes() []string }); ok {
		s.classes = c.Classes()
	}
	if s.stats.Rows == 0 {
		return nil, &workload.FieldError{Key: "workload.trace.from", Problem: "the slice has no rows (want a part of the trace that has some)"}
	}
	if l.From != 0 || l.To != 0 {
		s.note("slice: %s, %d rows", sliceName(l), s.stats.Rows)
	}
	if rows := first.rows; rows != nil {
		r = &kept{rows: rows}
	} else if r, err = cut(); err != nil {
		return nil, err
	}
	if s.reader, err = s.steps(r); err != nil {
		shut(r)
		return nil, err
	}
	s.advance()
	return s, nil
}

func sliceName(l Load) string {
	if l.To == 0 {
		return fmt.Sprintf("from %v on", l.From)
	}
	return fmt.Sprintf("from %v to %v", l.From, l.To)
}

// steps builds the chain behind the slice.
func (s *Source) steps(r Reader) (Reader, error) {
	l := s.load
	if l.Dequantise == On || l.Dequantise != Off && s.stats.Quantised() {
		if s.stats.Quantum > 0 {
			r = &spread{step: step{r}, quantum: s.stats.Quantum, seed: l.Seed}
			s.note("de-quantise: rows spread over ticks of %v", s.stats.Quantum)
		}
	}
	r, err := s.scale(r)
	if err != nil {
		return nil, err
	}
	if l.Speedup != 0 && l.Speedup != 1 {
		r = &speedUp{step{r}, l.Speedup}
		s.note("speed-up: times divided by %v", l.Speedup)
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

// scale thins or superposes.
func (s *Source) scale(r Reader) (Reader, error) {
	k := s.load.Scale
	if s.load.Rate > 0 {
		if s.stats.Rate() == 0 {
			return nil, &workload.FieldError{Key: "workload.trace.rate", Problem: "all rows arrive together, so that the trace has no rate (want scale)"}
		}
		k = s.load.Rate / s.stats.Rate()
	}
	switch {
	case k == 0 || k == 1:
		return r, nil
	case k > LargeScale && !s.load.AllowLargeScale:
		return nil, &workload.FieldError{Key: "workload.trace.scale", Problem: fmt.Sprintf(
			"%.4g times the load of the trace is too much to mean anything (want at most %d)", k, LargeScale)}
	case k < 1:
		s.note("thin: %.4g of the %s kept", k, s.units())
		return &thin{step{r}, k, s.load.Seed}, nil
	}
	whole := int(k)
	part := k - float64(whole)
	if part < 1e-9 {
		part = 0
	}
	if int64(s.stats.Sessions)*int64(whole+1) > math.MaxInt32 {
		return nil, &workload.FieldError{Key: "workload.trace.scale", Problem: fmt.Sprintf("%d copies of %d sessions are too many", whole+1, s.stats.Sessions)}
	}
	rows, err := readAll(r)
	if err != nil {
		return nil, err
	}
	stats := s.stats
	if len(rows) > 0 { // spreading moves the first row
		stats.First = rows[0].Arrival
		stats.Last = rows[len(rows)-1].Arrival
	}
	if stats.Span() == 0 {
		return nil, &workload.FieldError{Key: "workload.trace.scale", Problem: "all rows arrive together, so that copies cannot be shifted (want a longer trace)"}
	}
	text := fmt.Sprintf("superpose: %d copies", whole)
	if part > 0 {
		text += fmt.Sprintf(" and %.4g of the %s of another", part, s.units())
	}
	s.note("%s, shifted evenly over %v", text, stats.Span())
	return superpose(rows, stats, whole, part, s.load.Seed), nil
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

// Rate is the nominal mean rate of the replay in requests per second; 0 where all arrive together.
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

// Classes is the table of class names, where the format has one.
func (s *Source) Classes() []string { return s.classes }

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
		r.ID, r.Patience = s.id, s.load.Patience
		s.next = r
	}
}

// Peek returns the arrival of the next request.
func (s *Source) Peek() (clock.Time, bool) { return s.next.Arrival, !s.over }

// Next returns the next request.
func (s *Source) Next() workload.Request {
	r := s.next
	s.id++
	s.advance()
	return r
}

// Done has no effect: recorded requests do not wait for answers.
func (s *Source) Done(*workload.Request, clock.Time) {}

// Err is the error that ended the trace early, or nil.
func (s *Source) Err() error { return s.err }

var _ workload.Source = (*Source)(nil)
