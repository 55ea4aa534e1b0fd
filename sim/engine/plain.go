package engine

import (
	"fmt"
	"math"

	"clifftop/internal/pq"
	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/kv"
	"clifftop/sim/queue"
	"clifftop/sim/sched"
)

// The plain cycle is continuous batching as straight code: the decoding sequences get a token, prefills go on, requests
// are admitted from the head of the queue, and the iteration repeats while nothing can change. It makes every
// composition that needs no optional part. The general cycle makes the others, on the same state, so that each
// composition is free to be the one or the other. Read the plain cycle first: plain.go composes, plain_commit.go
// launches and commits, and plain_results.go handles what an iteration has computed.

// plainCycle says whether the plain cycle may be used, and by which rule.
type plainCycle struct {
	on     bool // the configuration has no optional part; a composition may need one all the same
	rule   sched.PlainRule
	budget int32 // tokens of an iteration
	step   int   // blocks that the next step of the cohort takes, as whyGeneral found
	last   bool  // the composition in the batch builder is plain
	// blocks is the KV cache while it only counts blocks; else nil.
	blocks *kv.Counted
}

// newPlainCycle returns the plain cycle of a configuration. It is off if the configuration has an optional part, or if
// an observer asks for iterations or chunks one by one.
func newPlainCycle(cfg *Config, singly bool) (p plainCycle) {
	policy, ok := cfg.Scheduler.(sched.Plain)
	if !ok || singly || cfg.DisablePlain {
		return p
	}
	p.rule, p.on = policy.PlainRule(cfg.Scheduler)
	p.on = p.on && cfg.Order == nil && cfg.Stages <= 1 && cfg.Speculative.Tokens == 0 && cfg.Connector == nil &&
		!cfg.Contiguous && !cfg.Radix && cfg.Hybrid == nil && cfg.mostCharged() == 0 &&
		cfg.MaxTokens == 0 && !cfg.UnpredictedEnds && cfg.StreamInterval <= 1 && cfg.RecvInterval <= 1
	p.budget = int32(min(cfg.MaxNumBatchedTokens, math.MaxInt32))
	p.last = p.on // the empty batch builder of a new engine is a plain one
	return p
}

// whyGeneral returns why the next composition is not plain. It is plain if the decoding sequences are in step, the running
// prefills and the head of the queue have never been preempted, and all running sequences get their tokens without a
// preemption.
func (e *Engine) whyGeneral() Reason {
	q, c := &e.queue, &e.cohort
	switch {
	case !e.plain.on:
		return HasPart
	case e.plain.blocks == nil && !e.space.forgettable():
		return NamesBlocks
	case e.lagging > 0, len(e.groups) > 1, len(e.groups) == 1 && e.groups[0].number != e.gpu.batches:
		return OutOfStep
	case !q.AllNew():
		return WasPreempted
	}
	e.groups = e.groups[:0]
	need := 0
	if c.size > 0 {
		need = c.takes.at(c.steps)
	}
	e.plain.step = need
	budget := e.plain.budget - int32(c.size)
	for k, i := range e.running.prefills {
		s := e.seqs.at(i)
		if s.issued > 0 || s.reached > 0 {
			return WasPreempted
		}
		if k == 0 && c.size > 0 && e.decoderBehind(i) {
			return PrefillBehind
		}
		n := e.plain.chunk(s.target-s.computed, budget)
		budget -= n
		need += max(0, e.cfg.blocksFor(s.computed+n)-s.blockCount)
	}
	if e.plain.blocks == nil {
		if need > e.space.free() {
			return LacksBlocks
		}
		e.forgetNames()
	} else if need > e.plain.blocks.Free() {
		return LacksBlocks
	}
	return IsPlain
}

// chunk returns how many of the missing tokens a request gets.
func (p *plainCycle) chunk(missing, budget int32) int32 {
	if most := p.rule.LongPrefill; most > 0 {
		missing = min(missing, most)
	}
	return min(missing, budget)
}

