package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"clifftop/sim/clock"
	"clifftop/workload"
	"clifftop/workload/internal/heap"
	"gonum.org/v1/gonum/stat/distuv"
)

var serveGenFormat = Format{"servegen", "a directory: chunk-N-trace.csv and chunk-N-dataset.json of each client; requests are generated from them", "https://github.com/alibaba/ServeGen"}

// OpenServeGen generates the traffic of ServeGen's clients from a directory that describes them:
// chunk-N-trace.csv has a rate and a law of gaps for each ten minutes, chunk-N-dataset.json the lengths
// for each six hours; either may be gzipped. The class of a request is its client.
//
// A client's gaps follow the law of the window in which they begin, and run faster or slower as the rate
// changes, so that every window has its rate and bursts go on across windows. Prompt and answer are drawn
// independently within a window: the description does not have their dependence.
func OpenServeGen(dir fs.FS, name string, o Options) (*File, error) {
	f := &File{name: name, options: o, window: newWindow(), format: format{Format: serveGenFormat}}
	if err := f.options.defaults(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	g := &serveGen{queue: heap.Heap[upcoming]{Before: (*upcoming).before}}
	f.feed = g
	if err := g.load(dir, f); err != nil {
		return nil, err
	}
	return f, nil
}

// IsServeGen says whether a directory describes clients for [OpenServeGen].
func IsServeGen(dir fs.FS) bool {
	entries, err := fs.ReadDir(dir, ".")
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		_, ok := chunkOf(e.Name(), "-trace.csv")
		return ok
	})
}

// looksServeGen says whether a line is one of chunk-N-trace.csv, which have no header.
func looksServeGen(line []byte) bool {
	fields, fault := columns(line, nil)
	if fault != nil || len(fields) != 6 {
		return false
	}
	_, err := strconv.ParseFloat(string(fields[0]), 64)
	pattern := string(fields[3])
	return err == nil && (pattern == "Gamma" || pattern == "Weibull" || pattern == "")
}

// chunkOf is the N of chunk-N and a suffix, gzipped or not.
func chunkOf(file, suffix string) (string, bool) {
	n, ok := strings.CutPrefix(strings.TrimSuffix(file, ".gz"), "chunk-")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(n, suffix)
}

// serveGen merges the clients' requests.
type serveGen struct {
	classTable
	clients []*client
	queue   heap.Heap[upcoming]
}

// upcoming is the next request of a client; ties go to the lower client.
type upcoming struct {
	at     clock.Time
	client int
}

func (u *upcoming) before(v *upcoming) bool {
	return u.at < v.at || u.at == v.at && u.client < v.client
}

// client is one of the clients.
type client struct {
	class   uint16
	windows []rateWindow
	lengths []lengthWindow
	sent    uint64
	window  int     // in which the last request came
	offset  float64 // of it in the window, seconds
	gaps    *workload.Stream
	input   *workload.Stream
	output  *workload.Stream
	number  uint64
}

// rateWindow is a time with one rate.
type rateWindow struct {
	start, length float64 // seconds
	rate          float64 // requests per second
	weibull       bool
	shape         float64
}

// lengthWindow is a time with one law of lengths.
type lengthWindow struct {
	start         float64
	input, output masses
}

// masses is a law given by the probabilities of its lengths, summed up.
type masses struct {
	length []int32
	sum    []float64
}

func (m *masses) sample(s *workload.Stream) int32 {
	u := float64(s.Uint64()>>11) / (1 << 53) * m.sum[len(m.sum)-1]
	i, _ := slices.BinarySearchFunc(m.sum, u, func(sum, u float64) int {
		if sum <= u {
			return -1
		}
		return 1
	})
	return max(1, m.length[min(i, len(m.length)-1)])
}

