package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"clifftop/workload"
)

// Reader hands out the requests of a trace in order of arrival, numbered from 0, and io.EOF at the end.
type Reader interface {
	Next() (workload.Request, error)
}

// Options say how to read a trace. The zero value detects the format and is strict.
type Options struct {
	// Format is one of [Formats]; empty or auto tells it by the header or the keys.
	Format string
	// Mode says what to do with rows that break a rule.
	Mode Mode
	// MaxBadFraction is the share of dropped rows above which mode skip stops; 0 means 0.01.
	MaxBadFraction float64
	// MaxTokens is the largest length; 0 means 2,000,000.
	MaxTokens int32
	// ZeroOutput says what becomes of empty answers; empty leaves them to the mode.
	ZeroOutput ZeroOutput
	// BlockTokens is the block size of Mooncake's ids; 0 means 512.
	BlockTokens int32
	// CheckChains demands of Mooncake's ids that each always has the same predecessor. It takes
	// memory for every id.
	CheckChains bool
	// Domain keeps the block ids of one trace apart from those of another in the same run.
	Domain uint64
}

// SortWindow is how many rows mode fix holds to sort them by arrival.
const SortWindow = 10_000

// Formats are the names of the formats.
func Formats() []string { return []string{"clifftop", "azure", "mooncake"} }

// layout reads the rows of one format. Parse fills in all of a request but its ID and arrival.
type layout interface {
	parse(line []byte, r *workload.Request, t *instant) *fault
	accept(r *workload.Request) // the row just parsed is kept
	absolute() bool             // times have an origin of their own: they count from the first row
}

// header is what CSV layouts have in common.
type header struct {
	names  []string // in lower case
	fields [][]byte // of the row
	limit  int32
}

// index is the position of a column, or -1.
func (h *header) index(name string) int {
	for i, n := range h.names {
		if n == name {
			return i
		}
	}
	return -1
}

// field is a column of the row; nil where the trace does not have it.
func (h *header) field(i int) []byte {
	if i < 0 {
		return nil
	}
	return h.fields[i]
}

func (h *header) split(line []byte) (f *fault) {
	if h.fields, f = columns(line, h.fields); f != nil {
		return f
	}
	if len(h.fields) != len(h.names) {
		return wrongColumns(line, len(h.fields), len(h.names))
	}
	return nil
}

func (h *header) accept(*workload.Request) {}

// has says whether all the columns are there.
func (h *header) has(names ...string) bool {
	for _, n := range names {
		if h.index(n) < 0 {
			return false
		}
	}
	return true
}

var (
	ownColumns      = []string{"arrival_s", "input_tokens", "output_tokens"}
	ownExtras       = []string{"session", "content", "class", "priority"}
	azureColumns    = []string{"timestamp", "contexttokens", "generatedtokens"}
	mooncakeColumns = []string{"timestamp", "input_length", "output_length", "hash_ids"}
)

// Open begins to read a trace; the name is for messages. It reads the header, and fails when the
// format is not known or there is nothing at all. A reader that is an io.Closer is closed at the end
// of the trace and on any error.
func Open(r io.Reader, name string, o Options) (*File, error) {
	f := &File{name: name, options: o, window: newWindow()}
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
	in := bufio.NewReaderSize(r, 64<<10)
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(in)
		if err != nil {
			return fmt.Errorf("%s: reading gzip: %w", f.name, err)
		}
		f.lines = newLines(z)
	} else {
		f.lines = newLines(in)
	}
	return f.detect()
}

func (o *Options) defaults() error {
	if o.MaxBadFraction == 0 {
		o.MaxBadFraction = 0.01
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = 2_000_000
	}
	if o.BlockTokens == 0 {
		o.BlockTokens = 512
	}
	if o.Format == "auto" {
		o.Format = ""
	}
	switch {
	case o.Mode == "":
		o.Mode = Strict
	case o.Mode != Strict && o.Mode != Skip && o.Mode != Fix:
		return fmt.Errorf("mode %q is not known (want strict, skip or fix)", o.Mode)
	}
	switch {
	case o.ZeroOutput != "" && o.ZeroOutput != DropZero && o.ZeroOutput != OneToken:
		return fmt.Errorf("policy %q for empty answers is not known (want drop or one)", o.ZeroOutput)
	case o.MaxTokens < 1 || o.MaxTokens > workload.MaxTokens:
		return fmt.Errorf("limit of %d tokens is not allowed (want 1 to %d)", o.MaxTokens, workload.MaxTokens)
	case o.BlockTokens < 1 || o.BlockTokens > 1<<20:
		return fmt.Errorf("block of %d tokens is not allowed (want 1 to %d)", o.BlockTokens, 1<<20)
	case !(o.MaxBadFraction > 0 && o.MaxBadFraction <= 1):
		return fmt.Errorf("share of bad rows %v is not allowed (want more than 0, at most 1)", o.MaxBadFraction)
	}
	return nil
}

