package verdict

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/stats"
)

// estimate is a mean difference with its standard error, which is not known without several runs or a bootstrap.
type estimate struct {
	center, se float64
	freedom    float64 // degrees of freedom of the standard error
	known      bool
}

// paired is the estimate from the differences of replications.
func paired(differences []float64) estimate {
	n := float64(len(differences))
	se := stats.SD(differences) / math.Sqrt(n)
	return estimate{center: stats.Mean(differences), se: se, freedom: n - 1, known: n > 1}
}

// interval is the 95 % confidence interval, by Student's t.
func (x estimate) interval() (low, high float64) {
	half := x.se * stats.Rounded(x.t().Quantile((1+stats.Confidence)/2))
	return x.center - half, x.center + half
}

func (x estimate) t() distuv.StudentsT { return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: x.freedom} }

// chance is how likely a mean so far beyond a margin is, on either side, where there is no difference beyond it: by
// Student's t.
func (x estimate) chance(margin float64) float64 {
	beyond := math.Abs(x.center) - margin
	switch {
	case !(beyond > 0):
		return 1
	case x.se == 0:
		return 0
	}
	return stats.Rounded(2 * x.t().Survival(beyond/x.se))
}

// evidence is what differences are estimated from: the runs of the baseline and of each variant, in pairs.
type evidence struct {
	runs      [][]*report.Summary
	random    bool // the runs of the baseline differ
	bootstrap *Bootstrap
}

// difference estimates a difference of a metric between a variant and the baseline.
func (e *evidence) difference(m metric, variant int, of func(base, variant float64) float64) estimate {
	list := func(runs [][]*report.Summary) []float64 {
		base, other := m.values(runs[0]), m.values(runs[variant])
		for i := range base {
			base[i] = of(base[i], other[i])
		}
		return base
	}
	x := paired(list(e.runs))
	x.known = x.known && e.random
	if b := e.bootstrap; b != nil {
		x.known = false
		if b.Resamples > 0 {
			blocks := float64(b.Blocks)
			x.se = stats.SD(list(b.Runs)) * math.Sqrt(blocks/(blocks-1))
			x.freedom = blocks - 1
			x.known = !math.IsNaN(x.se)
		}
	}
	return x
}

// says describes the bootstrap in words.
func (b *Bootstrap) says() string {
	if b.Resamples == 0 {
		const least = 10
		return fmt.Sprintf("one recorded trace: its window has %d blocks of %s, five times what a request takes, too few "+
			"for intervals (want %d or more, a trace of about %s)", b.Blocks, layout.Seconds(b.BlockS), least,
			layout.Seconds(math.Ceil(1.5*least*b.BlockS)))
	}
	return fmt.Sprintf("one recorded trace: one run of each, with intervals by a moving-block bootstrap over %d blocks "+
		"of %s; they are about traffic like that of this trace", b.Blocks, layout.Seconds(b.BlockS))
}
