package model

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// curve is a non-negative, non-decreasing piecewise linear function of an integer with integer coefficients: on
// [start, end) it is value + (x − start)·slope, in femtoseconds. It is continuous at the joints.
type curve struct {
	pieces []piece
	index  []uint16 // by bucket, the piece that contains the smallest x of the bucket
}

type piece struct {
	start, end   int64
	value, slope int64
}

// forever is the end of the last piece.
const forever = math.MaxInt64 / 2

// curveEnd is the largest x at which a curve has a joint.
const curveEnd = 1 << 26

// curveTolerance limits the relative error of a curve at the points where it is checked; between them the error
// stays below 2.5e-5.
const curveTolerance = 2.3e-5

// newCurve approximates f, given in seconds, from x = from on. Joints fall on kinks, where the slope of f may jump.
// A convex f lies below its chords; bias moves the joints below f so that the error of a piece is centred.
func newCurve(f func(x float64) float64, from int64, kinks []int64, bias bool) curve {
	lower := 1.0
	if bias {
		lower = 1 - 0.95*curveTolerance
	}
	at := func(x int64) float64 { return float64(f(float64(x)) * lower * femtosPerSecond) }
	var c curve
	start, value := from, roundFemtos(at(from))
	length := int64(1)
	for start < curveEnd {
		limit := int64(curveEnd)
		for _, k := range kinks {
			if k > start {
				limit = min(limit, k)
			}
		}
		length = longestPiece(f, lower, start, limit, length)
		end := start + length
		p := piece{start: start, end: end, value: value}
		p.slope = max(0, roundFemtos((at(end)-float64(value))/float64(length)))
		c.pieces = append(c.pieces, p)
		start, value = end, saturate(value, p.slope, length)
	}
	if len(c.pieces) == 0 {
		c.pieces = []piece{{start: from, value: value}}
	}
	c.merge()
	c.pieces[len(c.pieces)-1].end = forever
	c.buildIndex()
	return c
}

// longestPiece returns the greatest length, up to limit, of a chord from start whose error is within the tolerance.
// It starts the search at guess, the length of the previous piece.
func longestPiece(f func(float64) float64, lower float64, start, limit, guess int64) int64 {
	first := float64(f(float64(start)) * lower)
	ok := func(length int64) bool {
		if length <= 1 {
			return true
		}
		last := float64(f(float64(start+length)) * lower)
		for _, share := range [...]float64{1. / 64, 1. / 32, 1. / 16, 3. / 32, 1. / 8, 3. / 16, 1. / 4, 5. / 16,
			3. / 8, 1. / 2, 5. / 8, 3. / 4, 7. / 8} {
			step := math.Floor(share * float64(length))
			y := f(float64(start) + step)
			chord := first + float64((last-first)*step/float64(length))
			if math.Abs(chord-y) > curveTolerance*y {
				return false
			}
		}
		return true
	}
	room := limit - start
	good, bad := int64(1), room+1 // ok(good), and not ok(bad) or out of bounds
	for try := min(max(guess, 2), room); try > good; {
		if !ok(try) {
			bad = try
			break
		}
		good = try
		try = min(2*try, room)
	}
	for bad-good > max(1, good/64) {
		if mid := good + (bad-good)/2; ok(mid) {
			good = mid
		} else {
			bad = mid
		}
	}
	return good
}

// merge joins neighbouring pieces of equal slope.
func (c *curve) merge() {
	out := c.pieces[:1]
	for _, p := range c.pieces[1:] {
		if last := &out[len(out)-1]; last.slope == p.slope {
			last.end = p.end
			continue
		}
		out = append(out, p)
	}
	c.pieces = out
}

// bucket numbers ranges of x in increasing order: one for each of the first 32 values, then 16 per power of two.
func bucket(x int64) int {
	shift := bits.Len64(uint64(x)|16) - 5
	return shift<<4 + int(x>>shift)
}

func (c *curve) buildIndex() {
	last := c.pieces[len(c.pieces)-1].start
	c.index = make([]uint16, bucket(last)+1)
	for b := range c.index {
		least := int64(b)
		if b >= 32 {
			shift := b>>4 - 1
			least = int64(b-shift<<4) << shift
		}
		c.index[b] = uint16(max(0, sort.Search(len(c.pieces), func(i int) bool { return c.pieces[i].start > least })-1))
	}
}

func (c *curve) find(x int64) *piece {
	i := int(c.index[min(bucket(x), len(c.index)-1)])
	for c.pieces[i].end <= x {
		i++
	}
	return &c.pieces[i]
}

