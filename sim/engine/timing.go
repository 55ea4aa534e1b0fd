package engine

import (
	"fmt"
	"math/bits"

	"clifftop/model"
	"clifftop/sim/clock"
)

// pace says how long the composed iteration takes, in femtoseconds, and by how much each of those like it
// would take longer than the one before, for n of them.
func (r *Engine) pace() (first, slope int64, n int) {
	it, b := &r.it, &r.batch // field by field: whole-struct stores stall the loads that follow
	b.Decodes, b.Context, b.Chunks = it.decodes+it.padRows, it.context+it.padContext, it.chunks
	if it.padTo > 0 {
		b.Chunks = it.padChunks()
	}
	b.SharedTokens = r.Shared() * int64(r.cfg.BlockSize)
	b.Drafts = it.drafts
	b.Emit = it.decodes + it.drafts + len(it.current.firsts) - it.resumed + it.padRows
	first, slope, n = r.cfg.Timer.Span(b)
	if first <= 0 || first >= clock.MaxFemtos || slope < 0 || n < 1 {
		r.fault = fmt.Errorf("sim: the step timer gives %d iterations of %d+k·%d fs for %+v", n, first, slope, *b)
		return
	}
	if r.cfg.Check && r.cfg.Floor != nil && float64(first) < r.cfg.Floor(b)*1e15*(1-1e-9) {
		r.fault = r.Broken("an iteration of %+v takes %d fs, but physics asks for %.0f", *b, first, r.cfg.Floor(b)*1e15)
	}
	if r.gpu.slowdown > 0 {
		first, slope, n = r.slowed(first, slope, n)
	}
	s := &r.span
	s.SwapFemtos, s.HostFemtos, s.HostSlope = int64(r.space.moved)*r.cfg.HostFemtosPerBlock, 0, 0
	first += s.SwapFemtos
	if r.cfg.CPUStep > 0 || r.cfg.CPUPerSequence > 0 {
		return r.withHost(first, slope, n)
	}
	return
}

// withHost adds the host's time to that of the GPU: one after the other or, with asynchronous scheduling,
// the longer of both.
func (r *Engine) withHost(first, slope int64, n int) (int64, int64, int) {
	rows := r.it.decodes + len(r.it.chunks)
	host := int64(r.cfg.CPUStep+clock.Duration(rows)*r.cfg.CPUPerSequence) * clock.FemtosPerPico
	s := &r.span
	switch {
	case r.pipe != nil: // a stage before the first one
		return first, 0, 1
	case r.depth == 1:
		s.HostFemtos = host
		first += host
	case first < host:
		if slope > 0 { // until the GPU's time has grown longer
			n = int(min(int64(n), (host-first)/slope+1))
		}
		s.HostFemtos, s.HostSlope = host-first, -slope
		first, slope = host, 0
	}
	return first, slope, n
}

// padChunks is the chunks at the length that they are padded to.
func (it *batchBuilder) padChunks() []model.Chunk {
	it.padded = append(it.padded[:0], it.chunks...)
	for k := range it.padded {
		c := &it.padded[k]
		it.padTokens += int(max(0, it.padTo-c.New))
		c.New = max(c.New, it.padTo)
	}
	return it.padded
}

// Pad implements [sched.View].
func (it *batchBuilder) Pad(rows int, context int64) { it.padRows, it.padContext = rows, context }

// PadChunks implements [sched.View].
func (it *batchBuilder) PadChunks(to int32) { it.padTo = to }

// MaxSlowdown is the greatest factor of step times, in thousandths.
const MaxSlowdown = 1_000_000

// SetSlowdown makes iterations that are composed from now on take so many thousandths of their usual time; 0 is as
// usual.
func (r *Engine) SetSlowdown(now clock.Time, permille int64) {
	if r.gpu.slowdown = permille; r.ahead.N > 0 {
		r.cut(now)
	}
}

// slowed is the times of a replica that is slow. Where the factor leaves a part of a femtosecond of the slope, only one
// iteration is promised at a time, so that the lengths of promises change nothing.
func (r *Engine) slowed(first, slope int64, n int) (int64, int64, int) {
	hi, lo := bits.Mul64(uint64(first), uint64(r.gpu.slowdown))
	slow := uint64(clock.MaxFemtos)
	if hi < 1000 { // the quotient fits
		slow, _ = bits.Div64(hi, lo, 1000)
	}
	if slow >= clock.MaxFemtos {
		r.fault = fmt.Errorf("sim: an iteration of %d fs, made %d/1000 times as long, is too long", first,
			r.gpu.slowdown)
		return first, slope, 1
	}
	hi, lo = bits.Mul64(uint64(slope), uint64(r.gpu.slowdown))
	if hi > 0 || lo%1000 != 0 {
		return int64(slow), 0, 1
	}
	return int64(slow), int64(lo / 1000), n
}
