package monitor

import (
	"math"
	"math/bits"

	"clifftop/sim/clock"
)

// window has the events of the last minute of the wall clock.
type window struct {
	rates  rates
	first  latencies // times to first tokens
	output latencies // times per output token of completed requests
	gaps   latencies // between two tokens of a request
}

// newWindow returns a window for a number of simulated seconds per second of the wall clock.
func newWindow(speed float64) window {
	l := latencies{length: length(speed)}
	return window{rates: rates{slot: l.length / perSecond}, first: l, output: l, gaps: l}
}

// length is the simulated length of a second of the wall clock.
func length(speed float64) clock.Duration {
	return max(perSecond, clock.Duration(math.Min(speed, 1e6)*float64(clock.Second)))
}

// passes drops what is older than a minute.
func (w *window) passes(at clock.Time) {
	w.first.passes(at)
	w.output.passes(at)
	w.gaps.passes(at)
}

// rates are counts of the last minute in slots of a quarter of a second.
type rates struct {
	slot  clock.Duration // the simulated length of a slot
	slots [perSecond * minute]counts
}

const (
	minute    = 60
	perSecond = 4 // slots
)

// counts has the events in a slot of time.
type counts struct {
	slot     int64 // its number, since the start
	tokens   int64
	prompts  int64
	arrivals int64
	ended    [outcomes]int64
}

// at is the slot of an instant.
func (r *rates) at(at clock.Time) *counts {
	n := max(0, int64(at)/int64(r.slot))
	c := &r.slots[n%int64(len(r.slots))]
	if c.slot != n {
		*c = counts{slot: n}
	}
	return c
}

// rateSlots is the number of slots over which rates are averaged: three seconds.
const rateSlots = 12

// recent returns the sums of the last full slots before an instant, and the simulated time in seconds that they cover.
func (r *rates) recent(now clock.Time) (sum counts, seconds float64) {
	last := int64(now) / int64(r.slot)
	first := max(0, last-rateSlots)
	for n := first; n < last; n++ {
		c := &r.slots[n%int64(len(r.slots))]
		if c.slot != n {
			continue
		}
		sum.tokens += c.tokens
		sum.prompts += c.prompts
		sum.arrivals += c.arrivals
		for i, n := range c.ended {
			sum.ended[i] += n
		}
	}
	return sum, max(1, float64(last-first)) * r.slot.Seconds()
}

// latencies are the times of the last minute in buckets whose middles are within 3.2 % of their values.
type latencies struct {
	length  clock.Duration // the simulated length of a second
	seconds [minute]second
	sum     [buckets]uint32
	newest  int64 // the second that passes
}

type second struct {
	number int64
	counts [buckets]uint32
	used   bool
}

const (
	fine    = 16                  // buckets to a factor of two
	shift   = 26                  // the first bucket ends at 2^26 ps, 67 µs
	buckets = (62 - shift) * fine // up to 53 days
)

// bucket is the bucket of a time in picoseconds.
func bucket(ps int64) int {
	if ps < 1<<shift {
		return 0
	}
	exponent := bits.Len64(uint64(ps)) - 1
	return min(buckets-1, (exponent-shift)*fine+int(ps>>(exponent-4)&(fine-1)))
}

// middle is the middle of a bucket in seconds.
func middle(i int) float64 {
	return math.Ldexp(1+(float64(i%fine)+0.5)/fine, shift+i/fine) / float64(clock.Second)
}

// passes drops seconds that are over for a minute.
func (l *latencies) passes(at clock.Time) {
	now := int64(at) / int64(l.length)
	for n := max(l.newest+1, now-minute+1); n <= now; n++ {
		if s := &l.seconds[n%minute]; s.number != n { // otherwise it has what was reported ahead of time
			l.drop(s, n)
		}
	}
	l.newest = max(l.newest, now)
}

// drop takes what a second has off the sum, and gives it a new number.
func (l *latencies) drop(s *second, number int64) {
	if s.used {
		for i, n := range s.counts {
			l.sum[i] -= n
		}
		s.counts, s.used = [buckets]uint32{}, false
	}
	s.number = number
}

// add counts n times of so many picoseconds at an instant.
func (l *latencies) add(at clock.Time, ps int64, n int) {
	number := int64(at) / int64(l.length)
	s := &l.seconds[number%minute]
	if s.number != number {
		if number < s.number {
			return // older than a minute
		}
		l.drop(s, number)
	}
	b := bucket(ps)
	s.counts[b] += uint32(n)
	s.used = true
	l.sum[b] += uint32(n)
}

// latest sums up the latest seconds before an instant, with the one that passes.
func (l *latencies) latest(now clock.Time, seconds int) *[buckets]uint32 {
	sum := new([buckets]uint32)
	last := int64(now) / int64(l.length)
	for n := max(0, last-int64(seconds)); n <= last; n++ {
		if s := &l.seconds[n%minute]; s.used && s.number == n {
			for i, n := range s.counts {
				sum[i] += n
			}
		}
	}
	return sum
}

// quantiles returns the percentiles 50, 90 and 99 in seconds; there are none of nothing.
func quantiles(counts *[buckets]uint32) []float64 {
	var total uint64
	for _, n := range counts {
		total += uint64(n)
	}
	if total == 0 {
		return nil
	}
	list := make([]float64, 0, 3)
	for _, p := range [...]float64{0.5, 0.9, 0.99} {
		rank, seen := uint64(math.Ceil(p*float64(total))), uint64(0)
		for i, n := range counts {
			if seen += uint64(n); seen >= max(1, rank) {
				list = append(list, middle(i))
				break
			}
		}
	}
	return list
}

// ring keeps the latest values.
type ring[T any] struct {
	values []T
	next   int
}

func newRing[T any](n int) ring[T] { return ring[T]{values: make([]T, 0, n)} }

// push adds a value in place of the oldest.
func (r *ring[T]) push(v T) {
	if len(r.values) < cap(r.values) {
		r.values = append(r.values, v)
		return
	}
	r.values[r.next] = v
	r.next = (r.next + 1) % len(r.values)
}

// all returns the values in order.
func (r *ring[T]) all() []T {
	return append(append(make([]T, 0, len(r.values)), r.values[r.next:]...), r.values[:r.next]...)
}
