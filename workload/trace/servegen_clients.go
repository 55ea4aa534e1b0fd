package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// clientLaws describes a client: its rates and lengths over time.
type clientLaws struct {
	windows []rateWindow
	lengths []lengthWindow
}

// rateWindow is an interval with a constant rate.
type rateWindow struct {
	start, length float64 // seconds
	rate          float64 // requests per second
	weibull       bool
	shape         float64
}

// lengthWindow is an interval with one distribution of lengths.
type lengthWindow struct {
	start         float64
	input, output lengthLaw
}

// lengthLaw is a discrete distribution of lengths with cumulative probabilities.
type lengthLaw struct {
	length []int32
	sum    []float64
}

func (b *clientLaws) expected() float64 {
	n := 0.0
	for _, w := range b.windows {
		n += w.rate * w.length
	}
	return n
}

// lengthsAt returns the window that contains the instant, or the first one if that is later.
func (b *clientLaws) lengthsAt(seconds float64) *lengthWindow {
	i := len(b.lengths) - 1
	for i > 0 && b.lengths[i].start > seconds {
		i--
	}
	return &b.lengths[i]
}

func (m *lengthLaw) sample(s *workload.RNG) int32 {
	u := float64(s.Uint64()>>11) / (1 << 53) * m.sum[len(m.sum)-1]
	i, _ := slices.BinarySearchFunc(m.sum, u, func(sum, u float64) int {
		if sum <= u {
			return -1
		}
		return 1
	})
	return max(1, m.length[min(i, len(m.length)-1)])
}

// chunk names the files of a client; a missing file is empty.
type chunk struct{ number, rates, lengths string }

// chunksIn returns the chunks of a directory in the order of their numbers.
func chunksIn(dir fs.FS) ([]chunk, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	chunks := map[string]chunk{}
	for _, e := range entries {
		if n, ok := chunkOf(e.Name(), "-trace.csv"); ok {
			chunks[n] = chunk{n, e.Name(), chunks[n].lengths}
		} else if n, ok := chunkOf(e.Name(), "-dataset.json"); ok {
			chunks[n] = chunk{n, chunks[n].rates, e.Name()}
		}
	}
	return slices.SortedFunc(maps.Values(chunks), func(a, b chunk) int { return byNumber(a.number, b.number) }), nil
}

// chunkOf returns the N of a file named chunk-N with a suffix, gzipped or not.
func chunkOf(file, suffix string) (string, bool) {
	n, ok := strings.CutPrefix(strings.TrimSuffix(file, ".gz"), "chunk-")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(n, suffix)
}

