package trace

import (
	"bytes"
	"slices"
	"strings"
)

// Format describes a layout of traces.
type Format struct {
	Name   string
	Layout string // in words
	Source string // where such traces come from
}

// Formats are all that [Open] and [OpenServeGen] read.
func Formats() []Format {
	var list []Format
	for _, f := range formats() {
		list = append(list, f.Format)
	}
	return append(list, serveGenFormat)
}

// format is a Format with the means to tell and to read it.
type format struct {
	Format
	need     [][]string // columns in lower case, or keys: all of one list tell it
	may      []string   // others that it knows
	not      []string   // those that tell that it is another
	absolute bool       // times have an origin of their own: they count from the first row
	failures bool       // an empty answer is a request that failed, and left out if not asked for

	// One of these is set, for CSV, JSON lines, and a JSON document.
	columns func(f *File, h header) layout
	objects func(f *File) layout
	whole   func(f *File, d *document) (*records, error)
}

// formats is where a format is made known.
func formats() []format {
	return []format{
		nativeFormat(),
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

// matches says how many of the names tell the format; 0 if they do not.
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

// uses says whether a column or key means something to the format.
func (f *format) uses(name string) bool {
	return slices.Contains(f.may, name) || slices.ContainsFunc(f.need, func(need []string) bool { return slices.Contains(need, name) })
}

// header is what CSV layouts have in common.
type header struct {
	names  []string // in lower case
	fields [][]byte // of the row
	limit  int32
}

func newHeader(fields [][]byte, limit int32) header {
	h := header{limit: limit}
	for _, b := range fields {
		h.names = append(h.names, strings.ToLower(string(b)))
	}
	return h
}

// index is the position of a column, or -1.
func (h *header) index(name string) int { return slices.Index(h.names, name) }

// field is a column of the row; nil where the trace does not have it.
func (h *header) field(i int) []byte {
	if i < 0 {
		return nil
	}
	return h.fields[i]
}

func (h *header) split(line []byte) (f *fault) {
	if line = trim(line); len(line) > 0 && line[0] == '{' {
		return faulty(Fields, line, "is a JSON object", "columns like those of the header: one format a file")
	}
	if h.fields, f = columns(line, h.fields); f != nil {
		return f
	}
	if len(h.fields) != len(h.names) {
		return wrongColumns(line, len(h.fields), len(h.names))
	}
	return nil
}

// lengths reads the two numbers of tokens.
func (h *header) lengths(r *Row, input, output int) (f *fault) {
	if r.InputTokens, f = count(h.fields[input], h.limit); f != nil {
		return f
	}
	r.OutputTokens, f = count(h.fields[output], h.limit)
	return f
}

func (h *header) accept(*Row) {}

// compressions are the beginnings of files that are compressed or packed in a way that is not read.
var compressions = []struct{ magic, name string }{
	{"\x28\xb5\x2f\xfd", "zstd"}, {"\xfd7zXZ\x00", "xz"}, {"BZh", "bzip2"}, {"PK\x03\x04", "zip"}, {"PAR1", "Parquet"},
}

// compression names what a file is packed with, where that is known.
func compression(head []byte) string {
	for _, c := range compressions {
		if bytes.HasPrefix(head, []byte(c.magic)) {
			return c.name
		}
	}
	return ""
}
