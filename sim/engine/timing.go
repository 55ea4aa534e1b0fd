package engine

import (
	"fmt"
	"math/bits"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// gpu is the time of the GPU, and its shares for tokens and requests.
type gpu struct {
	free      clock.Time  // end of the last iteration
	remainder int64       // of that instant, in femtoseconds
	batch     model.Batch // scratch: the iteration composed
	deviates  bool        // the step timer may read the deviation of contexts
	slowdown  int64       // step time in thousandths of the usual one; 0 means the usual one
	// lastComposed is the instant at which the last launched iteration was composed, composing that of the iteration
	// that is being launched.
	lastComposed, composing clock.Time
	batches                 int64 // iterations committed
	decodeSteps             int64 // committed iterations in which a sequence decoded
	// sharers is the number of tokens among which the time of the last iteration was shared out, and carry the
	// femtoseconds left over.
	sharers, carry int64
	given, took    int64 // femtoseconds shared out to requests, and used by ended requests, modulo 2⁶⁴; for checks
}

// pace returns the time of the composed iteration, and by how much each of the next iterations like it takes longer
// than the one before, in femtoseconds. Both hold for n iterations.
func (e *Engine) pace() (first, slope int64, n int) {
	it, g, b := &e.it, &e.gpu, &e.gpu.batch // field by field: whole-struct stores stall the loads that follow
	b.Decodes, b.Context, b.Chunks = it.decodes+it.padRows, it.context+it.padContext, it.chunks
	if it.padTo > 0 {
		b.Chunks = it.padChunks(it.chunks)
	}
	if g.deviates {
		b.ContextDeviation = model.ContextDeviation(it.decodes, it.context, it.squares)
	}
	b.SharedTokens = e.space.cache.Shared() * int64(e.cfg.BlockSize)
	b.Drafts = it.drafts
	b.Emit = it.decodes + it.drafts + len(it.current.firsts) - it.resumed + it.padRows
	first, slope, n = e.cfg.Timer.Span(b)
	if first <= 0 || first >= clock.MaxFemtos || slope < 0 || n < 1 {
		e.fault = fmt.Errorf("sim: the step timer gives %d iterations of %d+k·%d fs for %+v", n, first, slope, *b)
		return
	}
	if e.cfg.Check && e.cfg.Floor != nil && float64(first) < e.cfg.Floor(b)*1e15*(1-1e-9) {
		e.fault = e.timeline.Broken("an iteration of %+v takes %d fs, but physics asks for %.0f", *b, first,
			e.cfg.Floor(b)*1e15)
	}
	if g.slowdown > 0 {
		var err error
		first, slope, n, err = g.slowed(first, slope, n)
		e.timeline.Fail(err)
	}
	s := &e.span
	s.SwapFemtos, s.HostFemtos, s.HostSlope = int64(e.space.moved)*e.cfg.HostFemtosPerBlock, 0, 0
	first += s.SwapFemtos
	if e.pipe != nil && e.fault == nil {
		first, e.fault = e.pipe.pass(e.now, e.cfg.hostTime(it.decodes+len(it.chunks)), first, e.cfg.Timer, g, s)
	}
	if e.cfg.CPUStep > 0 || e.cfg.CPUPerSequence > 0 {
		return e.withHost(first, slope, n)
	}
	return
}

// withHost combines the time of the GPU with that of the host: their sum or, with asynchronous scheduling, the longer
// of both.
func (e *Engine) withHost(first, slope int64, n int) (int64, int64, int) {
	rows := e.it.decodes + e.it.behind + len(e.it.chunks)
	host := int64(e.cfg.hostTime(rows)) * clock.FemtosPerPico
	s := &e.span
	switch {
	case e.pipe != nil: // the host acts like a stage before the first one
		return first, 0, 1
	case e.depth == 1:
		s.HostFemtos = host
		first += host
	case first < host:
		if slope > 0 { // as long as the GPU is faster than the host
			n = int(min(int64(n), (host-first)/slope+1))
		}
		s.HostFemtos, s.HostSlope = host-first, -slope
		first, slope = host, 0
	}
	return first, slope, n
}

// padding is the rows and tokens that an iteration computes without using them, because the engine pads its batch.
type padding struct {
	padRows, padTokens int
	padContext         int64         // KV length of the rows
	padTo              int32         // length that chunks are padded to; 0 for none
	padded             []model.Chunk // scratch
}

// Pad implements [sched.Iteration].
func (p *padding) Pad(rows int, context int64) { p.padRows, p.padContext = rows, context }

// PadChunks implements [sched.Iteration].
func (p *padding) PadChunks(to int32) { p.padTo = to }

// padChunks returns the chunks padded to the length that the policy asked for.
func (p *padding) padChunks(chunks []model.Chunk) []model.Chunk {
	p.padded = append(p.padded[:0], chunks...)
	for k := range p.padded {
		c := &p.padded[k]
		p.padTokens += int(max(0, p.padTo-c.New))
		c.New = max(c.New, p.padTo)
	}
	return p.padded
}

// MaxSlowdown is the greatest factor of step times, in thousandths.
const MaxSlowdown = 1_000_000

// SetSlowdown sets the step time of iterations that are composed from now on, in thousandths of the usual one; 0 is the
// usual one.
func (e *Engine) SetSlowdown(now clock.Time, permille int64) {
	if e.gpu.slowdown = permille; e.ahead.N > 0 {
		e.cut(now)
	}
}

// slowed applies the slowdown to the times that pace returns. If the slope is then no whole number of femtoseconds,
// n is 1, so that the length of spans does not change the result.
func (g *gpu) slowed(first, slope int64, n int) (int64, int64, int, error) {
	hi, lo := bits.Mul64(uint64(first), uint64(g.slowdown))
	slow := uint64(clock.MaxFemtos)
	if hi < 1000 { // the quotient fits
		slow, _ = bits.Div64(hi, lo, 1000)
	}
	if slow >= clock.MaxFemtos {
		return first, slope, 1, fmt.Errorf("sim: an iteration of %d fs, made %d/1000 times as long, is too long",
			first, g.slowdown)
	}
	hi, lo = bits.Mul64(uint64(slope), uint64(g.slowdown))
	if hi > 0 || lo%1000 != 0 {
		return int64(slow), 0, 1, nil
	}
	return int64(slow), int64(lo / 1000), n, nil
}

// shareOut shares out the time of the committed iterations p among a number of tokens, and returns the sum over them of
// the time of one token, in femtoseconds. s is their span, as observers receive it.
func (g *gpu) shareOut(tokens int64, p *clock.Progression, s *event.Span) (each int64) {
	if tokens != g.sharers {
		g.sharers, g.carry = tokens, 0
	}
	s.Progression = *p
	s.Carry = g.carry
	femtos := uint64(s.SharedFemtos(p.N))
	each = int64(femtos / uint64(tokens))
	g.carry = int64(femtos) - each*tokens
	return each
}

// charge charges the sequences of the iterations just committed; each is the time of one token in femtoseconds. The
// members of the cohort are charged together, through its share. The amount is taken back for sequences that joined in
// these iterations, or got no token.
func (g *gpu) charge(each int64, it *batchBuilder, c *cohort) {
	seqs := &it.r.seqs
	if it.stepped {
		c.share += each
	}
	for k, i := range it.chunkSeqs {
		s, chunk := seqs.at(i), &it.chunks[k]
		again, lost := s.known(chunk.Cached, chunk.New)
		t := &s.rec.GPU
		t.Prefill += each * int64(chunk.New-again-lost)
		if again+lost > 0 {
			t.Recomputed += each * int64(again)
			t.Lost += each * int64(lost)
		}
	}
	for _, i := range it.current.firsts {
		s := seqs.at(i)
		s.shared = c.share
		s.rec.GPU.Drafts += each * int64(s.dummies)
		if s.swapped { // it continues to decode after a swap
			s.rec.GPU.Decode += each
		}
	}
	for _, i := range it.missed {
		seqs.at(i).shared += each
	}
	for k := range it.current.verified {
		row := &it.current.verified[k]
		s := seqs.at(row.seq)
		s.rec.GPU.Decode += each * int64(row.fresh)
		s.rec.GPU.Drafts += each * int64(row.useless)
	}
}

// IdleFrom returns the instant from which the GPU is idle if no further iteration is launched.
func (g *gpu) IdleFrom() clock.Time {
	if g.remainder > 0 {
		return g.free + 1
	}
	return g.free
}
