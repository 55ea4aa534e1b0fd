package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"

	"clifftop/internal/duplicate"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Reader returns the rows of a trace in order of arrival, numbered from 0, and io.EOF at the end.
type Reader interface {
	Next() (Row, error)
}

// Options control how a trace is read. The zero value detects the format and is strict.
type Options struct {
	// Format is the name of one of [Formats]; empty or auto detects it by the header or the keys.
	Format string
	// Mode is the treatment of rows that break a rule.
	Mode Mode
	// MaxBadFraction is the fraction of dropped rows above which mode skip stops; 0 means 0.01.
	MaxBadFraction float64
	// MaxTokens is the largest allowed length in tokens; 0 means 2,000,000.
	MaxTokens int32
	// ZeroOutput is the policy for empty outputs. Empty means drop in formats that record failed requests as empty
	// outputs, and otherwise leaves them to the mode.
	ZeroOutput ZeroOutput
	// BlockTokens is the block size of a trace with block IDs, or the size of the blocks in which token IDs are
	// compared. 0 means the default of the format: 512 for Mooncake, otherwise 16.
	BlockTokens int32
	// CheckChains checks that each block ID always follows the same block. It takes memory for every ID.
	CheckChains bool
	// Domain separates the block IDs of one trace from those of another in the same run.
	Domain uint64
	// Seed is the seed of generated traces ([OpenServeGen]).
	Seed uint64
}

// SortWindow is the number of rows that mode fix buffers to sort them by arrival.
const SortWindow = 10_000

// peekBytes is how much of a trace is inspected to detect a JSON document.
const peekBytes = 64 << 10

// Open opens a trace and reads its header. name appears in messages. Open returns an error if the format is unknown
// or the trace is empty. If r is an io.Closer, it is closed at the end of the trace and on any error.
func Open(r io.Reader, name string, o Options) (*File, error) {
	f := &File{name: name, options: o}
	if c, ok := r.(io.Closer); ok {
		f.closer = c
	}
	if err := f.open(r); err != nil {
		f.Close() // only read from: nothing can be lost
		return nil, err
	}
	return f, nil
}

func (f *File) open(r io.Reader) error {
	if err := f.options.defaults(); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	in := bufio.NewReaderSize(r, peekBytes)
	head, _ := in.Peek(6)
	if bytes.HasPrefix(head, []byte("\x1f\x8b")) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("%s: reading gzip: %w", f.name, err)
		}
		in = bufio.NewReaderSize(z, peekBytes)
	} else if kind := compression(head); kind != "" {
		return fmt.Errorf("%s: the file is compressed with %s (want plain text or gzip)", f.name, kind)
	}
	return f.detect(in)
}

func (o *Options) defaults() error {
	if o.MaxBadFraction == 0 {
		o.MaxBadFraction = 0.01
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = 2_000_000
	}
	if o.Format == "auto" {
		o.Format = ""
	}
	if o.Format != "" {
		var names []string
		for _, f := range Formats() {
			names = append(names, f.Name)
		}
		if !slices.Contains(names, o.Format) {
			return fmt.Errorf("format %q is not known (want auto, %s)", o.Format, strings.Join(names, ", "))
		}
	}
	switch {
	case o.Mode == "":
		o.Mode = Strict
	case o.Mode != Strict && o.Mode != Skip && o.Mode != Fix:
		return fmt.Errorf("mode %q is not known (want strict, skip or fix)", o.Mode)
	}
	switch {
	case o.ZeroOutput != "" && o.ZeroOutput != DropZero && o.ZeroOutput != OneToken:
		return fmt.Errorf("zero_output %q is not known (want drop or one)", o.ZeroOutput)
	case o.MaxTokens < 1 || o.MaxTokens > workload.MaxTokens:
		return fmt.Errorf("max_tokens %d is not allowed (want 1 to %d)", o.MaxTokens, workload.MaxTokens)
	case o.BlockTokens < 0 || o.BlockTokens > 1<<20:
		return fmt.Errorf("block_tokens %d is not allowed (want 1 to %d)", o.BlockTokens, 1<<20)
	case !(o.MaxBadFraction > 0 && o.MaxBadFraction <= 1):
		return fmt.Errorf("max_bad_fraction %v is not allowed (want more than 0, at most 1)", o.MaxBadFraction)
	}
	return nil
}

// detect chooses the format by the header, the keys of the first object, or those of the document.
func (f *File) detect(in *bufio.Reader) error {
	head, _ := in.Peek(peekBytes)
	if names, item := documentKeys(head); names != nil {
		if x := f.choose(names, func(x *format) bool { return x.whole != nil }); x != nil {
			return f.openDocument(x, in)
		}
		if item {
			f.source = &lineSource{lines: newLines(in)}
			return f.unknownFormat("list", bytes.TrimSpace(head))
		}
	}
	l := &lineSource{lines: newLines(in)}
	f.source = l
	for {
		line, err := l.lines.next()
		if err == io.EOF {
			return &rowError{Name: f.name, Code: Empty, Problem: "the trace is empty", Want: "a header and rows"}
		} else if err != nil {
			return f.readError(err)
		}
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
		switch {
		case len(line) == 0 || line[0] == '#': // blankLen, or a comment before the header
		case line[0] == '{':
			return f.openObjects(l, line)
		default:
			return f.openColumns(l, line)
		}
	}
}

// choose returns the matching format with the most identifying names.
func (f *File) choose(names []string, fits func(*format) bool) *format {
	var chosen *format
	best := 0
	for _, x := range formats() {
		n := x.matches(names)
		if n > best && fits(&x) && (f.options.Format == "" || f.options.Format == x.Name) {
			chosen, best = &x, n
		}
	}
	return chosen
}

