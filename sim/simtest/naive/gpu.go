package naive

import (
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
)

// gpu executes iterations one after the other, or the stages of a pipeline do. It knows how long they take and which
// requests their time is charged to.
type gpu struct {
	cfg          *engine.Config
	slow         []Slowdown
	pipeline     *pipeline  // nil if there is one stage
	launched     int        // iterations launched so far
	lastComposed clock.Time // when the last one launched was composed
	free         clock.Time // end of the last one launched
	remainder    int64      // femtoseconds past free
	sharers      int64      // tokens of the last one
	carry        int64      // femtoseconds that were left over when its time was shared out
}

// schedule says when an iteration that is composed at an instant begins and ends.
func (g *gpu) schedule(it *iteration, at clock.Time, span *event.Span, batch *model.Batch) {
	span.Start, span.N = max(at, g.free), 1
	if span.Start == g.free {
		span.Remainder = g.remainder
	}
	if g.launched > 0 {
		span.Wait = span.Start.Sub(g.free)
	}
	batch.Decodes += it.padRows
	batch.Context += it.padContext
	batch.Emit += it.padRows
	gpu, _, _ := g.cfg.Timer.Span(batch)
	gpu = slowed(g.slow, gpu, at)
	if g.pipeline != nil {
		g.sendThroughStages(it, at, span, batch, gpu)
		return
	}
	span.SwapFemtos = int64(span.SwappedBlocks) * g.cfg.HostFemtosPerBlock
	gpu += span.SwapFemtos
	host := int64(g.cfg.CPUStep+g.cfg.CPUPerSequence*clock.Duration(len(it.shares))) * clock.FemtosPerPico
	span.First = gpu + host
	if g.cfg.AsyncScheduling {
		span.First = max(gpu, host)
	}
	span.HostFemtos = span.First - gpu
	span.BlockFemtos = clock.Mul64(uint64(span.UsedBlocks), uint64(span.First))
	span.EmptyFemtos = clock.Mul64(uint64(span.EmptyBlocks), uint64(span.First))
	it.end = span.End(1)
	g.free, g.remainder = it.end, span.EndRemainder(1)
}

// charge distributes the time of an iteration over the tokens that it computes.
func (g *gpu) charge(it *iteration, span *event.Span) {
	tokens := int64(span.PaddedRows + span.PaddedTokens)
	for _, sh := range it.shares {
		tokens += int64(sh.given)
	}
	if tokens != g.sharers {
		g.sharers, g.carry = tokens, 0
	}
	span.Carry = g.carry
	time := g.carry + span.First - span.SwapFemtos - span.HostFemtos
	if g.pipeline != nil {
		time = g.carry
		for _, p := range span.Passages {
			time += p.Femtos
		}
	}
	each := time / tokens
	g.carry = time % tokens
	for _, sh := range it.shares {
		gpu := &sh.seq.rec.GPU
		if sh.chunk {
			gpu.Recomputed += each * int64(sh.again)
			gpu.Lost += each * int64(sh.lost)
			gpu.Prefill += each * int64(sh.given-sh.dummies-sh.again-sh.lost)
			gpu.Drafts += each * int64(sh.dummies)
			continue
		}
		gpu.Decode += each * int64(sh.produces)
		gpu.Drafts += each * int64(sh.given-sh.produces)
	}
}
