package collect

import (
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// A timeline divides a run into time buckets of equal width. There are at most maxBuckets of them: when a
// run outgrows them, each two become one and the width doubles.
//
// What fills time and what arrives is counted in the bucket [start, end) of its instant; what is
// produced at an instant (tokens, completions) in the bucket (start, end].
type timeline struct {
	width   int64
	perTick float64 // 1/width
	buckets []bucket
	detail  []detail // of the same buckets; apart, because it is large and seldom touched. nil if none is kept
}

const maxBuckets = 512

// defaultWidth is the width before the first doubling.
const defaultWidth = clock.Millisecond

// Levels of which distributions are kept.
const (
	inSystem = iota
	waiting
	running
	decoding
	levels
)

// bucket holds the sums of one time bucket. What most events touch stands together.
type bucket struct {
	iterations, decodes int64
	output, context     int64 // tokens emitted; tokens of context that decodes read
	maxBlocks           int64
	busy, blocks        clock.Uint128 // femtoseconds; block-femtoseconds
	prefill, recomputed int64         // tokens computed

	arrivals, completions int64
	input, cached         int64         // tokens of prompts, by first token
	samples               int64         // completed, by arrival
	ttft                  clock.Uint128 // their sum, picoseconds
	good, goodTokens      int64         // were within the SLO
	waited                int64         // were not admitted at once
	failures              int64         // ended without completing; by arrival
	failedOutput          int64         // tokens of requests that ended without completing

	// Of parts of a fleet, in the place of detail:
	levels          [levels]clock.Uint128 // integrals, in picoseconds
	highest         [levels]int64
	watched, vacant uint64        // picoseconds: all, and those with nothing in the system
	gapSum          clock.Uint128 // of inter-token gaps, in femtoseconds
	gapCount        int64

	gaps                [2 * gapClasses]int64 // picoseconds, by gapClass
	preemptions         int64
	drafts              int64         // verified beside the decodes,
	accepted, discarded int64         // found right, and of these past the end of their answer
	empty               clock.Uint128 // of blocks: reserved, block-femtoseconds
	lost                [losses]clock.Uint128
	vain                vain
	worked              []clock.Uint128 // femtoseconds, by stage of a pipeline; nil where there is none

	// Picoseconds by state, where replicas come and go, and of the whole of such a fleet the integral of requests held
	// at the router.
	states [event.States]uint64
	held   clock.Uint128
}

// detail holds the distributions of one time bucket.
type detail struct {
	itl    stats.Histogram         // femtoseconds
	levels [levels]stats.Histogram // weighted by picoseconds
	sketch *sketch
	// offload is nil where nothing moved to or from tiers.
	offload *offload
}

func newTimeline(width clock.Duration) timeline {
	t := timeline{buckets: make([]bucket, 1, maxBuckets), detail: make([]detail, 1, maxBuckets)}
	t.setWidth(int64(width))
	return t
}

func (t *timeline) setWidth(width int64) {
	t.width, t.perTick = width, 1/float64(width)
}

// index is the bucket of an instant, which may lie beyond the last.
func (t *timeline) index(at clock.Time) int {
	// The product is off by less than one bucket.
	i := int64(float64(at) * t.perTick)
	if i*t.width > int64(at) {
		i--
	} else if int64(at)-i*t.width >= t.width {
		i++
	}
	return int(i)
}

// find is the bucket of an instant; it makes room for it.
func (t *timeline) find(at clock.Time) int {
	i := t.index(at)
	if i < len(t.buckets) {
		return i
	}
	for i >= maxBuckets {
		t.halve()
		i /= 2
	}
	for len(t.buckets) <= i {
		t.buckets = append(t.buckets, bucket{})
		if t.detail != nil {
			t.detail = append(t.detail, detail{})
		}
	}
	return i
}

// at is the bucket of what fills time or arrives.
func (t *timeline) at(at clock.Time) *bucket {
	return &t.buckets[t.find(at)]
}

// upTo is the bucket of what is produced at an instant.
func (t *timeline) upTo(at clock.Time) *bucket {
	return &t.buckets[t.find(max(at, 1)-1)]
}

func (t *timeline) start(i int) clock.Time { return clock.Time(int64(i) * t.width) }
func (t *timeline) end(i int) clock.Time   { return clock.Time(int64(i+1) * t.width) }

// halve joins each two buckets.
func (t *timeline) halve() {
	n := (len(t.buckets) + 1) / 2
	for i := range n {
		t.buckets[i] = t.buckets[2*i]
		if j := 2*i + 1; j < len(t.buckets) {
			t.buckets[i].merge(&t.buckets[j])
		}
	}
	t.buckets = t.buckets[:n]
	t.setWidth(2 * t.width)
	if t.detail == nil {
		return
	}
	for i := range n {
		if i > 0 {
			t.detail[i] = t.detail[2*i]
		}
		if j := 2*i + 1; j < len(t.detail) {
			t.detail[i].take(&t.detail[j])
		}
	}
	clear(t.detail[n:])
	t.detail = t.detail[:n]
}

// computed is the number of tokens computed.
func (b *bucket) computed() int64 { return b.prefill + b.recomputed + b.decodes + b.drafts }

// rejected is the number of drafts computed for nothing.
func (b *bucket) rejected() int64 { return b.drafts - b.accepted + b.discarded }

func (b *bucket) merge(c *bucket) {
	b.arrivals += c.arrivals
	b.completions += c.completions
	b.input += c.input
	b.cached += c.cached
	b.output += c.output
	b.failedOutput += c.failedOutput
	b.prefill += c.prefill
	b.recomputed += c.recomputed
	b.decodes += c.decodes
	b.drafts += c.drafts
	b.accepted += c.accepted
	b.discarded += c.discarded
	b.context += c.context
	b.iterations += c.iterations
	b.preemptions += c.preemptions
	b.busy = b.busy.Add(c.busy)
	for i := range b.lost {
		b.lost[i] = b.lost[i].Add(c.lost[i])
	}
	for i := range b.vain {
		b.vain[i] = b.vain[i].Add(c.vain[i])
	}
	b.worked = both(b.worked, c.worked)
	b.blocks, b.empty = b.blocks.Add(c.blocks), b.empty.Add(c.empty)
	b.maxBlocks = max(b.maxBlocks, c.maxBlocks)
	for i := range b.gaps {
		b.gaps[i] += c.gaps[i]
	}
	b.failures += c.failures
	b.samples += c.samples
	b.ttft = b.ttft.Add(c.ttft)
	b.waited += c.waited
	b.good += c.good
	b.goodTokens += c.goodTokens
	for i := range b.levels {
		b.levels[i] = b.levels[i].Add(c.levels[i])
		b.highest[i] = max(b.highest[i], c.highest[i])
	}
	b.watched, b.vacant = b.watched+c.watched, b.vacant+c.vacant
	b.gapSum = b.gapSum.Add(c.gapSum)
	b.gapCount += c.gapCount
	for i := range b.states {
		b.states[i] += c.states[i]
	}
	b.held = b.held.Add(c.held)
}

// Take is a merge after which c must not be used.
func (d *detail) take(c *detail) {
	d.itl.Take(&c.itl)
	for i := range d.levels {
		d.levels[i].Take(&c.levels[i])
	}
	d.takeSketch(c.sketch)
	d.offload = d.offload.merge(c.offload)
}

func (d *detail) takeSketch(k *sketch) {
	switch {
	case k == nil:
	case d.sketch == nil:
		d.sketch = k
	default:
		for m := range k {
			d.sketch[m].Take(&k[m])
		}
	}
}

// sum adds up the buckets from…to-1, as far as there are such.
func (t *timeline) sum(from, to int) (sum bucket) {
	for i := from; i < min(to, len(t.buckets)); i++ {
		sum.merge(&t.buckets[i])
	}
	return sum
}

// total adds up the buckets from…to-1. The result shares nothing with them, except that the
// caller must not change the sketch.
func (t *timeline) total(from, to int) (bucket, *detail) {
	all := &detail{sketch: new(sketch)}
	for i := from; i < to; i++ {
		d := &t.detail[i]
		all.itl.Merge(&d.itl)
		for l := range d.levels {
			all.levels[l].Merge(&d.levels[l])
		}
		all.offload = all.offload.merge(d.offload)
		if d.sketch != nil {
			for m := range d.sketch {
				all.sketch[m].Merge(&d.sketch[m])
			}
		}
	}
	return t.sum(from, to), all
}
