package report

import (
	"math"
	"reflect"
	"slices"
	"strings"

	"clifftop/report/stats"
)

// ofReplica is the path of a replica's number as if it were the whole's.
func ofReplica(path string) (of string, is bool) {
	rest, is := strings.CutPrefix(path, "replicas.")
	if !is {
		return path, false
	}
	_, of, _ = strings.Cut(rest, ".")
	return of, true
}

// number pools a number that all runs know.
func (p *pool) number(path string, of []reflect.Value, to reflect.Value) {
	xs := make([]float64, len(of))
	for i, v := range of {
		xs[i] = v.Float()
	}
	set := func(v float64) { to.Set(reflect.ValueOf(stats.Finite(v))) }
	pooling := pooledMetric(path).Pool
	switch pooling {
	case Max:
		set(slices.Max(xs))
		return
	case RootMeanSquare:
		squares := 0.0
		for _, x := range xs {
			squares += x * x
		}
		set(math.Sqrt(squares / float64(len(xs))))
		return
	case Sum:
		sum := 0.0
		for _, x := range xs {
			sum += x
		}
		set(sum)
		return
	}
	weights := p.weights(path, pooling)
	if weights == nil {
		center, half := stats.MeanInterval(xs, stats.Confidence)
		set(center)
		p.interval(path, center-half, center+half)
		return
	}
	parts := make([]float64, len(xs))
	for i, x := range xs {
		parts[i] = x * weights[i]
	}
	if pooling == ShareOfRequests {
		share, low, high := stats.ShareInterval(parts, weights, stats.Confidence)
		set(share)
		p.interval(path, low, high)
		return
	}
	ratio, half := stats.RatioInterval(parts, weights, stats.Confidence)
	set(ratio)
	p.interval(path, ratio-half, ratio+half)
}

// weights are the weights of the runs; nil for the plain mean. Traffic phases have the same length in every run.
// Replicas have weights for rates only.
func (p *pool) weights(path string, pooling Pooling) []float64 {
	of := pooling.weight()
	if of == nil || strings.HasPrefix(path, "stages.") {
		return nil
	}
	if _, is := ofReplica(path); is && !strings.Contains(path, "_per_s") && pooling != PerGPUHour {
		return nil
	}
	weights := make([]float64, len(p.runs))
	for i, r := range p.runs {
		if weights[i] = of(r); !(weights[i] > 0) {
			return nil
		}
	}
	return weights
}

// perWindow returns the number of events in the window of a rate per second.
func perWindow(rate *float64, s *Summary) float64 {
	if rate == nil {
		return 0
	}
	return *rate * (s.Window.EndS - s.Window.StartS)
}

// arrivals is the number of requests that were offered in the window.
func (s *Summary) arrivals() float64 {
	return math.Round(perWindow(s.Throughput.OfferedRequestsPerS, s))
}

// interval notes an interval. Latencies and numbers in the system have none under overload.
func (p *pool) interval(path string, low, high float64) {
	if _, is := ofReplica(path); is || math.IsInf(high-low, 0) || math.IsNaN(high-low) {
		return // replicas have none: there are many of them
	}
	if p.to.Window.Unsettled() && !strings.HasPrefix(path, "stages.") && pooledMetric(path).Unbounded {
		return
	}
	p.ci[path] = [2]float64{low, high}
}

// tail notes how many samples lie beyond the percentiles, in all runs, and how few any run has.
func (p *pool) tail(path string, of []reflect.Value, d *Distribution) {
	d.fewest = math.MaxInt64
	var n int64
	for _, v := range of {
		n += v.Addr().Interface().(*Distribution).N
		d.fewest = min(d.fewest, v.Addr().Interface().(*Distribution).N)
	}
	if _, is := ofReplica(path); is || n == 0 || strings.HasPrefix(path, "stages.") {
		return
	}
	for _, q := range tailQuantiles {
		p.tails[JoinPath(path, q.name)] = beyondQuantile(n, q.q)
	}
}

// tailQuantiles are the percentiles that are given with the number of samples beyond them.
var tailQuantiles = [...]struct {
	name string
	q    float64
}{{"p90", .9}, {"p95", .95}, {"p99", .99}, {"p99_9", .999}}

func beyondQuantile(n int64, q float64) int64 { return n - int64(math.Ceil(float64(n)*q-1e-9)) }