// composePlain composes an iteration and launches it. It reports whether the iteration has any tokens.
func (e *Engine) composePlain() bool {
	it := &e.it
	it.beginPlain(e)
	for k := 0; k < len(e.running.prefills) && it.budget > 0; {
		i := e.running.prefills[k]
		s := e.seqs.at(i)
		if !e.prefill(i, s, e.plain.chunk(s.target-s.computed, it.budget)) {
			k++ // its prompt is not complete
		}
	}
	it.blocked = e.admitFromQueue()
	for _, i := range it.current.firsts {
		if s := e.seqs.at(i); s.issued >= s.output {
			s.phase = finishing
		} else {
			e.beginDecoding(i, s)
		}
	}
	e.inbox.recent = noBatch
	switch {
	case len(it.chunks) > 0:
		e.inbox.recent = otherBatch
	case it.decodes > 0:
		e.inbox.recent = decodeBatch
	default:
		return false
	}
	first, slope, n := e.pacePlain()
	if e.fault != nil {
		return false
	}
	e.launchPlain(first, slope, e.repeat(n))
	return true
}

// beginPlain begins a composition, in which each decoding sequence gets a token. One counter of steps stands for all of
// them.
func (it *batchBuilder) beginPlain(e *Engine) {
	number := e.gpu.batches + 1
	if !e.plain.last {
		it.begin(number)
		e.plain.last = true
	}
	f := e.inFlight.next()
	f.number = number
	it.current = f
	it.serials, it.last = e.running.serials, number-1
	it.asked, it.looked = false, false
	it.joined, it.prefill = 0, 0
	it.chunks, it.chunkSeqs = it.chunks[:0], it.chunkSeqs[:0]
	c := &e.cohort
	n := c.size
	it.stepped, f.stepped = n > 0, n > 0
	if n > 0 {
		e.plain.blocks.Claim(e.plain.step)
		c.steps++
		c.squares += uint64(2*c.context + int64(n))
		c.context += int64(n)
	}
	it.decodes, it.gaps, it.context, it.squares = n, n, c.context, c.squares
	it.budget = e.plain.budget - int32(n)
}

// prefill gives s, sequence i, the next n tokens of its prompt. It reports whether the prompt is complete. Then s
// produces its first output token in this iteration.
func (e *Engine) prefill(i int32, s *sequence, n int32) bool {
	it, images := &e.it, &s.rec.Request.Images
	it.chunks = append(it.chunks, model.Chunk{New: n, Cached: s.computed, Images: images.In(s.computed, n),
		ImageTokens: images.Tokens})
	it.chunkSeqs = append(it.chunkSeqs, i)
	it.budget -= n
	it.prefill += int(n)
	e.uncomputed -= int64(n)
	s.computed += n
	if blocks := e.cfg.blocksFor(s.computed); blocks > s.blockCount {
		e.plain.blocks.Claim(blocks - s.blockCount)
		s.blockCount = blocks
	}
	s.chunkBefore, s.chunkBatch = s.chunkBatch, it.current.number
	if s.computed < s.target {
		return false
	}
	s.joinBatch = it.current.number
	s.issued++
	e.running.prefills = without(e.running.prefills, i)
	it.current.firsts = append(it.current.firsts, i)
	return true
}

// admitFromQueue admits requests from the head of the queue while seats, token budget and KV blocks last. It returns
// what the first request lacks that is not admitted.
func (e *Engine) admitFromQueue() sched.Cause {
	it, rule := &e.it, &e.plain.rule
	for e.queue.Len() > 0 {
		w := e.queue.NextNew()
		it.asked = true
		prompt := w.Request.InputTokens
		n := e.plain.chunk(prompt, it.budget)
		need := prompt
		if rule.FirstChunk {
			need = n
		}
		reserve := 0
		if e.running.size > 0 && rule.Watermark > 0 {
			reserve = int(rule.Watermark * float64(e.cfg.NumGPUBlocks))
		}
		switch {
		case e.running.size >= e.cfg.MaxNumSeqs:
			return sched.LacksSeats
		case it.budget == 0:
			return sched.LacksBudget
		case rule.WholePrompts && n < e.plain.chunk(prompt, math.MaxInt32):
			return sched.LacksBudget
		case e.cfg.blocksFor(need)+reserve > e.plain.blocks.Free():
			return sched.LacksKV
		}
		e.admitNext(w, n)
	}
	return sched.NotBlocked
}

