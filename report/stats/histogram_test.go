package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

func sameHistogram(t interface{ Fatalf(string, ...any) }, a, b *Histogram) {
	if a.n != b.n || a.sum != b.sum || a.min != b.min || a.max != b.max {
		t.Fatalf("n %d, %d; sum %v, %v; min %d, %d; max %d, %d", a.n, b.n, a.sum, b.sum, a.min, b.min, a.max, b.max)
	}
	for p := range a.pages {
		var x, y page
		if a.pages[p] != nil {
			x = *a.pages[p]
		}
		if b.pages[p] != nil {
			y = *b.pages[p]
		}
		if x != y {
			t.Fatalf("page %d differs", p)
		}
	}
}

func TestHistogramBuckets(t *testing.T) {
	for _, v := range []int64{0, 1, 127, 128, 129, 255, 256, 257, 511, 512, 1 << 20, 1<<20 + 8191, 1 << 62,
		math.MaxInt64} {
		p, omitted := place(v)
		lo, hi := bounds(p, int(v>>omitted)&(subs-1))
		if v < lo || v > hi {
			t.Errorf("%d is counted in [%d, %d]", v, lo, hi)
		}
		if width := hi - lo + 1; width > 1 && float64(width) > float64(lo)/128 {
			t.Errorf("%d: bucket [%d, %d] is too wide", v, lo, hi)
		}
	}
}

func TestProgressionEqualsSingleRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var whole, single, split Histogram
		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			first := rapid.Int64Range(0, 1<<rapid.IntRange(0, 50).Draw(t, "magnitude")).Draw(t, "first")
			slope := rapid.Int64Range(0, 1<<rapid.IntRange(0, 40).Draw(t, "steepness")).Draw(t, "slope")
			n := rapid.IntRange(0, 300).Draw(t, "n")
			weight := rapid.Uint64Range(0, 1000).Draw(t, "weight")
			whole.RecordProgression(first, slope, n, weight)
			for k := range n {
				single.Record(first+int64(k)*slope, weight)
			}
			cut := rapid.IntRange(0, n).Draw(t, "cut")
			split.RecordProgression(first, slope, cut, weight)
			split.RecordProgression(first+int64(cut)*slope, slope, n-cut, weight)
		}
		sameHistogram(t, &whole, &single)
		sameHistogram(t, &whole, &split)
	})
}

func TestHistogramMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var all, left, right, empty Histogram
	for i := range 10_000 {
		v := int64(math.Exp(rng.NormFloat64()*3 + 20))
		all.Record(v, 3)
		if i%3 == 0 {
			left.Record(v, 3)
		} else {
			right.Record(v, 3)
		}
	}
	left.Merge(&empty)
	left.Merge(&right)
	sameHistogram(t, &all, &left)
	var taken Histogram
	taken.Take(&left)
	taken.Take(&Histogram{})
	sameHistogram(t, &all, &taken)
}

// The stated error of a quantile is 1/256 of the value that sorting all samples gives.
func TestHistogramQuantiles(t *testing.T) {
	source := rand.NewPCG(7, 7)
	draws := map[string]func() float64{
		"lognormal":   distuv.LogNormal{Mu: 22, Sigma: 1.5, Src: source}.Rand,
		"exponential": distuv.Exponential{Rate: 1e-9, Src: source}.Rand,
		"pareto":      distuv.Pareto{Xm: 1e7, Alpha: 1.2, Src: source}.Rand,
		"small":       distuv.Uniform{Min: 0, Max: 300, Src: source}.Rand,
		"constant":    func() float64 { return 123_456_789 },
	}
	for name, draw := range draws {
		for _, n := range []int{1, 2, 10, 999, 50_000} {
			var h Histogram
			values := make([]float64, n)
			for i := range values {
				v := int64(draw())
				values[i] = float64(v)
				h.Record(v, 1)
			}
			slices.Sort(values)
			for _, q := range []float64{0, .001, .25, .5, .9, .95, .99, .999, 1} {
				want := interpolate(values, q)
				if got := h.Quantile(q); math.Abs(got-want) > want/256 {
					t.Errorf("%s, n=%d: quantile %g is %g, want %g", name, n, q, got, want)
				}
			}
			mean, sd := stat.PopMeanStdDev(values, nil)
			if got := h.Mean(); math.Abs(got-mean) > 1e-9*mean {
				t.Errorf("%s, n=%d: mean %g, want %g", name, n, got, mean)
			}
			if got := h.SD(); math.Abs(got-sd) > sd/50 {
				t.Errorf("%s, n=%d: sd %g, want %g", name, n, got, sd)
			}
		}
	}
}

// interpolate is numpy's default percentile of sorted values.
func interpolate(sorted []float64, q float64) float64 {
	at := float64(len(sorted)-1) * q
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func TestHistogramLevel(t *testing.T) {
	var h Histogram
	h.Record(0, 50)
	h.Record(3, 45)
	h.Record(8, 5)
	for q, want := range map[float64]float64{0: 0, .5: 0, .51: 3, .95: 3, .96: 8, 1: 8} {
		if got := h.Level(q); got != want {
			t.Errorf("level at %g is %g, want %g", q, got, want)
		}
	}
	var none Histogram
	if !math.IsNaN(none.Level(.5)) || !math.IsNaN(none.Quantile(.5)) || !math.IsNaN(none.Mean()) {
		t.Error("an empty histogram has no quantile and no mean")
	}
}

func BenchmarkHistogramRecord(b *testing.B) {
	var h Histogram
	v := int64(20e12)
	for b.Loop() {
		h.Record(v, 3)
		v += 1e6
	}
}

func BenchmarkHistogramProgression(b *testing.B) {
	for _, bench := range []struct {
		name  string
		slope int64
	}{{"one bucket", 1e7}, {"ten buckets", 15e9}} {
		b.Run(bench.name, func(b *testing.B) {
			var h Histogram
			for b.Loop() {
				h.RecordProgression(20e12, bench.slope, 100, 3)
			}
		})
	}
}
