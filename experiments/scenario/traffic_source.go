package scenario

import (
	"errors"
	"strings"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/layout"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// DefaultPreset is the traffic of a scenario that names none.
const DefaultPreset = "chat-azure23"

// maxDays is the longest run that is simulated.
const maxDays = int(clock.MaxRun / clock.Day)

// Traffic makes the requests of a run.
type Traffic struct {
	Spec      workload.Spec
	Closed    bool
	Recording *Recording            // nil for synthetic traffic
	clients   []workload.ClientSpec // of all requests, or of each class
	Requests  int64                 // expected; 0 when unknown
	Rate      float64               // mean requests per second; 0 when it follows from the service
}

// Dispersion is that of synthetic open traffic without phases, in requests; ok is false for other traffic.
func (t *Traffic) Dispersion() (d workload.Dispersion, ok bool) {
	if t.Recording != nil {
		return d, false
	}
	return t.Spec.Dispersion()
}

// Expected is about the number of requests of a run; 0 if it follows from the service.
func (t *Traffic) Expected() int64 {
	if t.Requests > 0 || t.Recording != nil {
		return t.Requests
	}
	return int64(t.Rate * t.Spec.Duration.Seconds())
}

// trafficResolver resolves the traffic: where requests come from, and what their clients do.
type trafficResolver struct{ *Setup }

// trafficSource puts the traffic together: the preset, the keys that replace its, and the limits.
func (u trafficResolver) trafficSource() error {
	s := u.Scenario
	w := &s.Workload
	if w.Trace != nil {
		return u.traceSource()
	}
	if err := u.headcount(); err != nil {
		return err
	}
	optional.Default(&w.Preset, DefaultPreset)
	preset, err := workload.FindPreset(*w.Preset)
	if err != nil {
		return s.fieldFaults(err)
	}
	w.Preset = &preset.Name
	if len(w.Classes) == 0 {
		u.judged(preset, w.Input, w.Output)
	}
	spec := preset.Spec
	if err := u.bodies(&spec, preset); err != nil {
		return err
	}
	if err := u.images(&spec); err != nil {
		return err
	}
	spec.MaxModelLen = u.LongestSequence()
	spec.MaxTokens = limitInt32(optional.Value(s.Workload.MaxTokens))
	u.arrivals(&spec)
	u.limits(&spec)
	if err := spec.Validate(); err != nil {
		return s.fieldFaults(err)
	}
	if days := float64(spec.Requests) / spec.Rate() / clock.Day.Seconds(); len(spec.Arrivals) == 1 && spec.Rate() > 0 &&
		spec.Duration == 0 && days > float64(maxDays) {
		return s.Fault(s.FirstGiven("workload.arrivals.rate", "run.requests"),
			"%d requests at %g per second take %s days (want at most %d: a higher rate, fewer requests, or a run.duration)",
			spec.Requests, spec.Rate(), layout.Digits(days), maxDays)
	}
	for _, p := range spec.ShortPrompts() {
		u.Warn("short_prompts", "%s: %d tokens are longer than %s %% of the prompts: these have no text of their own, and "+
			"hit the prefix cache whole", p.Key, p.SharedTokens, layout.Digits(100*p.Share))
	}
	u.Traffic.Spec, u.Traffic.Closed = spec, spec.Closed()
	u.Traffic.Requests, u.Traffic.Rate = spec.Requests, spec.Rate()
	return nil
}

// images adds images to the prompts.
func (u trafficResolver) images(spec *workload.Spec) error {
	x := u.Scenario.Workload.Images
	if x == nil {
		return nil
	}
	llm := &u.Deployment.LLM
	if llm.Encoder.Params == 0 {
		return u.Scenario.Fault("workload.images", "%s has no encoder of images (want a multimodal model, such as "+
			"qwen3.5-397b-a17b)", llm.Name)
	}
	if x.Tokens == nil && llm.Encoder.TokensPerImage == 0 {
		return u.Scenario.Fault("workload.images", "%s has no usual number of tokens of an image (want tokens)", llm.Name)
	}
	own := *x
	x, u.Scenario.Workload.Images = &own, &own
	optional.Default(&x.Tokens, llm.Encoder.TokensPerImage)
	if u.Scenario.StepTime.Kind == "kernels" {
		u.Warn("images", "times of the image encoder follow from its FLOPs and launches: no run measured them")
	} else {
		u.Warn("images", "the step times leave out the image encoder: its tokens count as tokens of the prompt only")
	}
	spec.Images = workload.ImageSpec{Share: x.Share, Count: int32(x.Count), Tokens: int32(*x.Tokens)}
	return nil
}

// arrivals replaces the preset's process, or its rate alone where no process is given. A preset without a rate
// then takes Poisson arrivals.
func (u trafficResolver) arrivals(spec *workload.Spec) {
	s := u.Scenario
	base := *spec
	if a := s.Workload.Arrivals; a != nil {
		spec.Arrivals = nil
		for _, stage := range a.Stages {
			if stage.Process != "" {
				spec.Arrivals = append(spec.Arrivals, stage.Spec())
				continue
			}
			at := workload.Phase{Process: "poisson"}
			if len(base.Arrivals) == 1 && base.Arrivals[0].Rate > 0 {
				at = base.Arrivals[0]
			}
			if stage.Rate != nil {
				at.Rate = *stage.Rate
			}
			if stage.MeanOver != "" {
				at.MeanOver = stage.MeanOver
			}
			at.Name, at.Duration = stage.Name, optional.Value(stage.Duration).Clock()
			spec.Arrivals = append(spec.Arrivals, at)
		}
	}
	resolved := &Arrivals{Listed: s.Workload.Arrivals != nil && s.Workload.Arrivals.Listed}
	for _, stage := range spec.Arrivals {
		resolved.Stages = append(resolved.Stages, newStage(stage))
	}
	if len(resolved.Stages) > 0 {
		s.Workload.Arrivals = resolved
	}
}

// limits ends the traffic: by number unless a duration or the last stage does.
func (u trafficResolver) limits(spec *workload.Spec) {
	r := &u.Scenario.Run
	endless := len(spec.Arrivals) == 0 || spec.Arrivals[len(spec.Arrivals)-1].Duration == 0
	if r.Requests == nil && r.Duration == nil && endless {
		r.Requests = optional.Of(DefaultRequests)
	}
	spec.Requests = int64(optional.Value(r.Requests))
	spec.Duration = optional.Value(r.Duration).Clock()
}

// fieldFaults gives the workload package's faults their places.
func (s *Scenario) fieldFaults(err error) yamldoc.Faults {
	var faults yamldoc.Faults
	var add func(error)
	add = func(err error) {
		var f *workload.FieldError
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range joined.Unwrap() {
				add(e)
			}
		} else if errors.As(err, &f) {
			key := strings.NewReplacer("[", ".", "]", "").Replace(f.Key)
			faults = append(faults, s.Fault(key, "%s", f.Problem))
		} else {
			faults = append(faults, s.Fault("workload", "%v", err))
		}
	}
	add(err)
	return faults
}

// Source makes the source of a run, whose clients are patient.
func (u *Setup) Source() (workload.Source, error) {
	if u.Traffic.Recording != nil {
		return u.Traffic.Recording.Open()
	}
	return workload.New(u.Traffic.Spec, u.Scenario.Run.Seed)
}

// WithClients gives the requests of a source the scenario's clients.
func (u *Setup) WithClients(src workload.Source) (workload.Source, error) {
	return workload.NewClients(src, u.Scenario.Run.Seed, u.Traffic.clients...)
}
