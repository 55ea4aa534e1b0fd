package collect

import (
	"clifftop/report/stats"
	"clifftop/sim/clock"
)

// A timeline divides a run into time buckets of equal width. There are at most so many of them: when a run outgrows
// them, each two become one and the width doubles.
//
// What fills time and what arrives is counted in the bucket [start, end) of its instant; what is
// produced at an instant (tokens, completions) in the bucket (start, end].
type timeline struct {
	width   int64
	perTick float64 // 1/width
	most    int     // number of buckets
	last    cursor  // the bucket that was entered last
	open    cursor  // the bucket in which levels are counted; its end is 0 after a change of the width
	buckets []bucket
	detail  []detail // of the same buckets; apart, because it is large and seldom touched. nil if none is kept
}

const (
	maxBuckets = 512
	// Each replica has the buckets of its fleet. Where they are many, fewer buckets keep them in memory.
	manyReplicas  = 512
	bucketsOfMany = 128
)

// mostBuckets is the number of buckets of a system of some replicas.
func mostBuckets(replicas int) int {
	if replicas > manyReplicas {
		return bucketsOfMany
	}
	return maxBuckets
}

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

// detail holds the distributions of one time bucket.
type detail struct {
	itl    stats.Histogram         // femtoseconds
	levels [levels]stats.Histogram // weighted by picoseconds
	sketch *sketch
	// offload is nil where nothing moved to or from tiers.
	offload *offload
}

// newTimeline returns a timeline that begins with one bucket. detailed says whether it keeps distributions.
func newTimeline(width clock.Duration, most int, detailed bool) timeline {
	t := timeline{most: most, buckets: make([]bucket, 1, most)}
	if detailed {
		t.detail = make([]detail, 1, most)
	}
	t.setWidth(int64(width))
	return t
}

// cursor remembers a bucket. The timeline has memory for all its buckets, so that they stay in place.
type cursor struct {
	start, end clock.Time
	i          int
	width      int64
	bucket     *bucket
	gaps       *stats.Histogram // nil if none is kept
}

func (t *timeline) setWidth(width int64) {
	t.width, t.perTick, t.last, t.open.end = width, 1/float64(width), cursor{start: clock.Never}, 0
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
	if at >= t.last.start && at < t.last.end {
		return t.last.i
	}
	return t.seek(at)
}

// seek is find for any bucket.
func (t *timeline) seek(at clock.Time) int {
	i := t.index(at)
	for i >= t.most {
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

// enter is the bucket that an instant lies in. It is found more quickly from then on.
func (t *timeline) enter(at clock.Time) cursor {
	i := t.find(at)
	t.last = cursor{start: t.start(i), end: t.end(i), i: i, width: t.width, bucket: &t.buckets[i]}
	if t.detail != nil {
		t.last.gaps = &t.detail[i].itl
	}
	return t.last
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

// take is a merge after which c must not be used.
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

// whole adds up the buckets of the whole run.
func (t *timeline) whole() bucket { return t.sum(0, len(t.buckets)) }

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
