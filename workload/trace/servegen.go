package trace

import (
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/workload"
)

var serveGenFormat = Format{"servegen", "a directory: chunk-N-trace.csv and chunk-N-dataset.json of each client; " +
	"requests are generated from them", "https://github.com/alibaba/ServeGen"}

// OpenServeGen generates the traffic of ServeGen's clients from a directory that describes them: chunk-N-trace.csv
// has a rate and a distribution of gaps per ten minutes, chunk-N-dataset.json the lengths per six hours; either may
// be gzipped. The class of a request is its client.
//
// A client's gaps follow the distribution of the window in which they begin and are scaled as the rate changes, so
// that each window has its rate and bursts continue across windows. Prompt and output are drawn independently
// within a window, because the description does not contain their dependence.
func OpenServeGen(dir fs.FS, name string, o Options) (*File, error) {
	f := &File{name: name, options: o, format: format{Format: serveGenFormat}}
	if err := f.options.defaults(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	g := &serveGen{}
	f.source = g
	if err := g.load(dir, f); err != nil {
		return nil, err
	}
	return f, nil
}

// IsServeGen reports whether a directory contains clients for [OpenServeGen].
func IsServeGen(dir fs.FS) bool {
	entries, err := fs.ReadDir(dir, ".")
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		_, ok := chunkOf(e.Name(), "-trace.csv")
		return ok
	})
}

// isServeGenRow reports whether a line is a row of chunk-N-trace.csv, which has no header.
func isServeGenRow(line []byte) bool {
	fields, fault := columns(line, nil)
	if fault != nil || len(fields) != 6 {
		return false
	}
	_, err := strconv.ParseFloat(string(fields[0]), 64)
	pattern := string(fields[3])
	return err == nil && (pattern == "Gamma" || pattern == "Weibull" || pattern == "")
}

// serveGen draws the clients' requests and merges them.
type serveGen struct {
	classTable
	clients []*client
	queue   pq.Queue[struct{}] // next request of each client: by instant, then by client
}

// client is a client with its position in time.
type client struct {
	clientLaws
	class  uint16
	number uint64 // of its streams
	sent   uint64
	window int     // of the last request
	offset float64 // in the window, seconds
	gaps   *workload.RNG
	input  *workload.RNG
	output *workload.RNG
}

// load reads the clients, and draws the first request of each.
func (g *serveGen) load(dir fs.FS, f *File) error {
	chunks, err := chunksIn(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	var whole, lost float64 // requests expected
	for _, k := range chunks {
		if k.rates == "" {
			f.warn("%s has no rates beside it and is not used", k.lengths)
			continue
		}
		b, err := k.read(dir, f)
		if err != nil {
			return err
		}
		expected := b.expected()
		whole += expected
		if len(b.lengths) == 0 {
			lost += expected
			continue
		}
		class, _ := g.of([]byte("chunk-" + k.number))
		if expected > 0 {
			g.begin(&client{clientLaws: b, class: class, number: workload.SegmentID(k.number)}, f.options.Seed)
		}
	}
	if lost > 0 {
		f.warn("clients without lengths, %.3g %% of the requests, are left out", 100*lost/whole)
	}
	if len(g.clients) == 0 {
		return &rowError{Name: f.name, Code: Empty, Problem: "no clients with rates and lengths",
			Want: "chunk-N-trace.csv and chunk-N-dataset.json"}
	}
	return nil
}

// begin draws the first request. The traffic starts within a gap.
func (g *serveGen) begin(c *client, seed uint64) {
	c.gaps = workload.NewRNG(seed, "servegen-gaps")
	c.input = workload.NewRNG(seed, "servegen-input")
	c.output = workload.NewRNG(seed, "servegen-output")
	for c.windows[c.window].rate == 0 {
		c.window++
	}
	c.gaps.Seek(c.number, 0)
	first := c.gap()
	u := float64(c.gaps.Uint64()>>11) / (1 << 53)
	g.clients = append(g.clients, c)
	g.push(len(g.clients)-1, first*u)
}

// gap draws a gap of mean 1 from the distribution of the window of the last request.
func (c *client) gap() float64 {
	w := &c.windows[c.window]
	if w.weibull {
		return distuv.Weibull{K: w.shape, Lambda: 1 / math.Gamma(1+1/w.shape), Src: c.gaps}.Rand()
	}
	return distuv.Gamma{Alpha: w.shape, Beta: w.shape, Src: c.gaps}.Rand()
}

// push schedules the request at which the client's expected number of requests has grown by gap, if there is one.
func (g *serveGen) push(i int, gap float64) {
	c := g.clients[i]
	for c.window < len(c.windows) {
		w := &c.windows[c.window]
		left := (w.length - c.offset) * w.rate
		if gap < left {
			c.offset += gap / w.rate
			g.queue.Push(pq.Item[struct{}]{Key: int64(clock.FromSeconds(w.start + c.offset)), Tie: int64(i)})
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
	next := g.queue.Pop()
	arrival, i := clock.Time(next.Key), int(next.Tie)
	c := g.clients[i]
	*at = instantOf(clock.Duration(arrival))
	lengths := c.lengthsAt(arrival.Seconds())
	c.input.Seek(c.number, c.sent)
	c.output.Seek(c.number, c.sent)
	r.InputTokens, r.OutputTokens, r.Class = lengths.input.sample(c.input), lengths.output.sample(c.output), c.class
	c.sent++
	c.gaps.Seek(c.number, c.sent)
	g.push(i, c.gap())
	return nil, nil
}

func (g *serveGen) accept(*Row)  {}
func (g *serveGen) text() []byte { return nil }
func (g *serveGen) line() int64  { return 0 }
