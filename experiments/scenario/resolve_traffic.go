package scenario

import (
	"errors"

	"clifftop/experiments/internal/optional"
	"clifftop/model"
	"clifftop/report/layout"
	"clifftop/sim/clock"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// resolveTraffic puts the traffic together, and fills in what is left open: the preset, the keys that replace its, and
// the limits.
func resolveTraffic(s *Scenario, llm *model.LLM, longest int32) (t Traffic, w Workload, run RunSpec, found findings) {
	w, run = s.Workload, s.Run
	if w.Trace != nil {
		t, w.Trace, found = resolveTrace(s, longest)
		return t, w, run, found
	}
	w, found = resolveHeadcount(s)
	if found.faults != nil {
		return t, w, run, found
	}
	optional.Default(&w.Preset, DefaultPreset)
	preset, err := workload.FindPreset(*w.Preset)
	if err != nil {
		return t, w, run, refuse(s.fieldFaults(err)...)
	}
	w.Preset = &preset.Name
	spec, more := resolveBodies(s, &w, preset)
	if !found.add(more) {
		return t, w, run, found
	}
	if spec.Images, w.Images, more = resolveImages(s, llm); !found.add(more) {
		return t, w, run, found
	}
	spec.MaxModelLen, spec.MaxTokens = longest, limitInt32(optional.Value(w.MaxTokens))
	spec.Arrivals = w.Arrivals.phases(spec.Arrivals)
	w.Arrivals = resolvedArrivals(w.Arrivals, spec.Arrivals)
	run.Requests = run.requests(spec.Arrivals)
	spec.Requests, spec.Duration = int64(optional.Value(run.Requests)), optional.Value(run.Duration).Clock()
	if err := spec.Validate(); err != nil {
		return t, w, run, refuse(s.fieldFaults(err)...)
	}
	if days := float64(spec.Requests) / spec.Rate() / clock.Day.Seconds(); len(spec.Arrivals) == 1 && spec.Rate() > 0 &&
		spec.Duration == 0 && days > float64(maxDays) {
		return t, w, run, s.refuse(s.FirstGiven("workload.arrivals.rate", "run.requests"),
			"%d requests at %g per second take %s days (want at most %d: a higher rate, fewer requests, or a "+
				"run.duration)",
			spec.Requests, spec.Rate(), layout.Digits(days), maxDays)
	}
	for _, p := range spec.ShortPrompts() {
		found.warn("short_prompts", "%s: %d tokens are longer than %s %% of the prompts: these have no text of "+
			"their own, and hit the prefix cache whole", p.Key, p.SharedTokens, layout.Digits(100*p.Share))
	}
	t.Spec, t.Closed, t.Requests, t.Rate = spec, spec.Closed(), spec.Requests, spec.Rate()
	return t, w, run, found
}

// resolveImages returns the images in prompts, and their keys with the number of tokens filled in.
func resolveImages(s *Scenario, llm *model.LLM) (spec workload.ImageSpec, own *Images, found findings) {
	if s.Workload.Images == nil {
		return spec, nil, found
	}
	x := *s.Workload.Images
	switch {
	case llm.Encoder.Params == 0:
		return spec, &x, s.refuse("workload.images",
			"%s has no encoder of images (want a multimodal model, such as qwen3.5-397b-a17b)", llm.Name)
	case x.Tokens == nil && llm.Encoder.TokensPerImage == 0:
		return spec, &x, s.refuse("workload.images",
			"%s has no usual number of tokens of an image (want tokens)", llm.Name)
	}
	optional.Default(&x.Tokens, llm.Encoder.TokensPerImage)
	if s.StepTime.Kind == "kernels" {
		found.warn("images", "times of the image encoder follow from its FLOPs and launches: no run measured them")
	} else {
		found.warn("images", "the step times leave out the image encoder: its tokens count as tokens of the prompt "+
			"only")
	}
	spec = workload.ImageSpec{Share: x.Share, Count: int32(x.Count), Tokens: int32(*x.Tokens)}
	return spec, &x, found
}

// phases replaces the preset's process, or its rate alone where no process is given. A preset without a rate then takes
// Poisson arrivals.
func (a *Arrivals) phases(base []workload.Phase) (all []workload.Phase) {
	if a == nil {
		return base
	}
	for _, stage := range a.Stages {
		if stage.Process != "" {
			all = append(all, stage.Spec())
			continue
		}
		at := workload.Phase{Process: "poisson"}
		if len(base) == 1 && base[0].Rate > 0 {
			at = base[0]
		}
		optional.Set(&at.Rate, stage.Rate)
		if stage.MeanOver != "" {
			at.MeanOver = stage.MeanOver
		}
		at.Name, at.Duration = stage.Name, optional.Value(stage.Duration).Clock()
		all = append(all, at)
	}
	return all
}

func resolvedArrivals(given *Arrivals, all []workload.Phase) *Arrivals {
	if len(all) == 0 {
		return given
	}
	resolved := &Arrivals{Listed: given != nil && given.Listed}
	for _, stage := range all {
		resolved.Stages = append(resolved.Stages, newStage(stage))
	}
	return resolved
}

// requests ends the traffic by number unless a duration or the last phase does.
func (r *RunSpec) requests(all []workload.Phase) *int {
	endless := len(all) == 0 || all[len(all)-1].Duration == 0
	if r.Requests == nil && r.Duration == nil && endless {
		return optional.Of(DefaultRequests)
	}
	return r.Requests
}

// maxDays is the longest run that is simulated.
const maxDays = int(clock.MaxRun / clock.Day)

// resolveTrace opens the trace and sums it up, so that its faults show before the run.
func resolveTrace(s *Scenario, longest int32) (traffic Traffic, own *Trace, found findings) {
	t := *s.Workload.Trace
	if s.Workload.Images != nil {
		return traffic, &t, s.refuse("workload.images",
			"a trace has no images (want synthetic traffic, or no such key)")
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
