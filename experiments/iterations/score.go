package iterations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/sim/clock"
)

// Options say how iterations are scored.
type Options struct {
	// Scenario is the path of a scenario for all files; empty means the list of runs of each file.
	Scenario string
	// Settings change the scenario, or the configuration from the list of runs.
	Settings []scenario.Setting
	// Bare leaves out the time of the instrumentation: see [Instrumentation].
	Bare bool
	// Kernels changes the options of step times; nil changes nothing.
	Kernels func(*model.KernelOptions)
	// Progress is called with the number of files that are done; it may be nil.
	Progress func(done, total int)
}

// Instrumentation is the time that the clock of an engine's scheduler adds to each iteration: the forward-pass metrics
// of Dynamo count from one schedule to the next, host work included. It was fitted to iterations of Qwen3-32B on B300
// at TP 1 and 2, and is no part of serving. It applies to files with the scheduler's column queued_prefill_requests.
const Instrumentation = 530 * clock.Microsecond

// outlier is the smallest factor between an iteration and the median of its shape that excludes the iteration.
const outlier = 1.5

// point is a scored iteration.
type point struct {
	it                  *model.Iteration
	measured, simulated float64 // seconds
	ratio               float64 // simulated over measured
	error               float64 // of its shape, or of the chain that it is part of
	impossible          bool    // shorter than the GPU's datasheet allows
	chained             bool    // compared together with its neighbours
	dropped             bool    // far from its shape
}

// Score computes the times of all iterations of the files.
func Score(ctx context.Context, files []*File, o Options) (*Report, error) {
	r := &Report{Schema: Schema, Clifftop: experiments.Version}
	var all []*point
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s, err := f.score(o)
		if err != nil {
			return nil, err
		}
		r.Files = append(r.Files, s)
		all = append(all, s.kept()...)
		if o.Progress != nil {
			o.Progress(i+1, len(files))
		}
	}
	r.Kinds = byKind(all)
	r.Groups = groups(all)
	return r, nil
}

// setup returns the scenario of a file, ready to compute step times.
func (f *File) setup(o Options) (*scenario.Setup, error) {
	settings := slices.Clone(o.Settings)
	if o.Scenario == "" {
		settings = append(slices.Clone(f.Settings), settings...)
	}
	if o.Scenario == "" && len(settings) == 0 {
		return nil, fmt.Errorf("%s: the configuration is not known (want a row in %s beside the file, a scenario, or "+
			"flags such as --model and --gpu)", f.Name, ListName)
	}
	s, err := scenario.Load(o.Scenario, settings...)
	if err != nil {
		return nil, err
	}
	if s.Deployment.DataParallelSize > 1 {
		return s.ResolveRank()
	}
	return s.Resolve()
}

