package measured

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
)

// maxBytes limits the size of a file, unpacked.
const maxBytes = 1 << 30

// file is a parsed file: a JSON document, lines of JSON, or text.
type file struct {
	name string
	text []byte
	// document is the value of a JSON document, and lines are the values of a file with one JSON value per line; both
	// are nil for text.
	document any
	lines    []line
	broken   *yamldoc.Fault // why the JSON ends early; the part before is there
	faults   yamldoc.Faults
}

// line is a JSON value with its line, from 1.
type line struct {
	object
	number int
}

// open unpacks a file and reads JSON.
func open(name string, data []byte) (*file, error) {
	fault := func(format string, args ...any) error {
		return yamldoc.Faults{{Where: name, Problem: fmt.Sprintf(format, args...)}}
	}
	if bytes.HasPrefix(data, []byte("\x1f\x8b")) {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			z.Multistream(true)
			data, err = io.ReadAll(io.LimitReader(z, maxBytes+1))
		}
		if err != nil {
			return nil, fault("the gzip data ends early or is damaged: %v (want the whole file)", err)
		}
	}
	for magic, kind := range map[string]string{"\x28\xb5\x2f\xfd": "zstd", "PK\x03\x04": "zip", "PAR1": "Parquet"} {
		if bytes.HasPrefix(data, []byte(magic)) {
			return nil, fault("the file is compressed with %s (want it unpacked, or gzip)", kind)
		}
	}
	switch {
	case len(data) > maxBytes:
		return nil, fault("the file is too long (want at most %d MiB)", maxBytes>>20)
	case yamldoc.Blank(data):
		return nil, fault("the file is empty (want a result, metrics or a log)")
	}
	f := &file{name: name, text: bytes.TrimPrefix(data, []byte("\ufeff"))}
	head := bytes.TrimLeft(f.text, " \t\r\n")
	if len(head) > 0 && (head[0] == '{' && jsonObject(head[1:]) || head[0] == '[' && jsonList(head[1:])) {
		f.readJSON(head)
	}
	return f, nil
}

// jsonObject reports whether a text begins an object, and not a template or labels of Prometheus.
func jsonObject(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) == 0 || rest[0] == '"' || rest[0] == '}'
}

// jsonList reports whether a text begins a list, and not a time in brackets, as in a log.
func jsonList(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) == 0 || strings.IndexByte(`{["]`, rest[0]) >= 0
}

// readJSON reads one document, or one value per line.
func (f *file) readJSON(data []byte) {
	data = strictJSON(data)
	d := json.NewDecoder(bytes.NewReader(data))
	var values []line
	for {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			break
		}
		at := 1 + bytes.Count(data[:min(int(d.InputOffset()), len(data))], []byte("\n"))
		if err != nil {
			f.broken = &yamldoc.Fault{Where: fmt.Sprintf("%s:%d", f.name, at), Problem: fmt.Sprintf("the JSON ends "+
				"early or is damaged: %v (want the whole file)", err)}
			break
		}
		m, _ := v.(map[string]any)
		values = append(values, line{object{m, fmt.Sprintf("%s:%d", f.name, at), "", f}, at})
		if f.document == nil && len(values) == 1 {
			f.document = v
		}
	}
	if len(values) > 1 {
		f.document = nil
	}
	f.lines = values
	if f.document == nil && len(values) == 0 && f.broken != nil {
		f.lines = nil
	}
}

// strictJSON puts null in the place of NaN and Infinity, which Python writes outside strings.
func strictJSON(data []byte) []byte {
	if !bytes.Contains(data, []byte("NaN")) && !bytes.Contains(data, []byte("Infinity")) {
		return data
	}
	var out []byte
	inString := false
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case inString && c == '\\' && i+1 < len(data):
			out = append(out, c)
			i++
			c = data[i]
		case c == '"':
			inString = !inString
		case !inString && bytes.HasPrefix(data[i:], []byte("NaN")):
			out = append(out, `"NaN"`...)
			i += len("NaN") - 1
			continue
		case !inString && bytes.HasPrefix(data[i:], []byte("-Infinity")):
			out = append(out, `"-inf"`...)
			i += len("-Infinity") - 1
			continue
		case !inString && bytes.HasPrefix(data[i:], []byte("Infinity")):
			out = append(out, `"inf"`...)
			i += len("Infinity") - 1
			continue
		}
		out = append(out, c)
	}
	return out
}

