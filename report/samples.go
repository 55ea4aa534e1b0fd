package report

import (
	"math"
	"math/bits"
	"slices"
	"sort"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// ExactSamples is the number of completed requests up to which percentiles are exact.
const ExactSamples = 1 << 20

// sample is what the per-request metrics are made from.
type sample struct {
	arrival clock.Time
	ttft    clock.Duration
	e2e     clock.Duration
	queue   clock.Duration
	flight  clock.Duration // from first admission to release
	tokens  int32
	waited  bool // an iteration was composed without it before it was admitted
	replica uint16
}

// Per-request metrics.
const (
	ttft = iota
	tpot
	e2e
	queue
	streamTPS
	userTPS
	flightTPS
	metrics
)

// value is a metric of the sample, in picoseconds or in tokens per second. ok is false where the
// request has none.
func (s *sample) value(metric int) (v float64, ok bool) {
	perSecond := func(d clock.Duration) (float64, bool) {
		return float64(s.tokens) / d.Seconds(), d > 0
	}
	switch metric {
	case ttft:
		return float64(s.ttft), true
	case tpot:
		return float64(s.e2e-s.ttft) / float64(s.tokens-1), s.tokens > 1
	case e2e:
		return float64(s.e2e), true
	case queue:
		return float64(s.queue), true
	case streamTPS:
		v, ok = perSecond(s.e2e - s.ttft)
		return v, ok && s.tokens > 1
	case userTPS:
		return perSecond(s.e2e)
	default:
		return perSecond(s.flight)
	}
}

// sketchScale is how many units of a sketch make one of a speed, so that its integers are
// fine enough.
const sketchScale = 1e6

// samples keeps all of them while they are few. After that the collector folds them into a sketch
// for each metric and time bucket of arrival.
type samples struct {
	chunks [][]sample
	n      int
}

type sketch [metrics]Histogram

const sampleChunk = 1 << 14

func (s *samples) add(x *sample) {
	if s.n%sampleChunk == 0 {
		s.chunks = append(s.chunks, make([]sample, sampleChunk))
	}
	s.chunks[s.n/sampleChunk][s.n%sampleChunk] = *x
	s.n++
}

// each visits the samples in the order in which they came.
func (s *samples) each(visit func(*sample)) {
	left := s.n
	for _, chunk := range s.chunks {
		for i := range chunk[:min(left, sampleChunk)] {
			visit(&chunk[i])
		}
		left -= len(chunk)
	}
}

func (k *sketch) add(x *sample) {
	k[ttft].Record(int64(x.ttft), 1)
	k[e2e].Record(int64(x.e2e), 1)
	k[queue].Record(int64(x.queue), 1)
	if x.tokens > 1 {
		k[tpot].Record(int64(x.e2e-x.ttft)/int64(x.tokens-1), 1)
	}
	for m := streamTPS; m <= flightTPS; m++ {
		if v, ok := x.value(m); ok {
			k[m].Record(int64(min(v*sketchScale, math.MaxInt64/2)), 1)
		}
	}
}

// distribution describes values, which are not negative, multiplied by scale. It overwrites
// them. failures count as infinite: percentiles that fall among them are nil, and so are mean, sd and max if there
// are any.
func distribution(values []float64, scale float64, failures int64) Distribution {
	d := Distribution{N: int64(len(values)) + failures}
	if len(values) == 0 {
		return d
	}
	if failures == 0 {
		squares, center := 0.0, mean(values)
		for _, v := range values {
			squares += (v - center) * (v - center)
		}
		d.Mean = number(center * scale)
		d.SD = number(math.Sqrt(squares/float64(len(values))) * scale)
	}
	q := percentiles(values, int(d.N), .5, .9, .95, .99, .999, 1)
	for i, to := range []**float64{&d.P50, &d.P90, &d.P95, &d.P99, &d.P999, &d.Max} {
		if v := q[i]; !math.IsInf(v, 0) {
			*to = number(v * scale)
		}
	}
	return d
}

// percentiles are quantiles of values and of n-len(values) infinite ones, interpolated linearly between
// ranks. The quantiles asked for are in ascending order. It overwrites values.
func percentiles(values []float64, n int, quantiles ...float64) []float64 {
	ranks := make([]int, 0, 2*len(quantiles))
	for _, q := range quantiles {
		rank := int(float64(n-1) * q)
		ranks = append(ranks, rank, min(rank+1, n-1))
	}
	found := make([]float64, len(ranks))
	known := 0
	for known < len(ranks) && ranks[known] < len(values) {
		known++
	}
	for i := range found[known:] {
		found[known+i] = math.Inf(1)
	}
	slices.Sort(ranks[:known])
	ordered(values, ranks[:known], found)
	at := make([]float64, len(quantiles))
	for i, q := range quantiles {
		where := float64(n-1) * q
		rank := int(where)
		lo := found[sort.SearchInts(ranks, rank)]
		at[i] = lo
		if frac := where - float64(rank); frac > 0 && !math.IsInf(lo, 1) {
			at[i] += frac * (found[sort.SearchInts(ranks, rank+1)] - lo)
		}
	}
	return at
}

// ordered finds the values of the given ranks, which ascend and count from 0. It sorts few values. Of many it
// looks, in two passes, only for those that lie near the wanted ones. It overwrites values.
func ordered(values []float64, ranks []int, found []float64) {
	const few, parts = 1 << 11, 1 << 12
	if len(ranks) == 0 {
		return
	}
	if len(values) <= few {
		slices.Sort(values)
		for i, rank := range ranks {
			found[i] = values[rank]
		}
		return
	}
	// Numbers that are not negative are in the order of their bits.
	least, most := values[0], values[0]
	for _, v := range values {
		if v < least {
			least = v
		} else if v > most {
			most = v
		}
	}
	base := math.Float64bits(least)
	shift := max(0, bits.Len64(math.Float64bits(most)-base)-12)
	var counts [parts]int
	for _, v := range values {
		counts[(math.Float64bits(v)-base)>>shift&(parts-1)]++
	}
	var wanted [parts]bool
	inner := make([]int, len(ranks)) // ranks among the values of wanted parts
	next, below, skipped := 0, 0, 0
	for part, n := range counts {
		for below += n; next < len(ranks) && ranks[next] < below; next++ {
			inner[next] = ranks[next] - skipped
			wanted[part] = true
		}
		if !wanted[part] {
			skipped += n
		}
	}
	near := values[:0]
	for _, v := range values {
		if wanted[(math.Float64bits(v)-base)>>shift&(parts-1)] {
			near = append(near, v)
		}
	}
	if len(near) <= len(values)/2 {
		ordered(near, inner, found)
		return
	}
	slices.Sort(near)
	for i, rank := range inner {
		found[i] = near[rank]
	}
}

// distribution describes what the histogram recorded, multiplied by scale.
func (h *Histogram) distribution(scale float64) Distribution {
	d := Distribution{N: int64(h.n)}
	if h.n == 0 {
		return d
	}
	quantile := func(q float64) *float64 { return number(h.Quantile(q) * scale) }
	d.Mean, d.SD = number(h.Mean()*scale), number(h.SD()*scale)
	d.P50, d.P90, d.P95, d.P99, d.P999 = quantile(.5), quantile(.9), quantile(.95), quantile(.99), quantile(.999)
	d.Max = number(float64(h.max) * scale)
	return d
}

// number is a pointer to v, or nil if v is not finite: JSON has no such numbers.
func number(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// ratio is a/b, or nil if b is 0.
func ratio(a, b float64) *float64 { return number(a / b) }

// newSample takes the sample from the record of a completed request: the user's latencies count from the
// first attempt, the waits in the system are those of the last.
func newSample(rec *event.Record) sample {
	_, sent := rec.Request.First()
	return sample{
		arrival: sent,
		ttft:    rec.ClientFirst.Sub(sent),
		e2e:     rec.ClientLast.Sub(sent),
		queue:   rec.Scheduled.Sub(rec.Queued),
		flight:  rec.Released.Sub(rec.Scheduled),
		tokens:  rec.Tokens,
		waited:  rec.PassedOver,
		replica: uint16(rec.Replica),
	}
}
