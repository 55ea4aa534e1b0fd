package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"clifftop/sim/clock"
)

// Spec describes synthetic traffic: arrivals, lengths and shared text. It is the workload section of a scenario
// with the limits of the run.
type Spec struct {
	// Arrivals is one process, or a list of phases that follow each other.
	Arrivals []Phase `yaml:"arrivals" json:"arrivals"`
	// Input and Output are the length distributions of prompts and outputs. Output may be given-input.
	Input  LengthsSpec `yaml:"input" json:"input"`
	Output LengthsSpec `yaml:"output" json:"output"`
	// Prefix makes prompts repeat and share prefixes.
	Prefix PrefixSpec `yaml:"prefix,omitempty" json:"prefix,omitzero"`
	// Sessions makes requests turns of conversations; nil means single requests.
	Sessions *SessionSpec `yaml:"sessions,omitempty" json:"sessions,omitempty"`
	// Adapters says which LoRA adapters the requests use.
	Adapters AdapterSpec `yaml:"adapters,omitempty" json:"adapters,omitzero"`
	// Images says which requests have images, in all classes.
	Images ImageSpec `yaml:"-" json:"-"`
	// Classes mixes several classes of traffic and replaces Input, Output, Prefix, Sessions and Adapters. The class of
	// a request is its index here. Each arrival of an open loop, and each user of a closed one, belongs to one class.
	Classes []ClassSpec `yaml:"classes,omitempty" json:"classes,omitempty"`
	// ClassWeights is the unit that class weights divide in an open loop: requests (also when empty), or sessions,
	// where a conversation counts as much as a single request.
	ClassWeights string `yaml:"class_weights,omitempty" json:"class_weights,omitempty"`
	// MaxModelLen is the model's longest prompt and output together, in tokens, which limits conversations; 0 means
	// no limit.
	MaxModelLen int32 `yaml:"-" json:"-"`
	// MaxTokens cuts longer outputs, as the limit that clients send with their requests; 0 means no limit.
	MaxTokens int32 `yaml:"-" json:"-"`
	// Requests is the number of requests after which the traffic ends; 0 means no limit.
	Requests int64 `yaml:"-" json:"-"`
	// Duration is the time before which requests arrive, also in a closed loop; 0 means no limit.
	Duration clock.Duration `yaml:"-" json:"-"`
	// LeadIn is the time before the first hour of [MeanOverHour], and HourLength the length of an hour; 0 is 3,600 s.
	LeadIn     clock.Duration `yaml:"-" json:"-"`
	HourLength clock.Duration `yaml:"-" json:"-"`
	// Needs lists the keys above that the preset does not fill, and why.
	Needs []Need `yaml:"-" json:"-"`
}

// Need is a key that a preset cannot fill; the user must set it.
type Need struct {
	Key    string `yaml:"key" json:"key"`       // arrivals, input or output
	Reason string `yaml:"reason" json:"reason"` // the unknown part, and the keys to set
}

// PhaseWindow is the time that a phase covers: arrivals in Start ≤ t < End.
type PhaseWindow struct {
	Name       string
	Start, End clock.Time // End is [clock.Never] for a phase without a duration
}

// Validate returns all faults of the description joined into one error, each a [*FieldError].
func (s Spec) Validate() error {
	var f fieldFaults
	s.compile(&f)
	return f.Err()
}

// traffic is a compiled Spec.
type traffic struct {
	processes []process // empty in a closed loop
	windows   []PhaseWindow
	parts     []part
}

func (s Spec) compile(f *fieldFaults) traffic {
	t := traffic{windows: s.Windows()}
	var later fieldFaults // faults of the arrivals come first
	t.parts = s.compileParts(&later)
	perStart := 1.0
	if later.Len() == 0 {
		perStart = s.shareOut(t.parts)
	}
	t.processes = s.compileArrivals(perStart, f)
	f.Add(later.Err())
	if s.Requests < 0 {
		f.add("run.requests", "%d is not allowed (want 1 or more, or null for no limit)", s.Requests)
	}
	if s.Duration < 0 || s.Duration > clock.MaxRun {
		f.add("run.duration", "%v is not allowed (want more than 0, at most %v)", s.Duration, clock.MaxRun)
	}
	return t
}

// compileArrivals builds the processes. perStart is the mean number of requests per arrival.
func (s Spec) compileArrivals(perStart float64, f *fieldFaults) []process {
	const key = "workload.arrivals"
	if needs(s.Needs, "workload", "arrivals", len(s.Arrivals) == 0, f) {
		return nil
	}
	if len(s.Arrivals) == 0 {
		f.add(key, "is missing (want a process, for example {process: poisson, rate: 8})")
		return nil
	}
	if len(s.Arrivals) == 1 && s.Arrivals[0].Duration == 0 && s.Arrivals[0].Name == "" {
		return s.compileStage(key, s.Arrivals[0], perStart, f)
	}
	var all []process
	for i, stage := range s.Arrivals {
		k := fmt.Sprintf("%s.%d", key, i)
		if stage.Duration < 0 || stage.Duration > clock.MaxRun || stage.Duration == 0 && i < len(s.Arrivals)-1 {
			f.add(k+".duration", "%v is not allowed (want more than 0; only the last phase may have no end)",
				stage.Duration)
		}
		if len(s.Arrivals) > 1 && (stage.Process == "closed" || stage.Process == "all-at-once") {
			f.add(k+".process", "%s cannot be one of several phases (want a process with a rate)", stage.Process)
			continue
		}
		all = append(all, s.compileStage(k, stage, perStart, f)...)
	}
	return all
}