// root is the document as an object; it has no keys if the file is no JSON object.
func (f *file) root() object {
	m, _ := f.document.(map[string]any)
	return object{m, f.name, "", f}
}

func (f *file) list() []object {
	l, _ := f.document.([]any)
	return objects(l, object{nil, f.name, "", f})
}

// fault notes what is wrong. Ten faults are enough.
func (f *file) fault(where, key, format string, args ...any) {
	if len(f.faults) < 10 {
		f.faults = append(f.faults, &yamldoc.Fault{Where: where, Key: key, Problem: fmt.Sprintf(format, args...)})
	}
}

// object is a JSON object with its place. The methods return nothing for keys that are missing or null.
type object struct {
	m     map[string]any
	where string // file, and line
	path  string // keys from the root
	file  *file
}

func objects(l []any, in object) []object {
	var out []object
	for i, v := range l {
		m, _ := v.(map[string]any)
		out = append(out, object{m, in.where, fmt.Sprintf("%s[%d]", in.path, i), in.file})
	}
	return out
}

func (o object) has(names ...string) bool {
	for _, n := range names {
		if _, ok := o.m[n]; !ok {
			return false
		}
	}
	return true
}

// get is the object at a path of keys; without keys if it is missing.
func (o object) get(names ...string) object {
	for _, n := range names {
		m, _ := o.m[n].(map[string]any)
		o = object{m, o.where, yamldoc.Join(o.path, n), o.file}
	}
	return o
}

func (o object) items(name string) []object {
	l, _ := o.m[name].([]any)
	return objects(l, object{nil, o.where, yamldoc.Join(o.path, name), o.file})
}

// text is a string; numbers and truths are none.
func (o object) text(names ...string) string {
	for _, n := range names {
		if s, ok := o.m[n].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// number is the first of the names that is there, 0 or more. A number in a string counts: some tools write them so. NaN
// and infinity are unknown values; a negative number is a fault.
func (o object) number(names ...string) *float64 {
	for _, n := range names {
		x, ok := toNumber(o.m[n])
		if !ok || math.IsNaN(x) || math.IsInf(x, 0) {
			if s, isText := o.m[n].(string); isText && !ok && s != "" {
				o.file.fault(o.where, yamldoc.Join(o.path, n), "%q is not allowed (want a number)", yamldoc.Short(s))
			}
			continue
		}
		if x < 0 {
			o.file.fault(o.where, yamldoc.Join(o.path, n), "%g is not allowed (want 0 or more)", x)
			continue
		}
		return &x
	}
	return nil
}

func (o object) scaled(by float64, names ...string) *float64 { return times(o.number(names...), by) }

// value is a number, 0 if it is missing.
func (o object) value(names ...string) float64 { return or(o.number(names...), 0) }

func (o object) count(names ...string) *int { return whole(o.number(names...)) }

// tokens is a length, 0 if it is missing.
func (o object) tokens(names ...string) int {
	x := o.value(names...)
	if x > maxTokens {
		o.file.fault(o.where, yamldoc.Join(o.path, names[0]), "%g is not allowed (want at most %d tokens)",
			x, maxTokens)
		return 0
	}
	return int(x)
}

// numbers are the numbers of a list; what is no number is NaN.
func (o object) numbers(name string) []float64 {
	l, _ := o.m[name].([]any)
	var out []float64
	for _, v := range l {
		x, ok := toNumber(v)
		if !ok {
			x = math.NaN()
		}
		out = append(out, x)
	}
	return out
}

// maxTokens is the longest length of a request that is read.
const maxTokens = 1 << 27

func (o object) truth(name string) bool { b, _ := o.m[name].(bool); return b }

func toNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		x, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return x, err == nil
	}
	return 0, false
}

// whole rounds a number; nil stays nil.
func whole(x *float64) *int {
	if x == nil || *x > math.MaxInt32 {
		return nil
	}
	n := int(math.Round(*x))
	return &n
}

// times scales a number; nil stays nil.
func times(x *float64, by float64) *float64 {
	if x == nil {
		return nil
	}
	y := *x * by
	return &y
}

func or(x *float64, otherwise float64) float64 {
	if x == nil {
		return otherwise
	}
	return *x
}

// quotient is a/b, nil where one of them is unknown or b is 0.
func quotient(a, b *float64) *float64 {
	if a == nil || b == nil || *b == 0 {
		return nil
	}
	y := *a / *b
	return &y
}
