package scenario

import (
	"clifftop/experiments/internal/optional"
	"clifftop/model"
	"clifftop/report/layout"
	"clifftop/sim/clock"
	"clifftop/workload"
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
		found.fault(s.fieldFaults(err)...)
		return t, w, run, found
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
		found.fault(s.fieldFaults(err)...)
		return t, w, run, found
	}
	if days := float64(spec.Requests) / spec.Rate() / clock.Day.Seconds(); len(spec.Arrivals) == 1 && spec.Rate() > 0 &&
		spec.Duration == 0 && days > float64(maxDays) {
		found.fault(s.Fault(s.FirstGiven("workload.arrivals.rate", "run.requests"),
			"%d requests at %g per second take %s days (want at most %d: a higher rate, fewer requests, or a "+
				"run.duration)",
			spec.Requests, spec.Rate(), layout.Digits(days), maxDays))
		return t, w, run, found
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
		found.fault(s.Fault("workload.images", "%s has no encoder of images (want a multimodal model, such as "+
			"qwen3.5-397b-a17b)", llm.Name))
		return spec, &x, found
	case x.Tokens == nil && llm.Encoder.TokensPerImage == 0:
		found.fault(s.Fault("workload.images", "%s has no usual number of tokens of an image (want tokens)", llm.Name))
		return spec, &x, found
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

// resolvedArrivals are the arrivals that give the phases.
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
