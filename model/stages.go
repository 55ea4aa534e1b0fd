package model

import "math/bits"

// StageTimer is a [StepTimer] that knows which part of a step falls to which stage of a pipeline. [DivideStages] asks it.
type StageTimer interface {
	StepTimer
	// Stages divides a step of b that takes total femtoseconds, as Span has it, among the pipeline stages, one in each place
	// of to. It returns the time from a stage to the next: stages and hops add up to the total.
	Stages(b *Batch, total int64, to []int64) (hop int64)
}

var (
	_ StageTimer = (*Kernels)(nil)
	_ StageTimer = (*Roofline)(nil)
)

// DivideStages is [StageTimer.Stages] of any timer: one that is none divides the time evenly.
func DivideStages(t StepTimer, b *Batch, total int64, to []int64) (hop int64) {
	if s, ok := t.(StageTimer); ok {
		return s.Stages(b, total, to)
	}
	var given int64
	for i := range to {
		upTo := part(total, i+1, len(to))
		to[i], given = upTo-given, upTo
	}
	return 0
}

// part is total·n/of, rounded down, for 0 ≤ n ≤ of.
func part(total int64, n, of int) int64 {
	hi, lo := bits.Mul64(uint64(total), uint64(n))
	q, _ := bits.Div64(hi, lo, uint64(of))
	return int64(q)
}

// StageLayers is the number of layers of each pipeline stage.
func (d *Deployment) StageLayers() []int {
	stages := make([]int, d.PipelineParallel)
	for i := range stages {
		stages[i] = d.layersOf(i, len(stages))
	}
	return stages
}

// layersOf is the number of layers of one of so many stages. Those that are left when all have as many go one each to the
// stages before the last, from the back: the last has the output head, and the first is the last to get one. It is
// how vLLM divides them.
func (d *Deployment) layersOf(stage, stages int) int {
	n := d.LLM.Layers / stages
	if stage < stages-1 && stages-2-stage < d.LLM.Layers%stages {
		n++
	}
	return n
}

// divideLayers divides what is left of a total when the last stage has the head, and hops take their time, by the layers of
// the stages. Of a time that is too short for the head and the hops these get what there is.
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

// Stages implements [StageTimer]. The output head and the sampler are the last stage's. All else, overheads of the step included,
// is divided by layers, as if these were alike; looking up the embeddings takes no time.
func (k *Kernels) Stages(b *Batch, total int64, to []int64) (hop int64) {
	tokens := b.decodeTokens()
	for _, c := range b.Chunks {
		tokens += int64(c.New)
	}
	if padded := k.GraphTokens(int(min(tokens, 1<<30))); padded > 0 {
		tokens = int64(padded)
	}
	var bytes uint128
	bytes.add(tokens, k.hopToken)
	return k.ops.d.divideLayers(total, k.emit.at(int64(b.Emit)), min(k.hop+bytes.femtos(), maxFemtos), to)
}

// prepareHops sets the coefficients of the way from a stage to the next.
func (k *Kernels) prepareHops() {
	p := k.ops
	if hops := float64(p.d.PipelineParallel - 1); hops > 0 {
		c := p.comm.stageHops(2*p.h, p.d)
		k.hop, k.hopToken = roundFemtos(c.latency/hops*femtosPerSecond), newFraction(c.memory/hops)
	}
}

// Stages implements [StageTimer]. What the output layer adds to the longer of arithmetic and memory traffic is the last stage's;
// all else is divided by layers. Hops are part of the time per layer.
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
