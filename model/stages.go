package model

import "math/bits"

// stageTimer is a [StepTimer] that knows the pipeline stages' shares of a step. [DivideStages] uses it.
type stageTimer interface {
	StepTimer
	// Stages divides a step of b that takes total femtoseconds, as returned by Span, among the pipeline stages, one
	// per element of to. It returns the time between stages: stages and hops sum to total.
	Stages(b *Batch, total int64, to []int64) (hop int64)
}

var (
	_ stageTimer = (*Kernels)(nil)
	_ stageTimer = (*Roofline)(nil)
)

// DivideStages calls [StageTimer.Stages] if t implements it, and otherwise divides the time evenly.
func DivideStages(t StepTimer, b *Batch, total int64, to []int64) (hop int64) {
	if s, ok := t.(stageTimer); ok {
		return s.Stages(b, total, to)
	}
	var given int64
	for i := range to {
		upTo := part(total, i+1, len(to))
		to[i], given = upTo-given, upTo
	}
	return 0
}

// part returns total·n/of, rounded down, for 0 ≤ n ≤ of.
func part(total int64, n, of int) int64 {
	hi, lo := bits.Mul64(uint64(total), uint64(n))
	q, _ := bits.Div64(hi, lo, uint64(of))
	return int64(q)
}

// StageLayers returns the number of layers of each pipeline stage.
func (d *Deployment) StageLayers() []int {
	stages := make([]int, d.PipelineParallel)
	for i := range stages {
		stages[i] = d.layersOf(i, len(stages))
	}
	return stages
}

// layersOf returns the number of layers of a stage, as in vLLM: the remainder of an even division goes one layer
// each to the stages before the last, from the back. The last stage has the output head; the first stage gets an
// additional layer last.
func (d *Deployment) layersOf(stage, stages int) int {
	n := d.LLM.Layers / stages
	if stage < stages-1 && stages-2-stage < d.LLM.Layers%stages {
		n++
	}
	return n
}

// divideLayers assigns head to the last stage and hop to each transfer, and divides the rest of total by the layers
// of the stages. If total is too short, head and hops are shortened.
func (d *Deployment) divideLayers(total, head, hop int64, to []int64) int64 {
	head = min(head, total)
	if hops := int64(len(to) - 1); hops > 0 {
		hop = min(hop, (total-head)/hops)
		total -= hops * hop
	}
	var given int64
	layers := 0
	for i := range to {
		layers += d.layersOf(i, len(to))
		upTo := part(total-head, layers, d.LLM.Layers)
		to[i], given = upTo-given, upTo
	}
	to[len(to)-1] += head
	return hop
}

// Stages implements stageTimer. The last stage has the output head and the sampler. Everything else, including
// the overheads of the step, is divided by layers, assumed to be equal; the embedding takes no time.
func (k *Kernels) Stages(b *Batch, total int64, to []int64) (hop int64) {
	tokens := b.decodeTokens()
	for _, c := range b.Chunks {
		tokens += int64(c.New)
	}
	if padded := k.GraphTokens(int(min(tokens, 1<<30))); padded > 0 {
		tokens = int64(padded)
	}
	var bytes uint128
	bytes.add(tokens, k.hop.token)
	return k.ops.d.divideLayers(total, k.emit.at(int64(b.Emit)), min(k.hop.fixed+bytes.femtos(), maxFemtos), to)
}

// prepareHops sets the coefficients of the transfers between stages.
func (k *Kernels) prepareHops() {
	p := k.ops
	if hops := float64(p.d.PipelineParallel - 1); hops > 0 {
		c := p.comm.stageHops(2*p.h, p.d)
		k.hop = hopTime{roundFemtos(c.latency / hops * femtosPerSecond), newFraction(c.memory / hops)}
	}
}

// Stages implements stageTimer. The last stage has what the output layer adds to the maximum of arithmetic and
// memory time; everything else is divided by layers. The time per layer includes hops.
func (r *Roofline) Stages(b *Batch, total int64, to []int64) (hop int64) {
	var head int64
	if b.Emit > 0 {
		c, m, _ := r.sides(b)
		if head = r.head; c >= m {
			head = int64(b.Emit) * r.emit
		}
	}
	return r.work.d.divideLayers(total, head, 0, to)
}

// hopTime is the time of a transfer between pipeline stages.
type hopTime struct {
	fixed int64    // per step
	token fraction // per token
}
