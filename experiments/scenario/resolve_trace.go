package scenario

import (
	"errors"

	"clifftop/experiments/internal/optional"
	"clifftop/workload"
	"clifftop/workload/trace"
)

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
