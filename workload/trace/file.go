package trace

import (
	"fmt"
	"io"
	"maps"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
)

// File is an open trace.
type File struct {
	name     string
	format   format
	options  Options
	source   rowSource
	closer   io.Closer
	warnings []string

	current   Row     // a field, to avoid an allocation per row
	at        instant // of the row
	origin    instant // of absolute times: the first readable row
	hasOrigin bool    // origin is set
	from      instant // start and end of the slice, relative to the origin
	to        instant
	sliced    bool
	endless   bool          // the slice has no end
	last      clock.Time    // arrival of the last accepted row
	base      clock.Time    // arrival of the first delivered row, for absolute times
	delivered int64         // rows returned by Next
	window    pq.Queue[Row] // rows to be sorted by arrival; equal arrivals keep the order of the file
	latest    clock.Time    // latest arrival in the window
	parsed    int64         // rows added to the window
	atEnd     bool          // the source is exhausted
	counts    Counts
	err       error // ended the trace
}

// Counts counts the rows by result: Rows = Accepted + Outside + sum of Dropped.
type Counts struct {
	Rows     int64          `json:"rows"`     // read, without blank lines
	Accepted int64          `json:"accepted"` // returned or about to be returned
	Outside  int64          `json:"outside"`  // outside the slice
	Dropped  map[Code]int64 `json:"dropped"`  // by the rule that they broke
	Fixed    map[Code]int64 `json:"fixed"`    // accepted after a fix
	Noted    map[Code]int64 `json:"noted"`    // accepted although unusual
}

// Name returns the name passed to [Open].
func (f *File) Name() string { return f.name }

// Format returns the name of the format.
func (f *File) Format() string { return f.format.Name }

// Classes returns the names that [workload.Request.Class] indexes; they are complete at the end of the trace.
func (f *File) Classes() []string {
	if c, ok := f.inner().(classed); ok {
		return c.classNames()
	}
	return nil
}

// inner returns the layout of a trace of lines, and the source of any other.
func (f *File) inner() any {
	if l, ok := f.source.(*lineSource); ok {
		return l.layout
	}
	return f.source
}

// Timeless reports whether the trace has lengths but no arrivals; all arrivals are 0 then.
func (f *File) Timeless() bool {
	t, ok := f.inner().(timelessSource)
	return ok && t.isTimeless()
}

// Warnings returns remarks about the trace that are not faults.
func (f *File) Warnings() []string { return f.warnings }

// Counts returns the counts so far.
func (f *File) Counts() Counts {
	c := f.counts
	c.Dropped, c.Fixed, c.Noted = maps.Clone(c.Dropped), maps.Clone(c.Fixed), maps.Clone(c.Noted)
	return c
}

// Close ends reading early and closes the reader passed to [Open] if it is an io.Closer. A trace that was read to
// its end or to an error is closed already.
func (f *File) Close() error {
	if f.err == nil {
		f.err = io.EOF
	}
	c := f.closer
	if f.closer = nil; c == nil {
		return nil
	}
	return c.Close()
}

// nextOrdered returns the next row in order of arrival; it is valid until the next call.
func (f *File) nextOrdered() (*Row, error) {
	if f.err != nil {
		return nil, f.err
	}
	if f.options.Mode != Fix {
		return f.nextRow()
	}
	for !f.atEnd && f.window.Len() < SortWindow {
		r, err := f.nextRow()
		if err == io.EOF {
			f.atEnd = true
			break
		}
		if err != nil {
			return r, err
		}
		f.window.Push(pq.Item[Row]{Value: *r, Key: int64(r.Arrival), Tie: f.parsed})
		f.parsed++
	}
	if f.window.Len() == 0 {
		return nil, io.EOF
	}
	f.current = f.window.Pop().Value
	r := &f.current
	if f.delivered > 0 && r.Arrival < f.last {
		return nil, &rowError{Name: f.name, Code: Order,
			Problem: fmt.Sprintf("a row is more than %d rows out of order", SortWindow),
			Want:    "the trace sorted by arrival"}
	}
	f.last = r.Arrival
	return r, nil
}

