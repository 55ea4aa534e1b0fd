package collect

import (
	"math"

	"clifftop/report"
	"clifftop/report/stats"
)

// Batch means. The window of one long run is cut into consecutive batches of equal length, and rates, fractions
// and means are estimated from them as from independent runs, by ratios of sums and the jackknife. Requests that wait
// in one queue are not independent, but long batches nearly are: where neighbouring batches still resemble each other
// much, they are made twice as long, until there are too few. What resemblance is left widens the interval.
const (
	mostBatches  = 30
	leastBatches = 7
	alikeBatches = .4 // autocorrelation of neighbours from which on they are too much alike
	batchSamples = 10 // requests that a batch should have
)

// fraction is a ratio of two sums, in parts of the window.
type fraction struct {
	path     string
	num, den []float64
	share    bool // of requests
}

// batchMeans gives the summary of one run intervals, if the run was steady.
func (c summariser) batchMeans(s *report.Summary, w *window) {
	n := w.to - w.from
	if st := s.Window.Stationary; st == nil || !*st || c.partial || windowFinder(c).changes() || n < mostBatches ||
		s.Latency.E2E.N < mostBatches*batchSamples {
		return
	}
	s.CI95 = map[string][2]float64{}
	for _, f := range c.fractions(w) {
		if low, high, ok := f.interval(); ok {
			s.CI95[f.path] = [2]float64{low, high}
		}
	}
	if len(s.CI95) == 0 {
		s.CI95 = nil
		return
	}
	s.CI95Method = report.ByBatchMeans
}

// fractions are what batches tell of the window, by its time buckets.
func (c summariser) fractions(w *window) []fraction {
	n := w.to - w.from
	list := []fraction{}
	add := func(path string, of func(b *bucket, d *detail, seconds float64) (num, den float64)) {
		f := fraction{path, make([]float64, n), make([]float64, n),
			report.MetricAt(path).Pool == report.ShareOfRequests}
		for i := range n {
			k := w.from + i
			seconds := min(c.line.end(k), w.end).Sub(c.line.start(k)).Seconds()
			f.num[i], f.den[i] = of(&c.line.buckets[k], &c.line.detail[k], seconds)
		}
		list = append(list, f)
	}
	rate := func(path string, of func(b *bucket) int64) {
		add(path, func(b *bucket, _ *detail, seconds float64) (float64, float64) { return float64(of(b)), seconds })
	}
	rate("throughput.offered_requests_per_s", func(b *bucket) int64 { return b.arrivals })
	rate("throughput.requests_per_s", func(b *bucket) int64 { return b.completions })
	rate("throughput.output_tokens_per_s", func(b *bucket) int64 { return b.output })
	rate("throughput.input_tokens_per_s", func(b *bucket) int64 { return b.input })
	add("system.error_rate", func(b *bucket, _ *detail, _ float64) (float64, float64) {
		return float64(b.failures), float64(b.arrivals)
	})
	add("system.busy_fraction", func(b *bucket, _ *detail, seconds float64) (float64, float64) {
		return b.busy.Float64() / 1e15, seconds * float64(c.opts.Replicas)
	})
	if c.opts.SLO != nil {
		rate("goodput.requests_per_s", func(b *bucket) int64 { return b.good })
		add("goodput.attainment", func(b *bucket, _ *detail, _ float64) (float64, float64) {
			return float64(b.good), float64(b.arrivals)
		})
	}
	for l, name := range [...]string{inSystem: "in_system", waiting: "queue_depth", running: "running",
		decoding: "decoding"} {
		add("concurrency."+name+".mean", func(_ *bucket, d *detail, seconds float64) (float64, float64) {
			if h := &d.levels[l]; h.Count() > 0 {
				return h.Mean() * seconds, seconds
			}
			return 0, seconds
		})
	}
	add("latency_ms.itl.mean", func(_ *bucket, d *detail, _ float64) (float64, float64) {
		return d.itl.Sum().Float64() * 1e-12, float64(d.itl.Count())
	})
	return append(list, c.latencyFractions(w)...)
}

