package collect

import (
	"math/bits"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// bucket holds the sums of one time bucket. The fields that most events write are next to each other.
type bucket struct {
	iterations, decodes int64
	output, context     int64         // tokens emitted; tokens of context that decodes read
	busy                clock.Uint128 // femtoseconds
	kvUse
	prefill, recomputed int64 // tokens computed
	power               powerUse

	arrivals, completions int64
	prompts
	sampleSums
	failureSums

	replicaLevels // of a replica of a fleet, instead of detail

	gaps        [2 * gapClasses]int64 // picoseconds, by gapClass
	preemptions int64
	drafts
	lost   [losses]clock.Uint128
	worked []clock.Uint128 // femtoseconds by pipeline stage; nil without a pipeline

	// Picoseconds by state, where replicas start and stop, and of the whole of such a fleet the integral of requests
	// held at the router.
	states [event.States]uint64
	held   clock.Uint128
}

// merge adds the sums of c.
func (b *bucket) merge(c *bucket) {
	b.iterations += c.iterations
	b.decodes += c.decodes
	b.output += c.output
	b.context += c.context
	b.busy = b.busy.Add(c.busy)
	b.kvUse.merge(&c.kvUse)
	b.power.merge(&c.power)
	b.prefill += c.prefill
	b.recomputed += c.recomputed
	b.arrivals += c.arrivals
	b.completions += c.completions
	b.prompts.merge(c.prompts)
	b.sampleSums.merge(&c.sampleSums)
	b.failureSums.merge(&c.failureSums)
	b.replicaLevels.merge(&c.replicaLevels)
	for i, picos := range c.gaps {
		b.gaps[i] += picos
	}
	b.preemptions += c.preemptions
	b.drafts.merge(c.drafts)
	addAll(b.lost[:], c.lost[:])
	b.worked = both(b.worked, c.worked)
	for i, picos := range c.states {
		b.states[i] += picos
	}
	b.held = b.held.Add(c.held)
}

// addAll adds each number of more to that of sums.
func addAll(sums, more []clock.Uint128) {
	for i := range more {
		sums[i] = sums[i].Add(more[i])
	}
}

// computed is the number of tokens computed.
func (b *bucket) computed() int64 { return b.prefill + b.recomputed + b.decodes + b.drafted }

// kvUse is the use of KV blocks over time.
type kvUse struct {
	blocks    clock.Uint128 // block-femtoseconds
	empty     clock.Uint128 // of blocks: those reserved without content
	maxBlocks int64
}

func (k *kvUse) merge(c *kvUse) {
	k.hold(c.blocks, c.empty)
	k.maxBlocks = max(k.maxBlocks, c.maxBlocks)
}

// hold counts blocks, and the empty ones among them.
func (k *kvUse) hold(blocks, empty clock.Uint128) {
	k.blocks = k.blocks.Add(blocks)
	if empty != (clock.Uint128{}) {
		k.empty = k.empty.Add(empty)
	}
}

// prompts are the tokens of prompts, counted at the first token of the output.
type prompts struct{ input, cached int64 }

func (p *prompts) merge(c prompts) { p.input, p.cached = p.input+c.input, p.cached+c.cached }

// prefilled counts a prompt.
func (p *prompts) prefilled(rec *event.Record) {
	p.input += int64(rec.Request.InputTokens)
	p.cached += int64(rec.CachedTokens)
}

// sampleSums are sums over completed requests, counted at their arrival.
type sampleSums struct {
	samples          int64
	ttft             clock.Uint128 // picoseconds
	good, goodTokens int64         // requests within the SLO, and their output tokens
	waited           int64         // requests that were not admitted at once
}

func (t *sampleSums) merge(c *sampleSums) {
	t.samples += c.samples
	t.ttft = t.ttft.Add(c.ttft)
	t.good += c.good
	t.goodTokens += c.goodTokens
	t.waited += c.waited
}

// sample counts a completed request that arrived in the bucket.
func (t *sampleSums) sample(s *sample, good bool) {
	t.samples++
	add(&t.ttft, int64(s.ttft))
	if s.waited {
		t.waited++
	}
	if good {
		t.good++
		t.goodTokens += int64(s.tokens)
	}
}

// failureSums are sums over attempts that did not complete.
type failureSums struct {
	failures     int64 // requests that ended without completing, counted at their arrival
	failedOutput int64 // tokens
	vain         cancelledTime
}

func (f *failureSums) merge(c *failureSums) {
	f.failures += c.failures
	f.failedOutput += c.failedOutput
	addAll(f.vain[:], c.vain[:])
}

// failed counts the output and the GPU time of an attempt that did not complete.
func (f *failureSums) failed(rec *event.Record) {
	f.failedOutput += int64(rec.Tokens)
	f.vain.add(&rec.GPU)
}

// drafts count tokens of speculative decoding.
type drafts struct {
	drafted   int64 // verified together with the decodes
	accepted  int64
	discarded int64 // of the accepted: past the end of the output
}

func (d *drafts) merge(c drafts) {
	d.drafted += c.drafted
	d.accepted += c.accepted
	d.discarded += c.discarded
}

// rejected is the number of drafts that produced no output.
func (d *drafts) rejected() int64 { return d.drafted - d.accepted + d.discarded }

// replicaLevels are the sums that a replica has instead of distributions.
type replicaLevels struct {
	levels          [levels]clock.Uint128 // integrals over time, in picoseconds
	highest         [levels]int64
	watched, vacant uint64        // picoseconds: all, and those without a request in the system
	gapSum          clock.Uint128 // of inter-token gaps, in femtoseconds
	gapCount        int64
}

func (r *replicaLevels) merge(c *replicaLevels) {
	addAll(r.levels[:], c.levels[:])
	for i, level := range c.highest {
		r.highest[i] = max(r.highest[i], level)
	}
	r.watched, r.vacant = r.watched+c.watched, r.vacant+c.vacant
	r.gapSum = r.gapSum.Add(c.gapSum)
	r.gapCount += c.gapCount
}

// gapped counts the gaps between the chunks that clients get in a span.
func (r *replicaLevels) gapped(s *event.Span) {
	d := &s.Delivery
	femtos := func(length clock.Duration) clock.Uint128 { return clock.Mul64(uint64(length), clock.FemtosPerPico) }
	for _, g := range d.Others {
		r.gapSums(femtos(g.Length), 1, uint64(g.N))
	}
	switch {
	case s.Decodes == 0:
	case d.Cycle > 0:
		r.gapSums(femtos(d.Cycle), 1, s.Cycles())
	default:
		r.gapSums(femtos(s.Wait).Add(clock.Uint128{Lo: uint64(s.First)}), 1, uint64(d.First))
		r.gapSums(clock.Uint128{Lo: uint64(s.Femtos(s.N) - s.First)}, uint64(s.N-1), uint64(d.Later))
	}
}

// gapSums counts inter-token gaps: weight times as many as n, whose sum is given.
func (r *replicaLevels) gapSums(sum clock.Uint128, n, weight uint64) {
	r.gapSum = r.gapSum.Add(sum.Mul(weight))
	r.gapCount += int64(n * weight)
}

// holds counts a level that had a value for a time.
func (r *replicaLevels) holds(level int, value int64, picos uint64) {
	hi, lo := bits.Mul64(uint64(value), picos)
	r.levels[level] = r.levels[level].Add(clock.Uint128{Hi: hi, Lo: lo})
	r.highest[level] = max(r.highest[level], value)
	if level == inSystem {
		r.watched += picos
		if value == 0 {
			r.vacant += picos
		}
	}
}

// concurrency is what the sums of levels tell.
func (r *replicaLevels) concurrency() report.Concurrency {
	level := func(l int) report.Level {
		if r.watched == 0 {
			return report.Level{}
		}
		return report.Level{Mean: stats.Finite(r.levels[l].Float64() / float64(r.watched)),
			Max: stats.Finite(float64(r.highest[l]))}
	}
	return report.Concurrency{InSystem: level(inSystem), Running: level(running), Decoding: level(decoding),
		QueueDepth: level(waiting)}
}
