package trace

import (
	"bytes"
	"fmt"
	"io"
	"maps"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// File is a trace that is being read.
type File struct {
	name     string
	format   string
	options  Options
	layout   layout
	lines    *lines
	closer   io.Closer
	held     []byte // a first row that served to tell the format
	warnings []string

	request workload.Request // of the row, here to spare the heap
	at      instant          // of the row
	origin  instant          // of absolute times: that of the first readable row
	begun   bool             // origin is set
	last    clock.Time       // arrival of the last accepted row
	base    clock.Time       // arrival of the first row given, of absolute times
	given   int64            // rows
	window  window           // rows held to be sorted
	latest  clock.Time       // arrival of those put into the window
	parsed  int64            // rows put into the window
	drawn   bool             // the end of the stream is reached
	counts  Counts
	err     error // that ended the trace
}

// Counts says what became of the rows: Rows = Accepted + the sum of Dropped.
type Counts struct {
	Rows     int64          // read, without blank lines
	Accepted int64          // handed out, or about to be
	Dropped  map[Code]int64 // by the rule they broke
	Fixed    map[Code]int64 // accepted after mending
}

// Name is that given to [Open].
func (f *File) Name() string { return f.name }

// Format is the name of the format.
func (f *File) Format() string { return f.format }

// Classes is the table that [workload.Request.Class] indexes; it is complete at the end of the trace.
func (f *File) Classes() []string {
	if o, ok := f.layout.(*own); ok {
		return o.classes
	}
	return nil
}

// Warnings are remarks on the trace that are no faults.
func (f *File) Warnings() []string { return f.warnings }

// Counts are those up to now.
func (f *File) Counts() Counts {
	c := f.counts
	c.Dropped, c.Fixed = maps.Clone(c.Dropped), maps.Clone(c.Fixed)
	return c
}

// Close ends the reading early; a trace that is read to its end, or to an error, is closed by itself.
// It closes what [Open] was given, if that can be closed.
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

// ordered returns the next row in order of arrival.
func (f *File) ordered() (workload.Request, error) {
	if f.err != nil {
		return workload.Request{}, f.err
	}
	if f.options.Mode != Fix {
		return f.row()
	}
	for !f.drawn && f.window.Len() < SortWindow {
		r, err := f.row()
		if err == io.EOF {
			f.drawn = true
			break
		}
		if err != nil {
			return r, err
		}
		f.window.Push(held{r, f.parsed})
		f.parsed++
	}
	if f.window.Len() == 0 {
		return workload.Request{}, io.EOF
	}
	r := f.window.Pop().request
	if f.given > 0 && r.Arrival < f.last {
		return r, &RowError{Name: f.name, Code: Order, Problem: fmt.Sprintf("a row is out of order by more than %d rows", SortWindow), Want: "the trace sorted by arrival"}
	}
	f.last = r.Arrival
	return r, nil
}

// row returns the next acceptable row of the stream. Absolute arrivals count from the origin.
func (f *File) row() (workload.Request, error) {
	for {
		line := f.held
		if f.held = nil; line == nil {
			var err error
			if line, err = f.lines.next(); err == io.EOF {
				return workload.Request{}, err
			} else if err != nil {
				return workload.Request{}, f.broken(err)
			}
		}
		if len(line) == 0 || len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		f.counts.Rows++
		t := f.accept(line)
		if t == nil {
			f.counts.Accepted++
			f.layout.accept(&f.request)
			return f.request, nil
		}
		if err := f.drop(t); err != nil {
			return workload.Request{}, err
		}
	}
}

// accept parses a row and holds it to the rules that all formats share.
func (f *File) accept(line []byte) *fault {
	r := &f.request
	*r = workload.Request{}
	if fault := f.layout.parse(line, r, &f.at); fault != nil {
		return fault
	}
	if !f.begun && f.layout.absolute() {
		f.origin, f.begun = f.at, true
	}
	at, ok := f.at.sub(f.origin)
	if !ok {
		return faulty(Time, line, "is more than 100 days from the start", "a slice of the trace")
	}
	if r.InputTokens == 0 {
		return faulty(ZeroIn, line, "has an empty prompt", "input of 1 token or more")
	}
	if r.OutputTokens == 0 {
		if f.options.ZeroOutput != OneToken {
			return faulty(ZeroOut, line, "has an empty answer", "output of 1 token or more, or a policy for empty answers")
		}
		r.OutputTokens = 1
		f.mended(ZeroOut)
	}
	if f.options.Mode != Fix {
		if at < f.last {
			return faulty(Order, line, "is earlier than the row before", "rows in order of arrival, or mode fix")
		}
		f.last = at
	} else if at < f.latest {
		f.mended(Order)
	} else {
		f.latest = at
	}
	r.Arrival = at
	return nil
}

// drop counts a row that broke a rule, or says why it ends the trace.
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
		return f.tooBad()
	}
	return nil
}

func (f *File) mended(c Code) {
	if f.counts.Fixed == nil {
		f.counts.Fixed = map[Code]int64{}
	}
	f.counts.Fixed[c]++
}

// tooBad holds mode skip to its share of bad rows; empty answers dropped by policy are not bad.
func (f *File) tooBad() error {
	if f.options.Mode != Skip {
		return nil
	}
	bad := f.counts.Rows - f.counts.Accepted
	if f.options.ZeroOutput == DropZero {
		bad -= f.counts.Dropped[ZeroOut]
	}
	if share := float64(bad) / float64(f.counts.Rows); share > f.options.MaxBadFraction {
		return fmt.Errorf("%s: %d of %d rows break a rule, which is %.2g %% (want at most %.2g %%)", f.name, bad, f.counts.Rows, 100*share, 100*f.options.MaxBadFraction)
	}
	return nil
}