// admitNext admits w, the head of the queue, with the first n tokens of its prompt.
func (e *Engine) admitNext(w *queue.Waiting, n int32) {
	i := e.take(0, w)
	s := e.seqs.at(i)
	s.rec.Scheduled = e.now
	s.rec.PassedOver = s.rec.Queued <= e.gpu.lastComposed
	s.target = s.rec.Request.InputTokens
	s.phase, s.joinBatch = prefilling, math.MaxInt64
	e.running.join(i)
	e.levels.Running++
	e.running.prefills = append(e.running.prefills, i)
	e.prefill(i, s, n)
}

// beginDecoding makes s, sequence i, decode from the next iteration on.
func (e *Engine) beginDecoding(i int32, s *sequence) {
	c := &e.cohort
	s.phase = decoding
	s.joined = c.steps
	s.ends = c.steps + int64(s.output-s.issued)
	c.size++
	c.context += int64(s.target)
	c.squares += square(s.target)
	c.ends.Push(pq.Item[int32]{Key: s.ends, Tie: s.serial, Value: i})
	e.line.Joins(i, s.joinBatch)
	size := int64(e.cfg.BlockSize)
	s.residue = int32((s.joined - int64(s.target)) % size)
	if s.residue < 0 {
		s.residue += e.cfg.BlockSize
	}
	c.takes.add(s.residue, 1)
	e.it.joined++
}

// pacePlain returns the time of the composed iteration, and by how much each of the next iterations like it takes longer
// than the one before, in femtoseconds. n is the number of iterations that it is repeated, at most.
func (e *Engine) pacePlain() (first, slope int64, n int) {
	if e.cfg.Check || e.gpu.slowdown > 0 {
		return e.pace() // a step timer may count its calls, so that each iteration asks once
	}
	it, b := &e.it, &e.gpu.batch // field by field: whole-struct stores stall the loads that follow
	b.Decodes, b.Context, b.Chunks = it.decodes, it.context, it.chunks
	if e.gpu.deviates {
		b.ContextDeviation = model.ContextDeviation(it.decodes, it.context, it.squares)
	}
	b.SharedTokens, b.Drafts, b.Emit = 0, 0, it.decodes+len(it.current.firsts)
	first, slope, n = e.cfg.Timer.Span(b)
	if first <= 0 || first >= clock.MaxFemtos || slope < 0 || n < 1 {
		e.fault = fmt.Errorf("sim: the step timer gives %d iterations of %d+k·%d fs for %+v", n, first, slope, *b)
		return first, slope, n
	}
	e.span.SwapFemtos, e.span.HostFemtos, e.span.HostSlope = 0, 0, 0
	host := int64(e.cfg.CPUStep+clock.Duration(it.decodes+len(it.chunks))*e.cfg.CPUPerSequence) * clock.FemtosPerPico
	if e.depth == 1 {
		e.span.HostFemtos = host
		return first + host, slope, n
	}
	if first < host { // until the GPU is slower than the host
		if slope > 0 {
			n = int(min(int64(n), (host-first)/slope+1))
		}
		e.span.HostFemtos, e.span.HostSlope = host-first, -slope
		return host, 0, n
	}
	return first, slope, n
}

// launchPlain plans a span of n iterations like the one composed. It commits a single iteration at once.
func (e *Engine) launchPlain(first, slope int64, n int) {
	p := &e.ahead
	e.gpu.composing = e.now
	p.Start, p.Remainder = e.now, 0
	if e.gpu.free >= e.now {
		p.Start, p.Remainder = e.gpu.free, e.gpu.remainder
	}
	p.First, p.Slope, p.N = first, slope, 1
	if n > 1 {
		p.N = clock.CapN(first, slope, n)
	}
	if p.N == 1 {
		e.commitPlain()
	}
}