// score computes the times of a file's iterations. A configuration from the list of runs that cannot be simulated
// refuses the file; one from the command line is an error.
func (f *File) score(o Options) (*ScoredFile, error) {
	s := &ScoredFile{Name: f.Name, Iterations: len(f.Iterations), Notes: append([]string{}, f.Notes...)}
	u, err := f.setup(o)
	if err != nil {
		if o.Scenario != "" || len(f.Settings) == 0 {
			return nil, err
		}
		s.Refused = oneLine(err)
		return s, nil
	}
	d := u.Pools[0].Deployment
	s.Model, s.GPU, s.TP, s.DP, s.EP = d.LLM.Name, d.GPU.Name, d.TensorParallel, d.DataParallel, d.ExpertParallel
	options := u.Pools[0].KernelOptions()
	options.MaxNumBatchedTokens = max(options.MaxNumBatchedTokens, f.mostTokens())
	if f.fuse != nil && o.Scenario == "" {
		options.FuseAllReduce = *f.fuse
	}
	if o.Kernels != nil {
		o.Kernels(&options)
	}
	timer, err := model.NewKernels(d, options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	if !o.Bare && slices.ContainsFunc(f.Iterations, func(it model.Iteration) bool { return it.Queued >= 0 }) {
		s.InstrumentationMs = Instrumentation.Seconds() * 1e3
	}
	s.time(f.Iterations, timer, d.Work())
	s.judge(model.DecodeIteration)
	s.chain()
	s.judge(model.PrefillIteration, model.MixedIteration)
	s.Kinds = byKind(s.kept())
	return s, nil
}

func (s *ScoredFile) time(all []model.Iteration, timer model.StepTimer, limits *model.Work) {
	for i := range all {
		it := &all[i]
		femtos, _, _ := timer.Span(&it.Batch)
		p := &point{it: it, measured: it.Seconds, simulated: float64(femtos)/1e15 + s.InstrumentationMs/1e3}
		p.ratio = p.simulated / p.measured
		p.impossible = it.Seconds < limits.Floor(&it.Batch)
		s.points = append(s.points, p)
	}
}

// chain compares chains of iterations by the sums of their times, where the clock counts parts of an iteration in
// the ones before: an engine that launches kernels for long is late to note the end of an iteration. Such a chain is a
// row of iterations with prefill. It shows by an iteration that is shorter than the datasheet allows, or by a decode
// before the chain that takes much longer than its like; that decode is then part of the sum.
func (s *ScoredFile) chain() {
	for i := 0; i < len(s.points); i++ {
		from := i
		for i < len(s.points) && s.points[i].it.Kind() != model.DecodeIteration {
			i++
		}
		if from == i {
			continue
		}
		part := s.points[from:i]
		impossible := slices.ContainsFunc(part, func(p *point) bool { return p.impossible })
		if from > 0 && (s.points[from-1].dropped && s.points[from-1].ratio < 1 || impossible && len(part) == 1) {
			part = s.points[from-1 : i]
		} else if !impossible {
			continue
		}
		measured, simulated := 0.0, 0.0
		for _, p := range part {
			measured, simulated = measured+p.measured, simulated+p.simulated
		}
		for _, p := range part {
			p.chained, p.error = true, simulated/measured-1
			p.dropped = p.it.Kind() == model.DecodeIteration
			s.Joined++
		}
	}
}

// mostTokens returns the tokens of the longest iteration.
func (f *File) mostTokens() (n int) {
	for i := range f.Iterations {
		n = max(n, f.Iterations[i].Batch.Decodes+f.Iterations[i].PrefillTokens())
	}
	return n
}

// oneLine returns the first problem of an error.
func oneLine(err error) string {
	var faults yamldoc.Faults
	if errors.As(err, &faults) && len(faults) > 0 {
		return faults[0].Problem
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// shape is the common description of equal iterations. Contexts are compared on logarithmic scales, because they grow
// with every iteration.
type shape struct {
	decodes, prefill, cached, requests int
	context, deviation                 int
}

// Steps per doubling of contexts and their deviation.
const (
	contextSteps   = 16
	deviationSteps = 4
	leastDeviation = 64 // tokens that count as none
)

func shapeOf(it *model.Iteration) shape {
	s := shape{decodes: it.Batch.Decodes, prefill: it.PrefillTokens(), requests: len(it.Batch.Chunks)}
	for _, c := range it.Batch.Chunks {
		s.cached += int(c.Cached)
	}
	if s.decodes > 0 {
		mean := float64(it.Batch.Context) / float64(s.decodes)
		s.context = int(math.Round(contextSteps * math.Log2(mean)))
		s.deviation = int(math.Round(deviationSteps * math.Log2(float64(it.Batch.ContextDeviation)+leastDeviation)))
	}
	return s
}

func (s shape) compare(t shape) int {
	return cmp.Or(cmp.Compare(s.decodes, t.decodes), cmp.Compare(s.prefill, t.prefill), cmp.Compare(s.cached, t.cached),
		cmp.Compare(s.requests, t.requests), cmp.Compare(s.context, t.context), cmp.Compare(s.deviation, t.deviation))
}

// judge gives all iterations of a shape the same error, that of the median, and drops those that are far from it:
// the first ones of a shape may compile kernels.
func (s *ScoredFile) judge(kinds ...model.IterationKind) {
	var list []*point
	for _, p := range s.points {
		if !p.chained && slices.Contains(kinds, p.it.Kind()) {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, func(a, b *point) int { return shapeOf(a.it).compare(shapeOf(b.it)) })
	for len(list) > 0 {
		n := 1
		for n < len(list) && shapeOf(list[n].it) == shapeOf(list[0].it) {
			n++
		}
		s.Shapes++
		s.Dropped += judgeShape(list[:n])
		list = list[n:]
	}
}

// judgeShape sets the errors of one shape, and returns how many iterations it drops. Of two iterations that differ
// much it drops the longer one.
func judgeShape(equal []*point) (dropped int) {
	var ratios []float64
	for _, p := range equal {
		ratios = append(ratios, p.ratio)
	}
	slices.Sort(ratios)
	middle := ratios[len(ratios)/2]
	var kept []float64
	for _, p := range equal {
		if far := p.ratio / middle; far > outlier || far < 1/outlier {
			p.dropped = true
			dropped++
			continue
		}
		kept = append(kept, p.ratio)
	}
	slices.Sort(kept)
	for _, p := range equal {
		p.error = (kept[(len(kept)-1)/2]+kept[len(kept)/2])/2 - 1
	}
	return dropped
}