func byNumber(a, b string) int {
	if d := len(a) - len(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// read reads the files. Without a file of lengths, the result has none.
func (k *chunk) read(dir fs.FS, f *File) (b clientLaws, err error) {
	if err := b.readRates(dir, f.name, k.rates); err != nil {
		return b, err
	}
	if k.lengths != "" {
		err = b.readLengths(dir, f, k.lengths)
	}
	return b, err
}

// openPart opens a file, gzipped or not.
func openPart(dir fs.FS, name, file string) (io.Reader, io.Closer, error) {
	in, err := dir.Open(file)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	b := bufio.NewReader(in)
	if head, _ := b.Peek(2); string(head) == "\x1f\x8b" {
		z, err := gzip.NewReader(b)
		if err != nil {
			in.Close()
			return nil, nil, fmt.Errorf("%s/%s: reading gzip: %w", name, file, err)
		}
		return z, in, nil
	}
	return b, in, nil
}

// readRates reads chunk-N-trace.csv, one window per row.
func (b *clientLaws) readRates(dir fs.FS, name, file string) error {
	in, closer, err := openPart(dir, name, file)
	if err != nil {
		return err
	}
	defer closer.Close()
	l := newLines(in)
	refuse := func(t *fault) error {
		return &rowError{Name: name + "/" + file, Line: l.number, Code: t.code, Value: t.value, Problem: t.problem,
			Want: t.want}
	}
	var fields [][]byte
	for {
		line, err := l.next()
		if err == io.EOF {
			break
		} else if err != nil {
			return fmt.Errorf("%s/%s: line %d: %w", name, file, l.number+1, err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var t *fault
		if fields, t = columns(line, fields); t != nil || len(fields) != 6 {
			return refuse(faulty(Fields, line, fmt.Sprintf("has %d columns", len(fields)), rateColumns))
		}
		w, t := parseRate(fields)
		if t != nil {
			return refuse(t)
		}
		if !b.follow(w) {
			return refuse(faulty(Order, line, "does not start after the previous window",
				"windows in order of their start"))
		}
	}
	if len(b.windows) == 0 {
		return refuse(faulty(Empty, nil, "has no windows", "one or more"))
	}
	return nil
}

// rateColumns are the columns of chunk-N-trace.csv. CV and scale follow from the others and are not used.
const rateColumns = "start, rate, CV, law, shape, scale"

// parseRate reads a row, which does not contain the length of the window.
func parseRate(fields [][]byte) (rateWindow, *fault) {
	var w rateWindow
	for _, x := range [...]struct {
		to     *float64
		column int
	}{{&w.start, 0}, {&w.rate, 1}, {&w.shape, 4}} {
		v, err := strconv.ParseFloat(string(fields[x.column]), 64)
		if err != nil || !(v >= 0) || v > 1e9 {
			return w, faulty(Range, fields[x.column], "is not a number from 0 to 1e9", rateColumns)
		}
		*x.to = v
	}
	law := string(fields[3])
	w.weibull = law == "Weibull"
	switch {
	case w.start > (clock.MaxRun - clock.Day).Seconds():
		return w, faulty(Time, fields[0], "is too late for the start of a window", "at most 99 days from the start")
	case w.rate > 0 && !w.weibull && law != "Gamma":
		return w, faulty(Class, fields[3], "is an unknown distribution", "Gamma or Weibull")
	case w.rate > 0 && !(w.shape >= 1e-3 && w.shape <= 1e6):
		return w, faulty(Range, fields[4], "is not a shape", "0.001 to 1000000")
	}
	return w, nil
}

// follow appends a window, at whose start the previous one ends; it returns false if the start is not later. The
// last window gets the length of the previous one, at most a day, or ten minutes if it is the only one.
func (b *clientLaws) follow(w rateWindow) bool {
	w.length = 600
	if n := len(b.windows); n > 0 {
		before := &b.windows[n-1]
		if w.start <= before.start {
			return false
		}
		before.length = w.start - before.start
		w.length = min(before.length, clock.Day.Seconds())
	}
	b.windows = append(b.windows, w)
	return true
}

// readLengths reads chunk-N-dataset.json: by the start of a window its distributions, each the text of a Python
// dictionary of lengths and probabilities.
func (b *clientLaws) readLengths(dir fs.FS, f *File, file string) error {
	in, closer, err := openPart(dir, f.name, file)
	if err != nil {
		return err
	}
	defer closer.Close()
	d := &document{r: bufio.NewReaderSize(in, peekBytes), number: 1, longest: maxLine}
	err = d.members(func(key string) error {
		start, err := strconv.ParseFloat(key, 64)
		if err != nil || !(start >= 0) {
			return &shapeError{key, "the start of a window in seconds"}
		}
		w := lengthWindow{start: start}
		err = d.members(func(key string) error {
			switch key {
			case "input_tokens":
				return w.input.read(d, f.options.MaxTokens)
			case "output_tokens":
				return w.output.read(d, f.options.MaxTokens)
			}
			return d.skip()
		})
		if err == nil && len(w.input.sum) > 0 && len(w.output.sum) > 0 {
			b.lengths = append(b.lengths, w)
		}
		return err
	})
	if err != nil {
		return d.explain(f.name+"/"+file, err)
	}
	slices.SortFunc(b.lengths, func(v, w lengthWindow) int { return cmp.Compare(v.start, w.start) })
	return nil
}

// read reads the text {length: probability, …}; an empty one is no distribution.
func (m *lengthLaw) read(d *document, limit int32) error {
	text, err := d.scalar()
	if err != nil {
		return err
	}
	const want = `a text such as "{100: 0.5, 200: 0.5}"`
	if len(text) < 4 || text[1] != '{' || text[len(text)-2] != '}' {
		return &shapeError{string(text), want}
	}
	sum := 0.0
	inner := bytes.TrimSpace(text[2 : len(text)-2])
	if len(inner) == 0 {
		return nil
	}
	for part := range bytes.SplitSeq(inner, []byte{','}) {
		key, value, _ := bytes.Cut(part, []byte{':'})
		n, fault := count(bytes.TrimSpace(key), limit)
		p, err := strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
		if fault != nil || err != nil || !(p >= 0 && p <= 1) {
			return &shapeError{string(part), "a length and its probability"}
		}
		if sum += p; p > 0 {
			m.length, m.sum = append(m.length, n), append(m.sum, sum)
		}
	}
	return nil
}
