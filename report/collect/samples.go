package collect

import (
	"math"
	"slices"

	"clifftop/report/stats"
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

// latencyNames are the names in the catalogue of the metrics that are latencies.
var latencyNames = [...]string{ttft: "ttft", tpot: "tpot", e2e: "e2e", queue: "queue"}

// latencyNamed is the metric with a name of the catalogue; -1 if it is not measured per request.
func latencyNamed(name string) int { return slices.Index(latencyNames[:], name) }

// value is a metric of the sample, in picoseconds or in tokens per second. ok is false where the request has none.
func (s *sample) value(metric int) (v float64, ok bool) {
	switch metric {
	case ttft:
		v = float64(s.ttft)
	case tpot:
		v = s.gap()
	case e2e:
		v = float64(s.e2e)
	case queue:
		v = float64(s.queue)
	case streamTPS:
		v = s.stream()
	case userTPS:
		v = s.perSecond(s.e2e)
	default:
		v = s.perSecond(s.flight)
	}
	return v, !math.IsNaN(v)
}

// gap is the mean time between two tokens, in picoseconds; NaN of a single token.
func (s *sample) gap() float64 {
	if s.tokens <= 1 {
		return math.NaN()
	}
	return float64(s.e2e-s.ttft) / float64(s.tokens-1)
}

// stream is the speed from the first token on; NaN of a single token.
func (s *sample) stream() float64 {
	if s.tokens <= 1 {
		return math.NaN()
	}
	return s.perSecond(s.e2e - s.ttft)
}

// perSecond is the speed of all tokens in a time; NaN in none.
func (s *sample) perSecond(d clock.Duration) float64 {
	if d <= 0 {
		return math.NaN()
	}
	return float64(s.tokens) / d.Seconds()
}

// sketchScale is how many units of a sketch make one of a speed, so that its integers are
// fine enough.
const sketchScale = 1e6

// samples keeps all samples while they are few. After that the collector folds them into a sketch
// for each metric and time bucket of arrival.
type samples struct {
	chunks [][]sample
	n      int
}

type sketch [metrics]stats.Histogram

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

// in visits the samples that arrived from start on and before until, in the order in which they came.
func (s *samples) in(start, until clock.Time, visit func(*sample)) {
	s.each(func(x *sample) {
		if x.arrival >= start && x.arrival < until {
			visit(x)
		}
	})
}

// columns are all metrics of the samples that arrived from start on and before until, in the order in which they came.
func (s *samples) columns(start, until clock.Time) *[metrics][]float64 {
	var columns [metrics][]float64
	for m := range columns {
		columns[m] = make([]float64, 0, s.n)
	}
	add := func(m int, v float64) {
		if !math.IsNaN(v) {
			columns[m] = append(columns[m], v)
		}
	}
	s.in(start, until, func(x *sample) {
		add(ttft, float64(x.ttft))
		add(tpot, x.gap())
		add(e2e, float64(x.e2e))
		add(queue, float64(x.queue))
		add(streamTPS, x.stream())
		add(userTPS, x.perSecond(x.e2e))
		add(flightTPS, x.perSecond(x.flight))
	})
	return &columns
}

// split divides the samples into n parts, in their order; part says which one a sample is in, or −1 for none.
func (s *samples) split(n int, part func(*sample) int) []samples {
	list := make([]samples, n)
	s.each(func(x *sample) {
		if i := part(x); i >= 0 && i < n {
			list[i].add(x)
		}
	})
	return list
}

func (k *sketch) add(x *sample) {
	k.latencies(x)
	for m := streamTPS; m <= flightTPS; m++ {
		if v, ok := x.value(m); ok {
			k[m].Record(int64(min(v*sketchScale, math.MaxInt64/2)), 1)
		}
	}
}

// latencies adds the metrics that an objective can limit.
func (k *sketch) latencies(x *sample) {
	k[ttft].Record(int64(x.ttft), 1)
	k[e2e].Record(int64(x.e2e), 1)
	k[queue].Record(int64(x.queue), 1)
	if x.tokens > 1 {
		k[tpot].Record(int64(x.e2e-x.ttft)/int64(x.tokens-1), 1)
	}
}

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

// reservoir keeps samples up to a number; beyond it they are folded into sketches.
type reservoir struct {
	kept   samples
	exact  int
	folded bool
}