func (c *curve) at(x int64) int64 {
	p := c.find(x)
	return saturate(p.value, x-p.start, p.slope)
}

// table is an exact table of a function in seconds for small integers, continued by curves that join where the function
// jumps. Values and curves are computed when they are first used, and always the same: several goroutines may use a
// table.
type table struct {
	f      func(x float64) float64
	n      int64   // numbers in the table
	values []int64 // femtoseconds, read and written atomically; 0 until it is used. The one past the end stays 0.
	beyond []continuation
}

// continuation is a curve from the end of the one before, or of the values, to its own end.
type continuation struct {
	end   int64
	curve func() *curve
}

// newTable returns the table of f for 0…n-1. Jumps are the numbers at which f may jump, in any order.
func newTable(f func(x float64) float64, n int, jumps ...int64) table {
	t := table{f: f, n: int64(n), values: make([]int64, n+1)}
	jumps = slices.Clone(jumps)
	slices.Sort(jumps)
	from := int64(n)
	for _, end := range append(jumps, forever) {
		if end <= from || end > curveEnd && end < forever {
			continue
		}
		start, last := from, float64(end-1)
		before := func(x float64) float64 { return f(min(x, last)) }
		t.beyond = append(t.beyond, continuation{end, sync.OnceValue(func() *curve {
			c := newCurve(before, start, []int64{end - 1}, false)
			return &c
		})})
		from = end
	}
	return t
}

// at returns the value at x in femtoseconds.
func (t *table) at(x int64) (v int64) {
	if v = atomic.LoadInt64(&t.values[min(x, t.n)]); v == 0 {
		v = t.compute(x)
	}
	return v
}

// compute returns a value that is not in the table, and enters it if there is room.
func (t *table) compute(x int64) int64 {
	if x < t.n {
		v := roundSum(t.f(float64(x)))
		atomic.StoreInt64(&t.values[x], v)
		return v
	}
	i := 0
	for x >= t.beyond[i].end && i < len(t.beyond)-1 {
		i++
	}
	return t.beyond[i].curve().at(x)
}

// femtosPerSecond converts seconds to the unit of step times.
const femtosPerSecond = 1e15

// maxFemtos is the largest part of a step time, 19 minutes in femtoseconds. Larger parts are limited to it, so that
// a few of them can be added without overflow.
const maxFemtos = 1 << 60

// roundFemtos rounds to whole femtoseconds, at most maxFemtos.
func roundFemtos(fs float64) int64 {
	if !(fs < maxFemtos) {
		return maxFemtos
	}
	return int64(math.Round(fs))
}

// roundSum converts seconds to femtoseconds, rounded to 1 ns: far below the accuracy of any constant, and far above
// the last bits of powers and sums, in which platforms differ.
func roundSum(seconds float64) int64 {
	const quantum = 1_000_000
	return min(quantum*roundFemtos(seconds*(femtosPerSecond/quantum)), maxFemtos)
}

// saturate returns a + b·c for non-negative numbers, at most maxFemtos.
func saturate(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(b), uint64(c))
	if hi != 0 || lo > maxFemtos {
		return maxFemtos
	}
	return min(a+int64(lo), maxFemtos)
}

// fraction is a fixed-point number of femtoseconds with fractionBits binary places.
type fraction uint64

const fractionBits = 20

func newFraction(seconds float64) fraction {
	v := math.Round(seconds * femtosPerSecond * (1 << fractionBits))
	if !(v < maxFemtos) {
		return maxFemtos
	}
	return fraction(v)
}

// uint128 accumulates products of counts and fractions.
type uint128 struct{ hi, lo uint64 }

// add adds x·f for a non-negative x.
func (u *uint128) add(x int64, f fraction) {
	hi, lo := bits.Mul64(uint64(x), uint64(f))
	var carry uint64
	u.lo, carry = bits.Add64(u.lo, lo, 0)
	u.hi, carry = bits.Add64(u.hi, hi, carry)
	if carry != 0 {
		u.hi = math.MaxUint64
	}
}

// femtos returns the rounded sum.
func (u *uint128) femtos() int64 {
	lo, carry := bits.Add64(u.lo, 1<<(fractionBits-1), 0)
	hi := u.hi + carry
	if hi >= maxFemtos>>(64-fractionBits) {
		return maxFemtos
	}
	return int64(hi<<(64-fractionBits) | lo>>fractionBits)
}
