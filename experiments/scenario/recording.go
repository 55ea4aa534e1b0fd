package scenario

import (
	"errors"
	"sync/atomic"

	"clifftop/experiments/internal/optional"
	"clifftop/sim/clock"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// Recording is a trace and how it is replayed.
type Recording struct {
	Opener   trace.Opener
	Load     trace.Load
	classes  []string                     // their names
	sessions bool                         // requests have sessions
	adapters bool                         // requests may use LoRA adapters
	Timeless bool                         // the trace has no arrivals: a rate makes them
	first    atomic.Pointer[trace.Source] // made when the scenario was resolved, for the first run
}

// Open makes the source of a run.
func (r *Recording) Open() (workload.Source, error) {
	if src := r.first.Swap(nil); src != nil {
		return src, nil
	}
	return trace.Replay(r.Opener, r.Load)
}

// probe is the trace at another load. Without a rate it is one request after another.
func (r *Recording) probe(l ProbeLoad) (workload.Source, error) {
	load := r.Load
	load.Scale, load.Rate = 0, l.Rate
	if r.Timeless && l.Rate == 0 {
		load.Rate = 1 // any will do
	}
	load.Limit, load.Duration, load.AllowLargeScale = l.Requests, clock.FromSeconds(l.Seconds), true
	src, err := trace.Replay(r.Opener, load)
	if err != nil || l.Users == 0 {
		return src, err
	}
	return &oneByOne{src: src}, nil
}

// oneByOne sends each request when the last has ended, whatever its recorded arrival.
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
func (o *oneByOne) Done(r *workload.Request, end workload.End) bool {
	o.at, o.busy = end.At, false
	return o.src.Done(r, end)
}

// Err is that of the trace.
func (o *oneByOne) Err() error { return o.src.Err() }

// resolveTrace opens the trace and sums it up, so that its faults show before the run.
func resolveTrace(s *Scenario, longest int32) (traffic Traffic, own *Trace, found findings) {
	t := *s.Workload.Trace
	if s.Workload.Images != nil {
		found.fault(s.Fault("workload.images", "a trace has no images (want synthetic traffic, or no such key)"))
		return traffic, &t, found
	}
	file := &TraceFile{Path: s.path("workload.trace.file", t.File), Options: trace.Options{
		Format: t.Format, Mode: trace.Mode(t.Mode), ZeroOutput: trace.ZeroOutput(optional.Value(t.ZeroOutput)),
		MaxBadFraction: optional.Value(t.MaxBadFraction), BlockTokens: limitInt32(optional.Value(t.BlockTokens)),
		Seed: s.Run.Seed,
	}}
	r := &Recording{Opener: file.Open, Load: trace.Load{
		From: optional.Value(t.From).Clock(), To: optional.Value(t.To).Clock(), WarmPrefix: t.WarmPrefix,
		Classes: t.Classes,
		Scale:   optional.Value(t.Scale), Rate: optional.Value(t.Rate), Speedup: optional.Value(t.Speedup),
		Loop: limitInt32(optional.Value(t.Loop)), Limit: int64(optional.Value(t.Limit)),
		Duration: optional.Value(s.Run.Duration).Clock(), Seed: s.Run.Seed,
		MaxOutput:  limitInt32(optional.Value(s.Workload.MaxTokens)),
		Dequantise: [...]trace.Switch{trace.Auto, trace.Off, trace.On}[t.Dequantise],
	}}
	if n := int64(optional.Value(s.Run.Requests)); n > 0 && (r.Load.Limit == 0 || n < r.Load.Limit) {
		r.Load.Limit = n
	}
	if t.Cap != nil {
		r.Load.MaxTotal, r.Load.Cap = longest, trace.CapPolicy(*t.Cap)
	}
	src, err := trace.Replay(r.Opener, r.Load)
	if err != nil {
		var f *workload.FieldError
		if errors.As(err, &f) {
			found.fault(s.fieldFaults(err)...)
		} else {
			found.fault(s.Fault("workload.trace.file", "%v", err))
		}
		return traffic, &t, found
	}
	for _, text := range file.Last().Warnings() {
		found.warn("trace", "%s", text)
	}
	t.Format = file.Last().Format()
	t.Statistics = traceStatistics(file, src)
	r.Timeless, r.classes = file.Last().Timeless(), src.Classes()
	r.adapters, r.sessions = src.Stats().Adapters > 0, src.Stats().Sessions > 0
	r.first.Store(src)
	return Traffic{Recording: r, Rate: src.Rate(), Requests: src.Expected()}, &t, found
}

// traceStatistics sums up the rows that were read.
func traceStatistics(file *TraceFile, src *trace.Source) *TraceStatistics {
	stats, rows := src.Stats(), src.File().Counts()
	return &TraceStatistics{
		Rows: stats.Rows, Requests: stats.Requests, SpanS: stats.Span().Seconds(), RequestsPerS: stats.Rate(),
		MeanInputTokens: stats.MeanInput, MeanOutputTokens: stats.MeanOutput, Sessions: stats.Sessions,
		Applied: append([]string{}, src.Applied()...),
		SHA256:  file.SHA256(), Dropped: rows.Dropped, Fixed: rows.Fixed, Noted: rows.Noted,
	}
}
