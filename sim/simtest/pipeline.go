package simtest

import (
	"slices"
	"strconv"

	"pgregory.net/rapid"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
)

// pipeline is the stages that iterations pass one after the other, and the host before them.
type pipeline struct {
	host moment   // when it has done the last iteration
	left []moment // when the last iteration left each stage
}

// newPipeline is nil where there is one stage.
func newPipeline(cfg *engine.Config) *pipeline {
	if cfg.Stages <= 1 {
		return nil
	}
	return &pipeline{left: make([]moment, cfg.Stages)}
}

// moment is an instant and a remainder of femtoseconds, below a thousand.
type moment struct {
	at     clock.Time
	femtos int64
}

// plus is the moment so many femtoseconds later.
func (m moment) plus(femtos int64) moment {
	femtos += m.femtos
	return moment{m.at + clock.Time(femtos/clock.FemtosPerPico), femtos % clock.FemtosPerPico}
}

// later is the later of two moments.
func later(a, b moment) moment {
	if a.at > b.at || a.at == b.at && a.femtos > b.femtos {
		return a
	}
	return b
}

// pipe sends an iteration that is composed at an instant, and takes gpu femtoseconds in all, through the stages.
func (n *naive) pipe(it *iteration, at clock.Time, span *event.Span, batch *model.Batch, gpu int64) {
	p := n.pipeline
	stages := make([]int64, len(p.left))
	hop := model.DivideStages(n.cfg.Timer, batch, gpu, stages)
	host := int64(n.cfg.CPUStep+n.cfg.CPUPerSequence*clock.Duration(len(it.shares))) * clock.FemtosPerPico
	p.host = later(p.host, moment{at, 0}).plus(host)
	m := p.host
	for i, femtos := range stages {
		enter := later(m, p.left[i])
		p.left[i] = enter.plus(femtos)
		span.Passages = append(span.Passages, event.Passage{Enter: enter.at, Remainder: enter.femtos, Femtos: femtos})
		m = p.left[i].plus(hop)
	}
	end := p.left[len(stages)-1]
	span.First = int64(end.at-span.Start)*clock.FemtosPerPico + end.femtos - span.Remainder
	span.BlockFemtos = clock.Mul64(uint64(span.UsedBlocks), uint64(span.First))
	span.EmptyFemtos = clock.Mul64(uint64(span.EmptyBlocks), uint64(span.First))
	it.end, n.gpuFree, n.gpuRemainder = end.at, end.at, end.femtos
}

// Staged is a timer that divides a step by weights, one for each stage of a pipeline.
type Staged struct {
	model.StepTimer
	Weights []int64
	Hop     int64 // femtoseconds from a stage to the next, as far as the step is long enough
}

// Stages implements [model.StageTimer].
func (t Staged) Stages(b *model.Batch, total int64, to []int64) (hop int64) {
	hops := int64(len(to) - 1)
	hop = min(t.Hop, total/hops)
	total -= hops * hop
	sum := int64(0)
	for _, w := range t.Weights {
		sum += w
	}
	rest := total
	for i := range to {
		to[i] = total / sum * t.Weights[i]
		rest -= to[i]
	}
	to[len(to)-1] += rest
	return hop
}

// staged reads how a pipeline of so many stages divides the steps of a timer.
func staged(args *arguments, stages int, timer model.StepTimer, hop int64) model.StepTimer {
	weights := args.values("weights")
	if weights == nil && hop == 0 {
		return timer
	}
	s := Staged{StepTimer: timer, Hop: hop}
	for _, text := range weights {
		w, err := strconv.ParseInt(text, 10, 64)
		if err != nil || w < 1 {
			args.fault("weights: %q is not one", text)
		}
		s.Weights = append(s.Weights, w)
	}
	if weights == nil {
		s.Weights = slices.Repeat([]int64{1}, stages)
	}
	if len(s.Weights) != stages {
		args.fault("weights: %d of %d stages", len(s.Weights), stages)
	}
	return s
}

// DrawPipeline makes a random case with two pipeline stages or more, some of them longer than others. What does not go with
// them is left out.
func (p Policy) DrawPipeline(t *rapid.T) Case {
	c := p.Draw(t)
	d := drawer{t}
	cfg := &c.config
	cfg.Stages = d.between("stages", 2, 6)
	cfg.HostBlocks, cfg.Radix, cfg.Contiguous, cfg.Connector, cfg.Speculative = 0, false, false, nil, engine.Speculative{}
	if _, fair := cfg.Order.(sched.Fair); fair {
		cfg.Order = sched.ByPriority{}
	}
	if d.once("narrow", 2) && !c.wholePrompts() { // so that decoding sequences are often left out, behind prefills
		cfg.MaxNumBatchedTokens = cfg.MaxNumSeqs + d.of("spare budget", 3)
	}
	if d.once("even", 2) {
		return c
	}
	timer := Staged{StepTimer: cfg.Timer}
	for range cfg.Stages {
		timer.Weights = append(timer.Weights, int64(d.one("weight", 1, 2, 5)))
	}
	b := model.Batch{Decodes: 1, Context: 1, Emit: 1}
	step, _, _ := cfg.Timer.Span(&b)
	timer.Hop = int64(d.one("hop", 0, 1, 20)) * step / 50
	cfg.Timer = timer
	return c
}

// wholePrompts reports whether the policy never divides a prompt.
func (c *Case) wholePrompts() bool {
	v, ok := c.policy.New(c.knobs).(*sched.VLLM)
	return ok && v.DisableChunkedPrefill
}

// pipelined changes a policy that may go with a pipeline so that it does.
func pipelined(s sched.Scheduler) {
	if v, ok := s.(*sched.VLLM); ok {
		if v.Swap = false; v.Admission == sched.FullLength {
			v.Admission = sched.FullPrompt
		}
	}
}

// together is the numbers of iterations that were in flight together, by their passages.
func (t *Tape) together() map[int]bool {
	seen := make(map[int]bool)
	for i, it := range t.Iterations {
		if it.Passages == "" {
			return nil
		}
		n := 1
		enter := parsePassages(it.Passages)[0]
		for k := i - 1; k >= 0 && int64(t.Iterations[k].End) > enter[0]; k-- {
			n++
		}
		seen[n] = true
	}
	return seen
}