// latencyFractions are the sums of latencies over the requests that arrived in a bucket, in milliseconds, and their
// number.
func (c summariser) latencyFractions(w *window) []fraction {
	list := make([]fraction, len(latencyNames))
	for i, name := range latencyNames {
		list[i] = fraction{path: "latency_ms." + name + ".mean", num: make([]float64, w.to-w.from),
			den: make([]float64, w.to-w.from)}
	}
	if c.folded {
		for k := w.from; k < w.to; k++ {
			if sk := c.line.detail[k].sketch; sk != nil {
				for i := range list {
					list[i].num[k-w.from], list[i].den[k-w.from] = sk[i].Sum().Float64()*1e-9,
						float64(sk[i].Count())
				}
			}
		}
		return list
	}
	type sums struct{ n, gaps, first, gap, whole, wait float64 }
	all := make([]sums, w.to-w.from)
	var k cursor
	c.kept.in(w.start, w.until, func(x *sample) {
		if x.arrival < k.start || x.arrival >= k.end { // most end in the order in which they arrived
			i := min(c.line.index(x.arrival), w.to-1)
			k = cursor{i: i - w.from, start: c.line.start(i), end: c.line.end(i)}
		}
		b := &all[k.i]
		b.n++
		b.first += float64(x.ttft) * 1e-9
		b.whole += float64(x.e2e) * 1e-9
		b.wait += float64(x.queue) * 1e-9
		if x.tokens > 1 {
			b.gaps++
			b.gap += x.gap() * 1e-9
		}
	})
	for i := range all {
		b := &all[i]
		list[ttft].num[i], list[tpot].num[i], list[e2e].num[i], list[queue].num[i] = b.first, b.gap, b.whole, b.wait
		list[ttft].den[i], list[tpot].den[i], list[e2e].den[i], list[queue].den[i] = b.n, b.gaps, b.n, b.n
	}
	return list
}

// interval is the confidence interval of the ratio. ok is false where no number of batches makes them independent.
func (f *fraction) interval() (low, high float64, ok bool) {
	for k := mostBatches; k >= leastBatches; k /= 2 {
		num, den, values := f.batches(k)
		r := lagOne(values) + 1/float64(k)
		if math.IsNaN(r) || r >= alikeBatches {
			continue
		}
		ratio, half := stats.RatioInterval(num, den, stats.Confidence)
		half *= alikeness(r)
		if f.share {
			low, high = stats.WidenShare(num, den, ratio, half, stats.Confidence)
			return low, high, true
		}
		return ratio - half, ratio + half, !math.IsInf(half, 0) && !math.IsNaN(half)
	}
	return 0, 0, false
}

// batches joins neighbouring buckets to k batches.
func (f *fraction) batches(k int) (num, den, values []float64) {
	num, den, values = make([]float64, k), make([]float64, k), make([]float64, k)
	for i := range f.num {
		j := i * k / len(f.num)
		num[j] += f.num[i]
		den[j] += f.den[i]
	}
	for j := range values {
		values[j] = num[j] / den[j]
	}
	return num, den, values
}

// alikeness returns the factor by which autocorrelation r of neighbours widens the interval of a mean, compared with
// independent values, if each value depends only on the one before (AR(1)): √((1+r)/(1-r)). (A. Tafazzoli and J.
// Wilson, Skart, IIE Transactions 43, 2011.)
func alikeness(r float64) float64 { return math.Sqrt((1 + max(0, r)) / (1 - max(0, r))) }

// lagOne is the autocorrelation of neighbours; 0 for values that are all alike. Of n independent values it is -1/n on
// average.
func lagOne(values []float64) float64 {
	center := stats.Mean(values)
	var sum, squares float64
	for i, v := range values {
		squares += (v - center) * (v - center)
		if i > 0 {
			sum += (v - center) * (values[i-1] - center)
		}
	}
	if squares <= 1e-18*center*center*float64(len(values)) {
		return 0
	}
	return sum / squares
}
