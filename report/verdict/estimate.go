package verdict

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/stats"
)

// estimate is a mean difference with its standard error, which is not known without several runs or a bootstrap; or the
// median of differences.
type estimate struct {
	center, se float64 // of a median, se is the range of the differences: 0 if all are equal
	freedom    float64 // degrees of freedom of the standard error
	known      bool
	sorted     []float64 // the differences, of a median
}

// leastForMedian is the smallest number of runs whose range covers the median with 95 % probability.
const leastForMedian = 6

func paired(differences []float64) estimate {
	n := float64(len(differences))
	se := stats.SD(differences) / math.Sqrt(n)
	return estimate{center: stats.Mean(differences), se: se, freedom: n - 1, known: n > 1}
}

// median estimates the median of differences with an interval by the sign test, for any distribution.
func median(differences []float64) estimate {
	sorted := slices.Sorted(slices.Values(differences))
	x := estimate{center: middle(sorted), se: sorted[len(sorted)-1] - sorted[0], sorted: sorted,
		known: len(sorted) >= leastForMedian}
	if math.IsNaN(stats.Mean(differences)) {
		x.center, x.known = math.NaN(), false
	}
	return x
}

// middle is the median of a sorted list.
func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// interval is the 95 % confidence interval, by Student's t or from order statistics.
func (x estimate) interval() (low, high float64) {
	if x.sorted != nil {
		_, low, high = stats.QuantileOrder(x.sorted, .5, stats.Confidence)
		return low, high
	}
	half := x.se * stats.Rounded(x.t().Quantile((1+stats.Confidence)/2))
	return x.center - half, x.center + half
}

func (x estimate) t() distuv.StudentsT { return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: x.freedom} }

// chance is how likely a difference so far beyond a margin is, on either side, where there is none beyond it: by
// Student's t, or by the sign test.
func (x estimate) chance(margin float64) float64 {
	beyond := math.Abs(x.center) - margin
	switch {
	case !(beyond > 0):
		return 1
	case x.sorted != nil:
		return x.signs(margin)
	case x.se == 0:
		return 0
	}
	return stats.Rounded(2 * x.t().Survival(beyond/x.se))
}

// signs is the chance of so many differences beyond the margin on the side of the median, or more, if half of them are.
func (x estimate) signs(margin float64) float64 {
	n := 0
	for _, d := range x.sorted {
		if d > margin && x.center > 0 || d < -margin && x.center < 0 {
			n++
		}
	}
	count := distuv.Binomial{N: float64(len(x.sorted)), P: .5}
	return min(1, stats.Rounded(2*count.Survival(float64(n-1))))
}

// evidence has the runs of the baseline and of each variant, in pairs.
type evidence struct {
	runs      [][]*report.Summary
	states    []State
	random    bool // the runs of the baseline differ
	bootstrap *Bootstrap
}

// values are a metric's in each run of a variant, or of the baseline, number 0; NaN where unknown. What grows with the
// length of the run is unknown under overload.
func (e *evidence) values(m metric, variant int) []float64 {
	xs := m.values(e.runs[variant])
	if m.endless && e.states[variant].Overloaded() {
		for i := range xs {
			xs[i] = math.NaN()
		}
	}
	return xs
}

func (e *evidence) byMedian(m metric, variants ...int) bool {
	return m.endless && slices.ContainsFunc(variants, func(i int) bool { return e.states[i].ByMedian })
}

// center is the mean of the values of a variant, or their median.
func (e *evidence) center(m metric, variant int, against ...int) float64 {
	xs := e.values(m, variant)
	if e.byMedian(m, append(against, variant)...) {
		return median(xs).center
	}
	return stats.Mean(xs)
}

// difference estimates a difference of a metric between a variant and the baseline.
func (e *evidence) difference(m metric, variant int, of func(base, variant float64) float64) estimate {
	x := e.between(m, 0, variant, of)
	x.known = x.known && e.random
	if b := e.bootstrap; b != nil {
		x.known = false
		if b.Resamples > 0 {
			blocks := float64(b.Blocks)
			x.se = stats.SD(pairs(m.values(b.Runs[0]), m.values(b.Runs[variant]), of)) * math.Sqrt(blocks/(blocks-1))
			x.freedom = blocks - 1
			x.known = !math.IsNaN(x.se)
		}
	}
	return x
}

// between estimates a difference of a metric between two variants, by their runs.
func (e *evidence) between(m metric, base, variant int, of func(base, variant float64) float64) estimate {
	before := e.values(m, base)
	list := pairs(before, e.values(m, variant), of)
	if !e.byMedian(m, base, variant) {
		return paired(list)
	}
	if typical := median(before).center; slices.Min(before) > 0 { // each as a share of the baseline's own hour
		for i := range list {
			list[i] *= typical / before[i]
		}
	}
	return median(list)
}

// pairs are the differences of values that belong together.
func pairs(base, variant []float64, of func(base, variant float64) float64) []float64 {
	list := make([]float64, len(base))
	for i := range base {
		list[i] = of(base[i], variant[i])
	}
	return list
}

// less is the difference of a variant from the baseline.
func less(base, variant float64) float64 { return variant - base }

// says describes the bootstrap in words.
func (b *Bootstrap) says() string {
	if b.Resamples == 0 {
		const least = 10
		return fmt.Sprintf("one recorded trace: its window has %d blocks of %s, five times what a request takes, too "+
			"few for intervals (want %d or more, a trace of about %s)", b.Blocks, layout.Seconds(b.BlockS), least,
			layout.Seconds(math.Ceil(1.5*least*b.BlockS)))
	}
	return fmt.Sprintf("one recorded trace: one run of each, with intervals by a moving-block bootstrap over %d "+
		"blocks of %s; they hold for traffic like this trace", b.Blocks, layout.Seconds(b.BlockS))
}