// nextRow returns the next acceptable row of the source. Absolute arrivals count from the origin.
func (f *File) nextRow() (*Row, error) {
	for {
		f.current = Row{}
		t, err := f.source.next(&f.current, &f.at)
		if err == io.EOF {
			return nil, err
		} else if err != nil {
			return nil, f.readError(err)
		}
		f.counts.Rows++
		if t == nil {
			if !f.hasOrigin && f.format.absolute {
				f.origin, f.hasOrigin = f.at, true
			}
			if f.sliced && f.outside() {
				f.counts.Outside++
				if f.past() && f.options.Mode != Fix {
					return nil, io.EOF
				}
				f.source.accept(&f.current) // later rows of the session depend on it
				continue
			}
			t = f.accept()
		}
		if t == nil {
			f.counts.Accepted++
			f.source.accept(&f.current)
			return &f.current, nil
		}
		if err := f.drop(t); err != nil {
			return nil, err
		}
	}
}

// outside reports whether the row is not in the slice, and past whether it is after the slice.
func (f *File) outside() bool { return f.at.minus(f.origin).before(f.from) || f.past() }
func (f *File) past() bool    { return !f.endless && !f.at.minus(f.origin).before(f.to) }

// accept checks the row against the rules that all formats share.
func (f *File) accept() *fault {
	r := &f.current
	at, ok := f.at.minus(f.origin).sub(f.from)
	if !ok {
		return faulty(Time, f.source.text(), "is more than 100 days from the start", "a slice of the trace")
	}
	if r.InputTokens == 0 && !(r.OutputTokens == 0 && f.format.failures) {
		return faulty(ZeroIn, f.source.text(), "has an empty prompt", "input of 1 token or more")
	}
	if r.OutputTokens == 0 {
		if f.options.ZeroOutput != OneToken || r.InputTokens == 0 {
			return faulty(ZeroOut, f.source.text(), "has an empty output",
				"output of 1 token or more, or zero_output: drop or one")
		}
		r.OutputTokens = 1
		f.countFixed(ZeroOut)
	}
	if f.options.Mode != Fix {
		if at < f.last {
			return faulty(Order, f.source.text(), "is earlier than the row before",
				"rows in order of arrival, or mode fix")
		}
		f.last = at
	} else if at < f.latest {
		f.countFixed(Order)
	} else {
		f.latest = at
	}
	r.Arrival = at
	return nil
}

// drop counts a row that broke a rule, or returns the error that ends the trace.
func (f *File) drop(t *fault) error {
	mode := f.options.Mode
	allowed := mode == Skip ||
		mode == Fix && (t.code == ZeroIn || t.code == ZeroOut) ||
		t.code == ZeroOut && f.options.ZeroOutput == DropZero
	if !allowed {
		return f.refuse(t)
	}
	if f.counts.Dropped == nil {
		f.counts.Dropped = map[Code]int64{}
	}
	f.counts.Dropped[t.code]++
	if f.counts.Rows >= 1000 {
		return f.checkBadShare()
	}
	return nil
}

func (f *File) countFixed(c Code) {
	if f.counts.Fixed == nil {
		f.counts.Fixed = map[Code]int64{}
	}
	f.counts.Fixed[c]++
}

// countNoted counts a row that is accepted although it is unusual.
func (f *File) countNoted(c Code) {
	if f.counts.Noted == nil {
		f.counts.Noted = map[Code]int64{}
	}
	f.counts.Noted[c]++
}

// checkBadShare limits the share of bad rows in mode skip. Empty outputs dropped by policy do not count.
func (f *File) checkBadShare() error {
	if f.options.Mode != Skip {
		return nil
	}
	bad := f.counts.Rows - f.counts.Accepted
	if f.options.ZeroOutput == DropZero {
		bad -= f.counts.Dropped[ZeroOut]
	}
	if share := float64(bad) / float64(f.counts.Rows); share > f.options.MaxBadFraction {
		return fmt.Errorf("%s: %d of %d rows break a rule: %.2g %% (want at most %.2g %%)", f.name, bad,
			f.counts.Rows, 100*share, 100*f.options.MaxBadFraction)
	}
	return nil
}