// detect reads up to the header, or to the first object, and chooses the layout.
func (f *File) detect() error {
	var line []byte
	for len(bytes.TrimSpace(line)) == 0 {
		var err error
		if line, err = f.lines.next(); err == io.EOF {
			return &RowError{Name: f.name, Code: Empty, Problem: "nothing in it", Want: "a header and rows"}
		} else if err != nil {
			return f.broken(err)
		}
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	if first := bytes.TrimSpace(line); first[0] == '{' {
		return f.detectObject(first)
	}
	fields, fault := columns(line, nil)
	if fault != nil {
		return f.refuse(fault)
	}
	h := header{limit: f.options.MaxTokens}
	for _, b := range fields {
		h.names = append(h.names, strings.ToLower(string(b)))
	}
	format := f.options.Format
	switch {
	case h.has(ownColumns...) && (format == "" || format == "clifftop"):
		f.format, f.layout = "clifftop", newOwn(h)
		f.warnUnused(h, append(ownExtras, ownColumns...))
	case h.has(azureColumns...) && (format == "" || format == "azure"):
		f.format, f.layout = "azure", newAzure(h)
		f.warnUnused(h, azureColumns)
	default:
		return f.unknown("header", line)
	}
	return nil
}

// detectObject chooses the layout by the keys of the first object, which is also the first row.
func (f *File) detectObject(line []byte) error {
	var keys []string
	ok := object(line, func(key, _ []byte) { keys = append(keys, string(key)) })
	h := header{names: keys}
	if f.options.Format != "mooncake" && !(ok && f.options.Format == "" && h.has(mooncakeColumns...) && h.index("chat_id") < 0) {
		return f.unknown("first line", line)
	}
	m := newMooncake(f.options)
	if f.options.Mode == Fix {
		m.dropIDs, m.fixed = true, f.mended
	}
	f.format, f.layout = "mooncake", m
	f.warnUnused(h, mooncakeColumns)
	f.held = bytes.Clone(line)
	return nil
}

func (f *File) unknown(what string, line []byte) error {
	want := "arrival_s,input_tokens,output_tokens of clifftop; TIMESTAMP,ContextTokens,GeneratedTokens of azure; " +
		"or objects with timestamp, input_length, output_length and hash_ids of mooncake"
	problem := "is the " + what + " of no known format"
	if f.options.Format != "" {
		problem = "is not the " + what + " of format " + f.options.Format
	}
	return f.refuse(faulty(Fields, line, problem, want))
}

func (f *File) warnUnused(h header, known []string) {
	for _, n := range h.names {
		used := false
		for _, k := range known {
			used = used || k == n
		}
		if !used {
			f.warnings = append(f.warnings, fmt.Sprintf("%s: column %s is not used", f.name, quoted(n)))
		}
	}
}

// Next returns the next request; see [File.Counts] for what became of the others.
func (f *File) Next() (workload.Request, error) {
	r, err := f.ordered()
	if err != nil {
		if err == io.EOF {
			err = f.finish()
		}
		f.err = err
		f.Close() // only read from: nothing can be lost
		return workload.Request{}, err
	}
	if f.given == 0 && f.layout.absolute() {
		f.base = r.Arrival
	}
	r.Arrival -= f.base
	r.ID = f.given
	f.given++
	return r, nil
}

// finish checks the trace as a whole.
func (f *File) finish() error {
	if f.counts.Rows == 0 {
		return &RowError{Name: f.name, Code: Empty, Problem: "no rows", Want: "one or more"}
	}
	if f.counts.Accepted == 0 {
		return &RowError{Name: f.name, Code: Empty, Problem: fmt.Sprintf("none of the %d rows can be used", f.counts.Rows), Want: "one or more"}
	}
	if err := f.tooBad(); err != nil {
		return err
	}
	return io.EOF
}

// broken explains an error of the stream.
func (f *File) broken(err error) error {
	if err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%s: the file is cut short after %d rows: %w", f.name, f.counts.Rows, err)
	}
	return fmt.Errorf("%s: after %d rows: %w", f.name, f.counts.Rows, err)
}

func (f *File) refuse(t *fault) error {
	return &RowError{Name: f.name, Line: f.lines.number, Code: t.code, Value: t.value, Problem: t.problem, Want: t.want}
}