func (g *serveGen) load(dir fs.FS, f *File) error {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	files := map[string][2]string{}
	var names []string
	for _, e := range entries {
		for i, suffix := range [...]string{"-trace.csv", "-dataset.json"} {
			if n, ok := chunkOf(e.Name(), suffix); ok {
				pair, known := files[n]
				if !known {
					names = append(names, n)
				}
				pair[i] = e.Name()
				files[n] = pair
			}
		}
	}
	slices.SortFunc(names, naturally)
	var whole, lost float64
	for _, n := range names {
		pair := files[n]
		if pair[0] == "" {
			f.warn("%s has no rates beside it and is not used", pair[1])
			continue
		}
		c := &client{number: workload.SegmentID(n)}
		if err := c.readRates(dir, f.name, pair[0]); err != nil {
			return err
		}
		expected := c.expected()
		whole += expected
		if pair[1] != "" {
			if err := c.readLengths(dir, f, pair[1]); err != nil {
				return err
			}
		}
		if len(c.lengths) == 0 {
			lost += expected
			continue
		}
		if c.class, _ = g.of([]byte("chunk-" + n)); expected > 0 {
			g.begin(c, f.options.Seed)
		}
	}
	if lost > 0 {
		f.warn("%.3g %% of the requests are of clients without lengths, and left out", 100*lost/whole)
	}
	if len(g.clients) == 0 {
		return &RowError{Name: f.name, Code: Empty, Problem: "no clients with rates and lengths", Want: "chunk-N-trace.csv and chunk-N-dataset.json"}
	}
	return nil
}

