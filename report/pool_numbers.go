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

// Finite pools a number that all runs know.
func (p *pool) number(path string, of []reflect.Value, to reflect.Value) {
	whole := path
	path, _ = ofReplica(path)
	xs := make([]float64, len(of))
	for i, v := range of {
		xs[i] = v.Float()
	}
	set := func(v float64) { to.Set(reflect.ValueOf(stats.Finite(v))) }
	last := LastKey(path)
	switch weights := p.weights(whole); {
	case last == "max":
		set(slices.Max(xs))
	case last == "sd":
		squares := 0.0
		for _, x := range xs {
			squares += x * x
		}
		set(math.Sqrt(squares / float64(len(xs))))
	case strings.HasPrefix(path, "system.gpu_seconds."), strings.HasSuffix(path, "gpu_hours"):
		sum := 0.0
		for _, x := range xs {
			sum += x
		}
		set(sum)
	case weights == nil:
		center, half := stats.MeanInterval(xs, stats.Confidence)
		set(center)
		p.interval(whole, center-half, center+half)
	default:
		parts := make([]float64, len(xs))
		for i, x := range xs {
			parts[i] = x * weights[i]
		}
		if IsShareOfRequests(path) {
			share, low, high := stats.ShareInterval(parts, weights, stats.Confidence)
			set(share)
			p.interval(whole, low, high)
			return
		}
		ratio, half := stats.RatioInterval(parts, weights, stats.Confidence)
		set(ratio)
		p.interval(whole, ratio-half, ratio+half)
	}
}

// IsShareOfRequests says that a path has a share of the requests offered.
func IsShareOfRequests(path string) bool {
	return path == "goodput.attainment" || path == "system.error_rate"
}

// weights are what the numbers of a path are fractions of, in each run; nil for averages over runs.
func (p *pool) weights(path string) []float64 {
	var of func(*Summary) float64
	switch part := LastKey(path); {
	case strings.HasPrefix(path, "stages."): // they are as long in every run
	case IsShareOfRequests(path):
		of = (*Summary).arrivals
	case path == "latency_ms.itl.mean":
		of = func(s *Summary) float64 { return float64(s.Latency.ITL.N) }
	case path == "system.prefix_hit_rate":
		of = func(s *Summary) float64 { return perWindow(s.Throughput.InputTokensPerS, s) }
	case strings.HasSuffix(path, "_per_gpu_hour"):
		of = func(s *Summary) float64 { return *s.System.Replicas.GPUHours }
	case path == "goodput.work_fraction":
		of = func(s *Summary) float64 { return ComputedTokens(s) }
	case strings.HasPrefix(path, "throughput."), strings.HasSuffix(part, "_per_s"), strings.HasPrefix(path, "concurrency.") && part == "mean",
		strings.HasPrefix(path, "system.") && !strings.Contains(path, "speculative"):
		of = func(s *Summary) float64 { return s.Window.EndS - s.Window.StartS }
	}
	if of == nil {
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

// perWindow is the number of what has a rate in the window.
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
	if p.to.Window.Unsettled() && growsWithRun(path) {
		return
	}
	p.ci[path] = [2]float64{low, high}
}

// growsWithRun says that a number of an overloaded system has no limit as the run gets longer.
func growsWithRun(path string) bool {
	for _, prefix := range []string{"latency_ms.", "concurrency.", "e2e_tps_user.", "goodput."} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

// Tail notes how many samples lie beyond the percentiles, in all runs, and how few any run has.
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

// tailQuantiles are the percentiles that are told with the number of samples beyond them.
var tailQuantiles = [...]struct {
	name string
	q    float64
}{{"p90", .9}, {"p95", .95}, {"p99", .99}, {"p99_9", .999}}

// beyondQuantile is the number of samples beyond a quantile of n.
func beyondQuantile(n int64, q float64) int64 { return n - int64(math.Ceil(float64(n)*q-1e-9)) }