func (f *File) openColumns(l *lineSource, line []byte) error {
	fields, fault := columns(line, nil)
	if fault != nil {
		return f.refuse(fault)
	}
	h, fault := newHeader(fields, f.options.MaxTokens)
	if fault != nil {
		return f.refuse(fault)
	}
	x := f.choose(h.names, func(x *format) bool { return x.columns != nil })
	if x == nil {
		return f.unknownFormat("header", line)
	}
	f.useFormat(x, h.names)
	h.fields = nil
	l.layout = x.columns(f, h)
	return nil
}

// openObjects chooses by the keys of the first object, which is also the first row.
func (f *File) openObjects(l *lineSource, line []byte) error {
	var keys []string
	ok := walkObject(line, func(key, _ []byte) { keys = append(keys, string(key)) })
	fits := func(x *format) bool { return x.objects != nil }
	var x *format
	if ok {
		x = f.choose(keys, fits)
	}
	for _, y := range formats() { // with an explicit format, report what is wrong with the first row
		if x == nil && f.options.Format == y.Name && fits(&y) {
			x = &y
		}
	}
	if _, _, twice := duplicate.Key(line); twice {
		return f.refuse(notObject(line))
	}
	if x == nil {
		return f.unknownFormat("first line", line)
	}
	f.useFormat(x, keys)
	l.held = bytes.Clone(line)
	l.layout = x.objects(f)
	return nil
}

func (f *File) openDocument(x *format, in *bufio.Reader) error {
	f.useFormat(x, nil)
	d := &document{r: in, number: 1}
	list, err := x.whole(f, d)
	if err != nil {
		return d.explain(f.name, err)
	}
	if _, err := d.next(); err == nil {
		f.warn("line %d: only the first result is read", d.number)
	}
	f.source = list
	return nil
}

// useFormat sets the format and warns about columns or keys that it does not read.
func (f *File) useFormat(x *format, names []string) {
	f.format = *x
	if x.failures && f.options.ZeroOutput == "" {
		f.options.ZeroOutput = DropZero
	}
	for _, n := range names {
		if !x.uses(n) {
			f.warn("column %s is not used", quoted(n))
		}
	}
}

func (f *File) warn(form string, args ...any) {
	f.warnings = append(f.warnings, f.name+": "+fmt.Sprintf(form, args...))
}

func (f *File) unknownFormat(what string, found []byte) error {
	var want []string
	problem := "is the " + what + " of no known format"
	for _, x := range formats() {
		alike := what == "header" && x.columns != nil || what == "first line" && x.columns == nil || what == "list" &&
			x.whole != nil
		if f.options.Format == "" && alike || f.options.Format == x.Name {
			want = append(want, fmt.Sprintf("%s of %s", strings.Join(x.need[0], ","), x.Name))
		}
	}
	if f.options.Format != "" {
		problem = "is not the " + what + " of format " + f.options.Format
	}
	if isServeGenRow(found) {
		problem, want = "is a rate file of a ServeGen client",
			[]string{"the directory with all chunk-N-trace.csv and chunk-N-dataset.json"}
	}
	return f.refuse(faulty(Fields, found, problem, strings.Join(want, "; ")))
}

// Slice keeps the rows that arrive in from ≤ t < to, counted from the first row or from the trace's own origin;
// arrivals then count from from. A to of 0 means the end. Slice must be called before the first Next. Long traces
// can be read in slices of at most [clock.MaxRun].
func (f *File) Slice(from, to clock.Duration) {
	f.from, f.to, f.sliced = instantOf(from), instantOf(to), from > 0 || to > 0
	f.endless = to == 0
}

// Next returns the next row. [File.Counts] counts the rows that were dropped.
func (f *File) Next() (Row, error) {
	r, err := f.nextOrdered()
	if err != nil {
		if err == io.EOF {
			err = f.finish()
		}
		f.err = err
		f.Close() // only read from: nothing can be lost
		return Row{}, err
	}
	if f.delivered == 0 && f.format.absolute && !f.sliced {
		f.base = r.Arrival
	}
	if f.base < 0 && r.Arrival > clock.Time(clock.MaxRun)+f.base { // rows before the first that was read came first
		f.err = &rowError{Name: f.name, Code: Time, Problem: "a row is more than 100 days after the earliest",
			Want: "a slice of the trace"}
		f.Close() // only read from: nothing can be lost
		return Row{}, f.err
	}
	r.Arrival -= f.base
	r.ID = f.delivered
	f.delivered++
	return *r, nil
}

// finish checks the trace as a whole.
func (f *File) finish() error {
	c := &f.counts
	switch {
	case c.Rows == 0:
		return &rowError{Name: f.name, Code: Empty, Problem: "no rows", Want: "one or more"}
	case c.Accepted == 0 && c.Outside == 0:
		return &rowError{Name: f.name, Code: Empty, Problem: fmt.Sprintf("none of the %d rows can be used", c.Rows),
			Want: "one or more"}
	}
	if err := f.checkBadShare(); err != nil {
		return err
	}
	if e, ok := f.inner().(interface{ ended(*File) }); ok {
		e.ended(f)
	}
	return io.EOF
}

// readError wraps an error of the stream.
func (f *File) readError(err error) error {
	if err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%s: the file is cut short after %d rows: %w", f.name, f.counts.Rows, err)
	}
	return fmt.Errorf("%s: after %d rows: %w", f.name, f.counts.Rows, err)
}

func (f *File) refuse(t *fault) error {
	e := &rowError{Name: f.name, Code: t.code, Value: t.value, Problem: t.problem, Want: t.want}
	if f.source != nil {
		e.Line = f.source.line()
	}
	return e
}