func (s Spec) compileStage(key string, stage Phase, perStart float64, f *fieldFaults) []process {
	if !stage.check(key, f) {
		return nil
	}
	if stage.Process == "closed" {
		stage.checkClosed(key, f)
		return nil
	}
	if stage.Process == "all-at-once" && s.Requests == 0 {
		f.add("run.requests", "is missing (want the number of requests that arrive at once)")
	}
	rate := stage.Rate
	p := stage.open(key, f)
	if perStart != 1 {
		var checked fieldFaults
		stage.Rate /= perStart
		p = stage.open(key, &checked)
	}
	if c, ok := p.(Cox); ok {
		switch {
		case stage.MeanOver == MeanOverProcess:
		case stage.MeanOver == MeanOverHour:
			c.From, c.Over, c.Each = s.LeadIn, cmp.Or(s.HourLength, 3600*clock.Second), true
		case stage.Duration > 0:
			c.Over = stage.Duration
		case s.Duration > 0:
			c.Over = s.Duration
		case s.Requests > 0 && rate > 0:
			c.Over = clock.FromSeconds(float64(s.Requests) / rate)
		}
		p = c
	}
	return []process{p}
}

// Closed reports whether the traffic is a closed loop of users.
func (s Spec) Closed() bool { return len(s.Arrivals) == 1 && s.Arrivals[0].Process == "closed" }

// Think returns the mean time from an output to the user's next request in a closed loop.
func (s Spec) Think() clock.Duration {
	between := s.Arrivals[0].ThinkTime.Mean
	var f fieldFaults
	t := s.compile(&f)
	if f.Len() > 0 || !s.needsMix() {
		return between
	}
	sum, weights := 0.0, 0.0
	for i := range t.parts {
		p := &t.parts[i]
		mean := float64(between)
		if p.conversations != nil {
			last := 1 / p.turns() // fraction of the pauses that are between conversations
			mean = last*mean + (1-last)*float64(p.conversations.pause.Mean)
		}
		sum += p.weight * mean
		weights += p.weight
	}
	return clock.Duration(sum / weights)
}

// Extends reports whether the first requests are the same however many follow. They are not if the rate of a cox
// process has an exact mean over the run.
func (s Spec) Extends() bool {
	return !slices.ContainsFunc(s.Arrivals, func(p Phase) bool {
		return p.Process == "cox" && p.Duration == 0 && (p.MeanOver == "" || p.MeanOver == MeanOverRun)
	})
}

// WaitsForOutputs reports whether requests wait for outputs, so that the traffic depends on the system.
func (s Spec) WaitsForOutputs() bool {
	waits := func(t *SessionSpec) bool { return t != nil && t.TurnGap == (Delay{}) && t.Turns.Value != 1 }
	return s.Closed() || waits(s.Sessions) || slices.ContainsFunc(s.Classes,
		func(c ClassSpec) bool { return waits(c.Sessions) })
}

// Windows returns the names and bounds of the phases in order. Phases without a name are called "phase 1", "phase
// 2", ….
func (s Spec) Windows() []PhaseWindow {
	var list []PhaseWindow
	start := clock.Time(0)
	for i, stage := range s.Arrivals {
		w := PhaseWindow{Name: stage.Name, Start: start, End: clock.Never}
		if w.Name == "" {
			w.Name = fmt.Sprintf("phase %d", i+1)
		}
		if stage.Duration > 0 {
			w.End = start.Add(stage.Duration)
		}
		start = w.End
		list = append(list, w)
	}
	return list
}

// Rate returns the nominal mean rate in requests per second: over phases the mean weighted by their durations, or
// the rate of the last phase if that has no end. It is 0 for a closed loop, whose rate depends on the service, and
// +Inf if all requests arrive at once.
func (s Spec) Rate() float64 {
	var sum, seconds float64
	for i, stage := range s.Arrivals {
		rate := stage.Rate
		if stage.Process == "all-at-once" {
			rate = math.Inf(1)
		}
		if i == len(s.Arrivals)-1 && stage.Duration == 0 {
			return rate
		}
		sum += rate * stage.Duration.Seconds()
		seconds += stage.Duration.Seconds()
	}
	if seconds == 0 {
		return 0
	}
	return sum / seconds
}

// WithRate returns the same traffic at another mean rate, in requests per second. The process keeps its shape;
// phases keep their proportions and durations.
func (s Spec) WithRate(rate float64) (Spec, error) {
	var f fieldFaults
	f.rate("workload.arrivals", rate)
	old := s.Rate()
	if f.Len() == 0 && (old == 0 || math.IsInf(old, 0)) {
		f.add("workload.arrivals", "this process has no rate to set (want a process with a rate)")
	}
	if err := f.Err(); err != nil {
		return s, err
	}
	stages := make([]Phase, len(s.Arrivals))
	for i, stage := range s.Arrivals {
		stages[i] = stage
		if len(stages) == 1 {
			stages[i].Rate = rate // exact, without a rounding error
		} else {
			stages[i].Rate *= rate / old
		}
	}
	s.Arrivals = stages
	return s, nil
}

// MeanTokens returns the mean lengths of the sampled prompts and outputs in tokens.
func (s Spec) MeanTokens() (input, output float64, err error) {
	var f fieldFaults
	t := s.compile(&f)
	if err := f.Err(); err != nil {
		return 0, 0, err
	}
	sum := 0.0
	for i := range t.parts {
		p := &t.parts[i]
		in, out := p.meanTokens()
		requests := p.share * p.turns()
		input += requests * in
		output += requests * out
		sum += requests
	}
	return input / sum, output / sum, nil
}

func (p *part) meanTokens() (input, output float64) {
	switch {
	case p.conversations != nil:
		return p.survey.input, p.survey.output
	case p.given != nil:
		return Mean(p.input), Mean(p.given.Marginal(p.input))
	}
	return Mean(p.input), Mean(p.output)
}
