package trace

import (
	"bytes"
	"slices"
	"strings"

	"clifftop/internal/duplicate"
)

// Format describes a trace format.
type Format struct {
	Name   string
	Layout string // description
	Source string // where such traces are published
}

// Formats returns all formats that [Open] and [OpenServeGen] read.
func Formats() []Format {
	var list []Format
	for _, f := range formats() {
		list = append(list, f.Format)
	}
	return append(list, serveGenFormat)
}

// format is a Format with its detection and its reader.
type format struct {
	Format
	need     [][]string // columns in lower case, or keys: all names of one list identify the format
	may      []string   // optional names
	not      []string   // names that identify another format
	absolute bool       // times have an origin of their own; arrivals count from the first row
	failures bool       // an empty output is a failed request; it is dropped by default

	// Exactly one of these is set: for CSV, JSON lines, or a JSON document.
	columns func(f *File, h header) layout
	objects func(f *File) layout
	whole   func(f *File, d *document) (*records, error)
}

func formats() []format {
	return []format{
		nativeFormat(),
		recordFormat(),
		azureFormat(),
		burstGPTFormat(),
		mooncakeFormat(),
		bailianFormat(),
		vidurFormat(),
		splitwiseFormat(),
		servingSimFormat(),
		vllmBenchFormat(),
		inferencePerfFormat(),
	}
}

// matches returns how many of the names identify the format; 0 if it is another one.
func (f *format) matches(names []string) int {
	best := 0
	if slices.ContainsFunc(names, func(n string) bool { return slices.Contains(f.not, n) }) {
		return 0
	}
	for _, need := range f.need {
		missing := slices.ContainsFunc(need, func(n string) bool { return !slices.Contains(names, n) })
		if !missing {
			best = max(best, len(need))
		}
	}
	return best
}

// uses reports whether the format reads a column or key.
func (f *format) uses(name string) bool {
	return slices.Contains(f.may, name) || slices.ContainsFunc(f.need,
		func(need []string) bool { return slices.Contains(need, name) })
}

// header is the common part of CSV layouts.
type header struct {
	names  []string // in lower case
	fields [][]byte // of the row
	limit  int32
}

func newHeader(fields [][]byte, limit int32) (header, *fault) {
	h := header{limit: limit}
	for _, b := range fields {
		h.names = append(h.names, strings.ToLower(string(b)))
	}
	if name, twice := duplicate.Column(h.names); twice {
		return h, faulty(Fields, []byte(name), "is the name of two columns", "each column once")
	}
	return h, nil
}

// index returns the position of a column, or -1.
func (h *header) index(name string) int { return slices.Index(h.names, name) }

// field returns a column of the row; nil if the trace does not have it.
func (h *header) field(i int) []byte {
	if i < 0 {
		return nil
	}
	return h.fields[i]
}

func (h *header) split(line []byte) (f *fault) {
	if line = trim(line); len(line) > 0 && line[0] == '{' {
		return faulty(Fields, line, "is a JSON object", "CSV columns as in the header")
	}
	if h.fields, f = columns(line, h.fields); f != nil {
		return f
	}
	if len(h.fields) != len(h.names) {
		return wrongColumns(line, len(h.fields), len(h.names))
	}
	return nil
}

func (h *header) lengths(r *Row, input, output int) (f *fault) {
	if r.InputTokens, f = count(h.fields[input], h.limit); f != nil {
		return f
	}
	r.OutputTokens, f = count(h.fields[output], h.limit)
	return f
}

func (h *header) accept(*Row) {}

// compressions are the magic bytes of compressed files that are not supported.
var compressions = []struct{ magic, name string }{
	{"\x28\xb5\x2f\xfd", "zstd"}, {"\xfd7zXZ\x00", "xz"}, {"BZh", "bzip2"}, {"PK\x03\x04", "zip"}, {"PAR1", "Parquet"},
}

// compression names the compression of a file, if it is known.
func compression(head []byte) string {
	for _, c := range compressions {
		if bytes.HasPrefix(head, []byte(c.magic)) {
			return c.name
		}
	}
	return ""
}
