package export

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// stageGroup is the passages of iterations, drawn as one slice, through a stage of a pipeline.
type stageGroup struct {
	enter, leave clock.Time // of the first and of the last
	femtos       int64      // in which the stage worked
}

// countPassages adds an iteration's passages. Iterations pass a stage one after another, in the order of the calls.
func (g *iterationGroup) countPassages(passages []event.Passage) {
	for i := range min(len(passages), len(g.stages)) {
		p, s := &passages[i], &g.stages[i]
		if g.n == 0 {
			*s = stageGroup{enter: p.Enter}
		}
		s.leave = p.Leave()
		s.femtos += p.Femtos
	}
}

// stages draws a slice for each stage that the iterations pass. What lies between two slices of a track is a bubble.
// A slice for several iterations has their bubbles in it, and says how long the stage worked.
func (t *Trace) stages(process int, g *iterationGroup) (drawn int64) {
	for i := range g.stages {
		s := &g.stages[i]
		t.out.begin('X', track{process, firstStage + i}, g.name())
		t.out.during(s.enter, s.leave)
		t.out.openArgs()
		t.out.number("iteration", g.number)
		if g.n > 1 {
			t.out.number("iterations", g.n)
			t.out.number("work_ns", s.femtos/(clock.FemtosPerPico*int64(clock.Nanosecond)))
		}
		t.out.number("decode_tokens", g.decodes)
		t.out.number("prefill_tokens", g.prefill+g.recomputed)
		t.out.closeArgs()
		t.out.end()
	}
	return int64(len(g.stages))
}
