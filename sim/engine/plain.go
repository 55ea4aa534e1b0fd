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
	on   bool // the configuration has no optional part; a composition may need one all the same
	last bool // the composition in the batch builder is plain
	// goesOn means that the last composition was plain, and that each request that has left since had all its output:
	// only running prefills, and too few blocks for a step of the cohort, can make the next one general.
	goesOn bool

	rule    sched.PlainRule
	budget  int32 // tokens of an iteration
	reserve int   // blocks that an admission leaves free while others run
	// The host's time for an iteration, and for each sequence in it, in femtoseconds.
	host, hostRow int64
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
	p.reserve = int(p.rule.Watermark * float64(cfg.NumGPUBlocks))
	p.host = int64(cfg.CPUStep) * clock.FemtosPerPico
	p.hostRow = int64(cfg.CPUPerSequence) * clock.FemtosPerPico
	p.last = p.on // the empty batch builder of a new engine is a plain one
	return p
}

// compose composes an iteration, by the plain cycle if it can, and launches it. It reports whether the iteration has
// any tokens.
func (e *Engine) compose() bool {
	it, c, p := &e.it, &e.cohort, &e.plain
	n, need := c.size, 0 // the step of the cohort, in sequences and in blocks
	if n > 0 {
		need = c.takes.at(c.steps)
	}
	if !p.goesOn || len(e.running.prefills) > 0 || need > p.blocks.Free() {
		if why := e.whyGeneral(need); why != IsPlain {
			return e.composeGeneral(why)
		}
		p.goesOn = true
		if !p.last {
			it.begin(e.gpu.batches + 1)
			p.last = true
			e.gpu.batch.SharedTokens, e.gpu.batch.Drafts, e.span.SwapFemtos = 0, 0, 0
		}
	}
	e.effort.Compositions++
	e.effort.Plain++
	f := e.inFlight.next()
	it.current, f.number = f, e.gpu.batches+1
	it.stepped, f.stepped = n > 0, n > 0
	if n > 0 { // each decoding sequence gets a token: one counter of steps stands for all of them
		p.blocks.Claim(need)
		c.steps++
		c.squares += uint64(2*c.context + int64(n))
		c.context += int64(n)
	}
	it.decodes, it.gaps, it.context, it.squares = n, n, c.context, c.squares
	it.chunks = it.chunks[:0] // each alone, so that only the length is written
	it.chunkSeqs = it.chunkSeqs[:0]
	it.prefill, it.asked, it.blocked = 0, false, sched.NotBlocked
	if len(e.running.prefills)+e.queue.Len() > 0 {
		e.composePrefills(p.budget - int32(n))
	}
	if n+len(it.chunks) == 0 {
		return false
	}
	first, slope, most := e.pacePlain()
	if e.fault != nil {
		return false
	}
	if most > 1 {
		most = e.repeat(most)
	} else {
		e.effort.Ends[StepTimeChanges]++
	}
	e.gpu.composing = e.now
	a := &e.ahead
	a.Start, a.Remainder = e.now, 0
	if e.gpu.free >= e.now {
		a.Start, a.Remainder = e.gpu.free, e.gpu.remainder
	}
	a.First, a.Slope, a.N = first, slope, 1
	if most > 1 {
		a.N = clock.CapN(first, slope, most)
	}
	if a.N == 1 {
		e.commitPlain()
	}
	return true
}

// whyGeneral returns why the next composition is not plain. It is plain if the decoding sequences are in step, the
// running prefills and the head of the queue have never been preempted, and all running sequences get their tokens
// without a preemption. need is the number of blocks that the step of the cohort takes.
func (e *Engine) whyGeneral(need int) Reason {
	c, p := &e.cohort, &e.plain
	switch {
	case !p.on:
		return HasPart
	case p.blocks == nil && !e.space.forgettable():
		return NamesBlocks
	case e.lagging > 0, len(e.groups) > 1, len(e.groups) == 1 && e.groups[0].number != e.gpu.batches:
		return OutOfStep
	case !e.queue.AllNew():
		return WasPreempted
	}
	e.groups = e.groups[:0]
	budget := p.budget - int32(c.size)
	for k, i := range e.running.prefills {
		s := e.seqs.at(i)
		if s.issued > 0 || s.reached > 0 {
			return WasPreempted
		}
		if k == 0 && c.size > 0 && e.decoderBehind(i) {
			return PrefillBehind
		}
		n := p.chunk(s.target-s.computed, budget)
		budget -= n
		need += max(0, e.cfg.blocksFor(s.computed+n)-s.blockCount)
	}
	if p.blocks == nil {
		if need > e.space.free() {
			return LacksBlocks
		}
		e.forgetNames()
	} else if need > p.blocks.Free() {
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

// composePrefills gives tokens, as many as the budget has, to the running prefills and to requests that it admits. What
// completes its prompt decodes from the next iteration on.
func (e *Engine) composePrefills(budget int32) {
	it := &e.it
	it.budget = budget
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
		if e.running.size > 0 {
			reserve = e.plain.reserve
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
}

// pacePlain returns the time of the composed iteration, and by how much each of the next iterations like it takes
// longer than the one before, in femtoseconds. n is the number of iterations that it is repeated, at most.
func (e *Engine) pacePlain() (first, slope int64, n int) {
	if e.cfg.Check || e.gpu.slowdown > 0 {
		return e.pace() // a step timer may count its calls, so that each iteration asks once
	}
	it, b, p := &e.it, &e.gpu.batch, &e.plain // field by field: whole-struct stores stall the loads that follow
	b.Decodes, b.Context, b.Emit = it.decodes, it.context, it.decodes+len(it.current.firsts)
	if b.Chunks = b.Chunks[:0]; len(it.chunks) > 0 {
		b.Chunks = it.chunks
	}
	if e.gpu.deviates {
		b.ContextDeviation = model.ContextDeviation(it.decodes, it.context, it.squares)
	}
	first, slope, n = e.cfg.Timer.Span(b)
	if first <= 0 || first >= clock.MaxFemtos || slope < 0 || n < 1 {
		e.fault = fmt.Errorf("sim: the step timer gives %d iterations of %d+k·%d fs for %+v", n, first, slope, *b)
		return first, slope, n
	}
	e.span.HostFemtos, e.span.HostSlope = 0, 0
	host := p.host + int64(it.decodes+len(it.chunks))*p.hostRow
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
