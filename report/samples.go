package report

import (
	"math"

	"clifftop/sim"
	"clifftop/sim/clock"
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

// distribution describes values multiplied by scale. It changes the order of values. failures count as
// infinite: percentiles that fall among them are nil, and so are mean, sd and max if there are any.
func distribution(values []float64, scale float64, failures int64) Distribution {
	d := Distribution{N: int64(len(values)) + failures}
	if len(values) == 0 {
		return d
	}
	if failures == 0 {
		sum, squares := 0.0, 0.0
		for _, v := range values {
			sum += v
		}
		mean := sum / float64(len(values))
		for _, v := range values {
			squares += (v - mean) * (v - mean)
		}
		d.Mean = number(mean * scale)
		d.SD = number(math.Sqrt(squares/float64(len(values))) * scale)
	}
	rest := values // what ranks below are not in
	done := 0
	order := func(rank int) float64 {
		v := selectRank(rest, rank-done)
		rest, done = rest[rank-done:], rank
		return v
	}
	quantile := func(q float64) *float64 {
		at := float64(d.N-1) * q
		rank := int(at)
		frac := at - float64(rank)
		if rank >= len(values) || frac > 0 && rank+1 >= len(values) {
			return nil
		}
		v := order(rank)
		if frac > 0 {
			v += frac * (least(rest[1:]) - v)
		}
		return number(v * scale)
	}
	d.P50, d.P90, d.P95, d.P99, d.P999 = quantile(.5), quantile(.9), quantile(.95), quantile(.99), quantile(.999)
	if failures == 0 {
		d.Max = quantile(1)
	}
	return d
}

func least(values []float64) float64 {
	v := values[0]
	for _, w := range values[1:] {
		v = min(v, w)
	}
	return v
}

// selectRank returns the value of that rank, counted from 0, and moves all that are less before it and all
// that are greater behind it.
func selectRank(v []float64, rank int) float64 {
	lo, hi := 0, len(v)-1
	for lo < hi {
		// Hoare's partition around the median of three.
		a, b, c := v[lo], v[lo+(hi-lo)/2], v[hi]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for v[j] > pivot {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case rank <= j:
			hi = j
		case rank >= i:
			lo = i
		default:
			return v[rank]
		}
	}
	return v[rank]
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

// newSample takes the sample from the record of a completed request.
func newSample(rec *sim.Record) sample {
	return sample{
		arrival: rec.Request.Arrival,
		ttft:    rec.ClientFirst.Sub(rec.Request.Arrival),
		e2e:     rec.ClientLast.Sub(rec.Request.Arrival),
		queue:   rec.Scheduled.Sub(rec.Queued),
		flight:  rec.Released.Sub(rec.Scheduled),
		tokens:  rec.Tokens,
	}
}