// naturally orders numbers by value.
func naturally(a, b string) int {
	if d := len(a) - len(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

// expected is the number of requests that the rates make.
func (c *client) expected() float64 {
	n := 0.0
	for _, w := range c.windows {
		n += w.rate * w.length
	}
	return n
}

// begin draws the first request. The first gap has begun before the traffic does.
func (g *serveGen) begin(c *client, seed uint64) {
	c.gaps = workload.NewStream(seed, "servegen-gaps")
	c.input = workload.NewStream(seed, "servegen-input")
	c.output = workload.NewStream(seed, "servegen-output")
	for c.windows[c.window].rate == 0 {
		c.window++
	}
	c.gaps.Seek(c.number, 0)
	first := c.gap()
	u := float64(c.gaps.Uint64()>>11) / (1 << 53)
	g.clients = append(g.clients, c)
	g.push(len(g.clients)-1, first*u)
}

// gap draws a gap of mean 1 by the law of the window of the last request.
func (c *client) gap() float64 {
	w := &c.windows[c.window]
	if w.weibull {
		return distuv.Weibull{K: w.shape, Lambda: 1 / math.Gamma(1+1/w.shape), Src: c.gaps}.Rand()
	}
	return distuv.Gamma{Alpha: w.shape, Beta: w.shape, Src: c.gaps}.Rand()
}

// push finds the instant at which the client's expected number of requests has grown by gap, if it does.
func (g *serveGen) push(i int, gap float64) {
	c := g.clients[i]
	for c.window < len(c.windows) {
		w := &c.windows[c.window]
		left := (w.length - c.offset) * w.rate
		if gap < left {
			c.offset += gap / w.rate
			g.queue.Push(upcoming{clock.Time(clock.FromSeconds(w.start + c.offset)), i})
			return
		}
		gap -= left
		c.window, c.offset = c.window+1, 0
	}
}

func (g *serveGen) next(r *Row, at *instant) (*fault, error) {
	if g.queue.Len() == 0 {
		return nil, io.EOF
	}
	u := g.queue.Pop()
	c := g.clients[u.client]
	*at = instantOf(clock.Duration(u.at))
	lengths := c.lengthsAt(u.at.Seconds())
	c.input.Seek(c.number, c.sent)
	c.output.Seek(c.number, c.sent)
	r.InputTokens, r.OutputTokens, r.Class = lengths.input.sample(c.input), lengths.output.sample(c.output), c.class
	c.sent++
	c.gaps.Seek(c.number, c.sent)
	g.push(u.client, c.gap())
	return nil, nil
}

// lengthsAt is the law of the window that holds the instant, or that comes next to it.
func (c *client) lengthsAt(seconds float64) *lengthWindow {
	i := len(c.lengths) - 1
	for i > 0 && c.lengths[i].start > seconds {
		i--
	}
	return &c.lengths[i]
}

func (g *serveGen) accept(*Row)  {}
func (g *serveGen) text() []byte { return nil }
func (g *serveGen) line() int64  { return 0 }

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

// readRates reads chunk-N-trace.csv: start, rate, coefficient of variation, law, its shape and its scale.
// The scale follows from the rate.
func (c *client) readRates(dir fs.FS, name, file string) error {
	in, closer, err := openPart(dir, name, file)
	if err != nil {
		return err
	}
	defer closer.Close()
	l := newLines(in)
	refuse := func(code Code, value []byte, problem, want string) error {
		t := faulty(code, value, problem, want)
		return &RowError{Name: name + "/" + file, Line: l.number, Code: code, Value: t.value, Problem: problem, Want: want}
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
		var fault *fault
		if fields, fault = columns(line, fields); fault != nil || len(fields) != 6 {
			return refuse(Fields, line, fmt.Sprintf("has %d columns", len(fields)), "start, rate, CV, law, shape, scale")
		}
		var v [6]float64
		for _, i := range [...]int{0, 1, 4} {
			if v[i], err = strconv.ParseFloat(string(fields[i]), 64); err != nil || !(v[i] >= 0) || v[i] > 1e9 {
				return refuse(Range, fields[i], "is not a number from 0 to 1e9", "start, rate, CV, law, shape, scale")
			}
		}
		if v[0] > (clock.MaxRun - clock.Day).Seconds() {
			return refuse(Time, fields[0], "is a window that begins too late", "at most 99 days from the start")
		}
		w := rateWindow{start: v[0], length: 600, rate: v[1], shape: v[4], weibull: string(fields[3]) == "Weibull"}
		if w.rate > 0 && !w.weibull && string(fields[3]) != "Gamma" {
			return refuse(Class, fields[3], "is a law that is not known", "Gamma or Weibull")
		}
		if w.rate > 0 && !(w.shape >= 1e-3 && w.shape <= 1e6) {
			return refuse(Range, fields[4], "is not a shape", "0.001 to 1000000")
		}
		if n := len(c.windows); n > 0 {
			if w.start <= c.windows[n-1].start {
				return refuse(Order, line, "begins no later than the window before", "windows in order")
			}
			c.windows[n-1].length = w.start - c.windows[n-1].start
			w.length = min(c.windows[n-1].length, clock.Day.Seconds())
		}
		c.windows = append(c.windows, w)
	}
	if len(c.windows) == 0 {
		return refuse(Empty, nil, "has no windows", "one or more")
	}
	return nil
}

// readLengths reads chunk-N-dataset.json: by start of a window its laws, each the text of a Python
// dictionary of lengths and their probabilities.
func (c *client) readLengths(dir fs.FS, f *File, file string) error {
	in, closer, err := openPart(dir, f.name, file)
	if err != nil {
		return err
	}
	defer closer.Close()
	d := &document{r: bufio.NewReaderSize(in, peeked), number: 1, longest: maxLine}
	err = d.members(func(key string) error {
		start, err := strconv.ParseFloat(key, 64)
		if err != nil || !(start >= 0) {
			return &misshapen{key, "the start of a window in seconds"}
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
			c.lengths = append(c.lengths, w)
		}
		return err
	})
	if err != nil {
		return d.explain(f.name+"/"+file, err)
	}
	slices.SortFunc(c.lengths, func(a, b lengthWindow) int { return cmp.Compare(a.start, b.start) })
	return nil
}

// read takes the text {length: probability, …}; an empty one is no law.
func (m *masses) read(d *document, limit int32) error {
	text, err := d.scalar()
	if err != nil {
		return err
	}
	const want = `a text such as "{100: 0.5, 200: 0.5}"`
	if len(text) < 4 || text[1] != '{' || text[len(text)-2] != '}' {
		return &misshapen{string(text), want}
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
			return &misshapen{string(part), "a length and its probability"}
		}
		if sum += p; p > 0 {
			m.length, m.sum = append(m.length, n), append(m.sum, sum)
		}
	}
	return nil
}
