package stats

import (
	"math"
	"math/bits"

	"clifftop/sim/clock"
)

// A Histogram counts integers in buckets whose width is at most 1/128 of their values; values
// below 256 have a bucket each. Count, sum, mean, least and greatest value are exact, and a
// quantile is off by at most 1/256 of its value. The unit is up to the user. The zero Histogram is
// empty and ready for use.
type Histogram struct {
	// pages[0] counts the values 0…127 singly; pages[p] splits [2^(p+6), 2^(p+7)) into 128.
	pages    [pages]*page
	n        uint64
	sum      clock.Uint128
	min, max int64
}

const (
	subBits = 7
	subs    = 1 << subBits
	pages   = 64 - subBits // of values below 2⁶³
)

type page [subs]uint64

// place is the page that counts v ≥ 0, and the number of bits of v that its bucket there leaves out. The bits above
// them tell the bucket: two values with the same ones are counted in the same.
func place(v int64) (p int, omitted uint) {
	p = max(bits.Len64(uint64(v))-subBits, 0)
	return p, uint(max(p, 1)-1) & 63
}

// bounds are the least and the greatest value that bucket sub of page p counts.
func bounds(p, sub int) (lo, hi int64) {
	if p == 0 {
		return int64(sub), int64(sub)
	}
	lo = int64(subs+sub) << (p - 1)
	return lo, lo + 1<<(p-1) - 1
}

// WeightOfZero is the weight of the values 0.
func (h *Histogram) WeightOfZero() uint64 {
	if h.pages[0] == nil {
		return 0
	}
	return h.pages[0][0]
}

// Record counts v weight times. A negative v counts as 0.
func (h *Histogram) Record(v int64, weight uint64) {
	if weight == 0 {
		return
	}
	v = max(v, 0)
	h.extend(v, v)
	h.n += weight
	h.add(bits.Mul64(uint64(v), weight))
	p, omitted := place(v)
	pg := h.pages[p]
	if pg == nil {
		pg = h.addPage(p)
	}
	pg[v>>omitted&(subs-1)] += weight
}

// RecordProgression counts each of the n values first, first+slope, first+2·slope … weight times.
// It equals n calls of Record and takes time in the number of buckets crossed. first and slope are
// not negative, and the n values add up to less than 2⁶³.
func (h *Histogram) RecordProgression(first, slope int64, n int, weight uint64) {
	if n <= 0 || weight == 0 {
		return
	}
	count := int64(n)
	last := first + (count-1)*slope
	h.extend(first, last)
	h.n += uint64(n) * weight
	h.add(bits.Mul64(uint64(count*first)+uint64(count*(count-1))/2*uint64(slope), weight))
	for {
		p, omitted := place(first)
		in := count
		if first>>omitted != last>>omitted {
			in = (first|(1<<omitted-1)-first)/slope + 1
		}
		pg := h.pages[p]
		if pg == nil {
			pg = h.addPage(p)
		}
		pg[first>>omitted&(subs-1)] += uint64(in) * weight
		if count -= in; count == 0 {
			return
		}
		first += in * slope
	}
}

func (h *Histogram) add(hi, lo uint64) {
	var carry uint64
	h.sum.Lo, carry = bits.Add64(h.sum.Lo, lo, 0)
	h.sum.Hi += hi + carry
}

func (h *Histogram) extend(lo, hi int64) {
	if lo < h.min || h.n == 0 {
		h.min = lo
	}
	if hi > h.max {
		h.max = hi
	}
}

// addPage is out of line, so that the callers stay small.
//
//go:noinline
func (h *Histogram) addPage(p int) *page {
	h.pages[p] = new(page)
	return h.pages[p]
}

// Merge adds what g has counted to h.
func (h *Histogram) Merge(g *Histogram) {
	if g.n == 0 {
		return
	}
	h.extend(g.min, g.max)
	h.n += g.n
	h.sum = h.sum.Add(g.sum)
	first, low := place(g.min)
	last, high := place(g.max)
	for p := first; p <= last; p++ {
		from := g.pages[p]
		if from == nil {
			continue
		}
		to, start, end := h.pages[p], 0, subs
		if to == nil {
			to = h.addPage(p)
		}
		if p == first {
			start = int(g.min >> low & (subs - 1))
		}
		if p == last {
			end = int(g.max>>high&(subs-1)) + 1
		}
		more := from[start:end]
		sums := to[start:][:len(more)]
		for i, n := range more {
			sums[i] += n
		}
	}
}

// Take is Merge, after which g must not be used: h may keep parts of it.
func (h *Histogram) Take(g *Histogram) {
	for p := range h.pages {
		if h.pages[p] == nil && g.pages[p] != nil {
			h.pages[p], g.pages[p] = g.pages[p], nil
		}
	}
	h.Merge(g)
}

// Count is the number of recorded values, each counted by its weight.
func (h *Histogram) Count() uint64 { return h.n }

// Sum is the exact sum of the recorded values, each multiplied by its weight.
func (h *Histogram) Sum() clock.Uint128 { return h.sum }

// Mean is the mean value, or NaN if there is none.
func (h *Histogram) Mean() float64 { return h.sum.Float64() / float64(h.n) }

// Min and Max are the least and the greatest recorded value, 0 if there is none.
func (h *Histogram) Min() int64 { return h.min }

// Max is the greatest recorded value, 0 if there is none.
func (h *Histogram) Max() int64 { return h.max }

// SD is the standard deviation of the population, or NaN of none. It takes each value as the middle of
// its bucket.
func (h *Histogram) SD() float64 {
	if h.min == h.max && h.n > 0 {
		return 0
	}
	mean, squares := h.Mean(), 0.0
	h.each(func(v float64, n uint64) bool {
		squares += float64(n) * (v - mean) * (v - mean)
		return true
	})
	return math.Sqrt(squares / float64(h.n))
}

// Quantile is the q-quantile, 0 ≤ q ≤ 1, or NaN if nothing was recorded. It interpolates linearly between the two
// nearest ranks, as numpy does by default.
func (h *Histogram) Quantile(q float64) float64 {
	if h.n == 0 {
		return math.NaN()
	}
	at := float64(h.n-1) * q
	rank := uint64(at)
	lo := h.ranked(rank)
	frac := at - float64(rank)
	if frac == 0 || rank+1 >= h.n {
		return lo
	}
	return lo + frac*(h.ranked(rank+1)-lo)
}

// Level is the least value that at least the fraction q of the weight does not exceed, or NaN if
// nothing was recorded: the quantile of a level that was recorded with its durations as weights.
func (h *Histogram) Level(q float64) float64 {
	if h.n == 0 {
		return math.NaN()
	}
	rank := uint64(math.Ceil(float64(h.n) * q))
	return h.ranked(max(rank, 1) - 1)
}

// ranked is the middle of the bucket of the value of that rank, counted from 0, kept within what was recorded.
func (h *Histogram) ranked(rank uint64) float64 {
	if rank+1 >= h.n {
		return float64(h.max)
	}
	found := float64(h.max)
	var below uint64
	h.each(func(v float64, n uint64) bool {
		if below += n; below > rank {
			found = v
			return false
		}
		return true
	})
	return min(max(found, float64(h.min)), float64(h.max))
}

// each visits the buckets in ascending order until visit says false.
func (h *Histogram) each(visit func(middle float64, n uint64) bool) {
	for p, counts := range h.pages {
		if counts == nil {
			continue
		}
		for sub, n := range counts {
			if n == 0 {
				continue
			}
			if lo, hi := bounds(p, sub); !visit(float64(lo)+float64(hi-lo)/2, n) {
				return
			}
		}
	}
}
