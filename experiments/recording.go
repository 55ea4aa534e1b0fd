package experiments

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"clifftop/sim/clock"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// recording is a trace and how it is replayed.
type recording struct {
	opener trace.Opener
	load   trace.Load
	first  atomic.Pointer[trace.Source] // made when the scenario was resolved, for the first run
}

// open makes the source of a run.
func (r *recording) open() (workload.Source, error) {
	if src := r.first.Swap(nil); src != nil {
		return src, nil
	}
	return trace.Replay(r.opener, r.load)
}

// probe is the trace at another load. Without a rate it is one request after another.
func (r *recording) probe(l probeLoad) (workload.Source, error) {
	load := r.load
	load.Scale, load.Rate = 0, l.rate
	load.Limit, load.Duration, load.AllowLargeScale = l.requests, clock.FromSeconds(l.seconds), true
	src, err := trace.Replay(r.opener, load)
	if err != nil || l.users == 0 {
		return src, err
	}
	return &oneByOne{src: src}, nil
}

// oneByOne sends each request when the last has been answered, whatever its recorded arrival.
type oneByOne struct {
	src  *trace.Source
	at   clock.Time
	busy bool
}

// Peek returns the arrival of the next request.
func (o *oneByOne) Peek() (clock.Time, bool) {
	_, ok := o.src.Peek()
	return o.at, ok && !o.busy
}

// Next returns the next request.
func (o *oneByOne) Next() workload.Request {
	r := o.src.Next()
	r.Arrival, o.busy = o.at, true
	return r
}

// Done lets the next request come.
func (o *oneByOne) Done(_ *workload.Request, at clock.Time) { o.at, o.busy = at, false }

// Err is that of the trace.
func (o *oneByOne) Err() error { return o.src.Err() }

// traceSource opens the trace and sums it up, so that its faults show before the run.
func (u *Setup) traceSource() error {
	s := u.Scenario
	t := *s.Workload.Trace
	s.Workload.Trace = &t
	path := s.path("workload.trace.file", t.File)
	var last atomic.Pointer[trace.File]
	r := &recording{load: trace.Load{
		From: value(t.From).Clock(), To: value(t.To).Clock(),
		Scale: value(t.Scale), Rate: value(t.Rate), Speedup: value(t.Speedup), Limit: int64(value(t.Limit)),
		Duration: value(s.Run.Duration).Clock(), Patience: u.traffic.patience, Seed: s.Run.Seed,
		Dequantise: [...]trace.Switch{trace.Auto, trace.Off, trace.On}[t.Dequantise],
	}}
	if n := int64(value(s.Run.Requests)); n > 0 && (r.load.Limit == 0 || n < r.load.Limit) {
		r.load.Limit = n
	}
	if t.Cap != nil {
		r.load.MaxTotal, r.load.Cap = u.Config.MaxModelLen, trace.CapPolicy(*t.Cap)
	}
	options := trace.Options{Format: t.Format, Mode: trace.Mode(t.Mode), ZeroOutput: trace.ZeroOutput(value(t.ZeroOutput))}
	r.opener = func() (trace.Reader, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %s", path, plain(err))
		}
		if info, err := f.Stat(); err == nil && info.IsDir() {
			f.Close()
			return nil, fmt.Errorf("%s: this is a directory (want a file)", path)
		}
		opened, err := trace.Open(f, path, options)
		if err != nil {
			f.Close()
			return nil, err
		}
		last.Store(opened)
		return opened, nil
	}
	src, err := trace.Replay(r.opener, r.load)
	if err != nil {
		var f *workload.FieldError
		if errors.As(err, &f) {
			return s.fieldFaults(err)
		}
		return s.fault("workload.trace.file", "%v", err)
	}
	file := last.Load()
	for _, text := range file.Warnings() {
		u.warn("trace", "%s", text)
	}
	stats := src.Stats()
	t.Format = file.Format()
	t.Statistics = &TraceStatistics{
		Rows: stats.Rows, SpanS: stats.Span().Seconds(), RequestsPerS: stats.Rate(),
		MeanInputTokens: stats.MeanInput, MeanOutputTokens: stats.MeanOutput, Sessions: stats.Sessions,
		Applied: append([]string{}, src.Applied()...),
	}
	r.first.Store(src)
	u.traffic.trace = r
	u.traffic.rate = src.Rate()
	u.traffic.requests = r.expected(stats.Rows, src.Rate()/max(stats.Rate(), 1e-12))
	return nil
}

// expected is about the number of requests of the replay.
func (r *recording) expected(rows int64, factor float64) int64 {
	if r.load.Speedup > 0 {
		factor /= r.load.Speedup
	}
	n := int64(float64(rows) * factor)
	if r.load.Limit > 0 {
		n = min(n, r.load.Limit)
	}
	return n
}
