package naive

import (
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
)

// pipeline is the stages that iterations pass in order, and the host before them.
type pipeline struct {
	host Moment   // when it finished the last iteration
	left []Moment // when the last iteration left each stage
}

// newPipeline is nil where there is one stage.
func newPipeline(cfg *engine.Config) *pipeline {
	if cfg.Stages <= 1 {
		return nil
	}
	return &pipeline{left: make([]Moment, cfg.Stages)}
}

// Moment is an instant and a remainder of femtoseconds, below a thousand.
type Moment struct {
	At     clock.Time
	Femtos int64
}

// Plus is the moment that many femtoseconds later.
func (m Moment) Plus(femtos int64) Moment {
	femtos += m.Femtos
	return Moment{m.At + clock.Time(femtos/clock.FemtosPerPico), femtos % clock.FemtosPerPico}
}

// Later is the later of two moments.
func Later(a, b Moment) Moment {
	if a.At > b.At || a.At == b.At && a.Femtos > b.Femtos {
		return a
	}
	return b
}

// sendThroughStages sends an iteration that is composed at an instant, and takes gpu femtoseconds in all, through the
// stages.
func (g *gpu) sendThroughStages(it *iteration, at clock.Time, span *event.Span, batch *model.Batch, gpu int64) {
	p := g.pipeline
	stages := make([]int64, len(p.left))
	hop := model.DivideStages(g.cfg.Timer, batch, gpu, stages)
	host := int64(g.cfg.CPUStep+g.cfg.CPUPerSequence*clock.Duration(len(it.shares))) * clock.FemtosPerPico
	p.host = Later(p.host, Moment{at, 0}).Plus(host)
	m := p.host
	for i, femtos := range stages {
		enter := Later(m, p.left[i])
		p.left[i] = enter.Plus(femtos)
		span.Passages = append(span.Passages, event.Passage{Enter: enter.At, Remainder: enter.Femtos, Femtos: femtos})
		m = p.left[i].Plus(hop)
	}
	end := p.left[len(stages)-1]
	span.First = int64(end.At-span.Start)*clock.FemtosPerPico + end.Femtos - span.Remainder
	span.BlockFemtos = clock.Mul64(uint64(span.UsedBlocks), uint64(span.First))
	span.EmptyFemtos = clock.Mul64(uint64(span.EmptyBlocks), uint64(span.First))
	it.end, g.free, g.remainder = end.At, end.At, end.Femtos
}
