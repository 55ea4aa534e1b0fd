package catalog

import (
	"math"
	"slices"
	"sync"
)

// PredictiveMetrics are the keys of the metrics that have error bars.
var PredictiveMetrics = []string{"ttft_mean", "ttft_p99", "tpot_mean", "tpot_p99", "e2e_mean", "e2e_p99", "throughput"}

// ErrorBars are the bounds that hold half and 90 % of measured runs: measured over simulated, less 1.
type ErrorBars struct {
	Half [2]float64 `yaml:"half,flow"`
	P90  [2]float64 `yaml:"p90,flow"`
}

// Predictive are the error bars of a kind of runs. Bars of a family have no load, and bars of all runs no engine.
type Predictive struct {
	Engine string `yaml:"engine"`
	Load   string `yaml:"load"` // open, closed, or empty for both
	MoE    bool   `yaml:"moe"`
	// GPUs have measured runs of this kind. Cells is the number of models on a GPU, with a parallelism, a format and a
	// release; nothing was fitted to the Unseen ones. Runs is the number of runs.
	GPUs   []string             `yaml:"gpus,flow"`
	Cells  int                  `yaml:"cells"`
	Unseen int                  `yaml:"unseen"`
	Runs   int                  `yaml:"runs"`
	Bars   map[string]ErrorBars `yaml:"bars"`
}

// Name says which runs the bars are of.
func (p *Predictive) Name() string {
	switch {
	case p.Engine == "":
		return "all engines"
	case p.Load == "":
		return p.Engine + ", all loads"
	}
	return KindName(p.Engine, p.Load, p.MoE)
}

// KindName names a kind of runs: engine, load and kind of model.
func KindName(engine, load string, moe bool) string {
	if moe {
		return engine + ", " + load + " loop, mixture of experts"
	}
	return engine + ", " + load + " loop, dense"
}

// PredictiveFile is the form of predictive.yaml.
type PredictiveFile struct {
	// Source says which runs the bars are from.
	Source string       `yaml:"source"`
	Kinds  []Predictive `yaml:"kinds"`
}

var loadPredictive = sync.OnceValue(func() *PredictiveFile {
	var f PredictiveFile
	table.Read("predictive", &f)
	return &f
})

// PredictiveOf returns the bars of a kind, or else those of its engine, or else those of all runs.
func PredictiveOf(engine, load string, moe bool) (*Predictive, bool) {
	f := loadPredictive()
	for _, match := range []func(k *Predictive) bool{
		func(k *Predictive) bool { return k.Engine == engine && k.Load == load && k.MoE == moe },
		func(k *Predictive) bool { return k.Engine == engine && k.Load == "" },
		func(k *Predictive) bool { return k.Engine == "" },
	} {
		for i := range f.Kinds {
			if match(&f.Kinds[i]) {
				return &f.Kinds[i], true
			}
		}
	}
	return nil, false
}

// Widened returns the bars with logarithms multiplied by a factor of at least 1. No bar gets narrower.
func (b ErrorBars) Widened(factor float64) ErrorBars {
	if factor == 1 {
		return b
	}
	wide := func(bar [2]float64) [2]float64 {
		return [2]float64{min(bar[0], math.Expm1(factor*math.Log1p(bar[0]))),
			max(bar[1], math.Expm1(factor*math.Log1p(bar[1])))}
	}
	// A bar on one side of 0 also reaches 0.
	half, p90 := wide(b.Half), wide(b.P90)
	half = [2]float64{min(half[0], 0), max(half[1], 0)}
	return ErrorBars{half, [2]float64{min(p90[0], half[0]), max(p90[1], half[1])}}
}

// OwnRuns is the number of own runs from which bars are of own runs alone.
const OwnRuns = 19

// Updated returns the bars after own runs with these errors (measured over simulated, less 1). n own runs take the
// place of n of [OwnRuns] parts of the bars; from OwnRuns on the bars are those of the own runs alone.
func (b ErrorBars) Updated(own []float64) ErrorBars {
	n := len(own)
	if n == 0 {
		return b
	}
	type weighted struct{ x, w float64 }
	var list []weighted
	for _, e := range own {
		list = append(list, weighted{math.Log1p(e), 1})
	}
	const points = 100
	if n < OwnRuns {
		for i := range points {
			p := (float64(i) + 0.5) / points
			list = append(list, weighted{b.quantile(p), float64(OwnRuns-n) / points})
		}
	}
	slices.SortFunc(list, func(a, c weighted) int {
		if a.x < c.x {
			return -1
		}
		if a.x > c.x {
			return 1
		}
		return 0
	})
	total := float64(max(n, OwnRuns))
	// A further run counts on both sides, so that few runs give wide bars.
	bar := func(inside float64) [2]float64 {
		outside := total * (1 - inside) / 2
		if n >= OwnRuns {
			outside = (total+1)*(1-inside)/2 - 1
		}
		find := func(at func(int) weighted) float64 {
			mass := 0.0
			const rounding = 1e-9
			for i := range list {
				if mass += at(i).w; mass > outside+rounding {
					return at(i).x
				}
			}
			return at(len(list) - 1).x
		}
		return [2]float64{math.Expm1(find(func(i int) weighted { return list[i] })),
			math.Expm1(find(func(i int) weighted { return list[len(list)-1-i] }))}
	}
	return ErrorBars{bar(0.5), bar(0.9)}
}

// quantile interpolates the logarithm of measured over simulated between the ends of the bars.
func (b ErrorBars) quantile(p float64) float64 {
	at := []struct{ p, x float64 }{{0.05, b.P90[0]}, {0.25, b.Half[0]}, {0.75, b.Half[1]}, {0.95, b.P90[1]}}
	if p <= at[0].p {
		return math.Log1p(at[0].x)
	}
	for i := 1; i < len(at); i++ {
		if lo, hi := at[i-1], at[i]; p <= hi.p {
			t := (p - lo.p) / (hi.p - lo.p)
			return (1-t)*math.Log1p(lo.x) + t*math.Log1p(hi.x)
		}
	}
	return math.Log1p(at[len(at)-1].x)
}

// Measured reports whether runs on a GPU are among those of the bars.
func (p *Predictive) Measured(gpu string) bool { return slices.Contains(p.GPUs, gpu) }
