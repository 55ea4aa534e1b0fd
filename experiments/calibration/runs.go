package calibration

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/experiments/validation"
)

// runMetrics are the metrics of runs that the fit uses, with their standard deviations as fractions. Repeated runs differ
// by about 1 % in time per token and by 2 to 5 % in time to first token, and effects outside the model add as much.
var runMetrics = []struct {
	name   string
	spread float64
}{{"ttft_mean_ms", 0.04}, {"tpot_mean_ms", 0.02}}

// FitRuns fits constants to measured runs of one GPU. Runs that no scenario expresses and overloaded runs are not used.
// The function keep selects among the others; nil keeps all.
func FitRuns(
	ctx context.Context, ref *validation.Reference, cases []*validation.Case, keep func(*validation.Row) bool, o Options,
) (*Result, error) {
	steady := func(r *validation.Row) bool { return !r.Overloaded() && (keep == nil || keep(r)) }
	cases, gpu, moe, frontend, err := usable(cases, steady, o.ByGPU)
	if err != nil {
		return nil, err
	}
	parameters, err := Choose(o.Fit, moe, true)
	if err != nil {
		return nil, err
	}
	if o.ByGPU {
		parameters = slices.DeleteFunc(parameters, func(p Parameter) bool { return !p.host })
	}
	p := &problem{parameters: parameters, progress: o.Progress}
	score := func(ctx context.Context, x []float64) (*validation.Report, error) {
		rec := record(gpu, parameters, x, frontend)
		delay := -1.0
		if f := rec.Calibration.FrontendMilliseconds; f != nil {
			delay = *f / 1e3
		}
		list, err := validation.Corrected(cases, rec.Correct, delay)
		if err != nil {
			return nil, err
		}
		return validation.Run(ctx, ref, list, steady, validation.Options{Jobs: o.Jobs, Check: o.Check})
	}
	first, err := score(ctx, make([]float64, len(parameters)))
	if err != nil {
		return nil, err
	}
	names := p.observe(first)
	if o.ByGPU {
		p.groupByGPU(first, names)
	}
	if len(p.observations) == 0 {
		return nil, fmt.Errorf("no run of %s has a metric that the fit uses (want ttft_mean_ms or tpot_mean_ms)", gpu)
	}
	p.residuals = func(ctx context.Context, x []float64) ([]float64, error) {
		r, err := score(ctx, x)
		if err != nil {
			return nil, err
		}
		return p.read(r, names)
	}
	f, err := p.solve(ctx)
	if err != nil {
		return nil, err
	}
	return p.result(f, gpu, frontend, names, fmt.Sprintf("%d runs of %s", len(names), ref.Name)), nil
}

// groupByGPU groups the observations by GPU.
func (p *problem) groupByGPU(r *validation.Report, names []string) {
	gpus := map[string]string{}
	var order []string
	for i := range r.Rows {
		gpus[r.Rows[i].RunID] = r.Rows[i].GPU
	}
	p.left = make([]int, len(p.observations))
	for i, o := range p.observations {
		g := gpus[names[o.run]]
		if !slices.Contains(order, g) {
			order = append(order, g)
		}
		p.left[i] = slices.Index(order, g)
	}
}

// usable are the cases that can be fitted, and the GPU that they are all of, or with several the GPUs.
func usable(cases []*validation.Case, keep func(*validation.Row) bool, several bool) (list []*validation.Case, gpu string, moe bool, frontend float64, err error) {
	var gpus []string
	for _, c := range cases {
		u := c.Setup()
		if u == nil || !slices.ContainsFunc(c.Rows, keep) {
			continue
		}
		list = append(list, c)
		if g := u.Deployment.GPU.Name; !slices.Contains(gpus, g) {
			gpus = append(gpus, g)
		}
		moe = moe || u.Deployment.LLM.Experts > 0
		if frontend == 0 {
			frontend = u.Config.Frontend.Seconds() * 1e3
		}
	}
	switch len(gpus) {
	case 0:
		return nil, "", false, 0, fmt.Errorf("there is no run to fit (want measured runs that a scenario can express and that are not overloaded)")
	case 1:
		return list, gpus[0], moe, frontend, nil
	}
	if several {
		slices.Sort(gpus)
		return list, strings.Join(gpus, ", "), moe, frontend, nil
	}
	return nil, "", false, 0, fmt.Errorf("the runs are of %d GPUs, %s (want one: select it with --only gpu=%s)",
		len(gpus), strings.Join(gpus, ", "), gpus[0])
}

// observe adds an observation for each metric of the scored rows, and returns the names of the rows.
func (p *problem) observe(r *validation.Report) []string {
	var names []string
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Status != validation.Scored {
			continue
		}
		run := len(names)
		for _, m := range runMetrics {
			if row.Error(m.name) != nil {
				p.observations = append(p.observations, observation{run: run, metric: m.name, spread: m.spread})
			}
		}
		if n := len(p.observations); n > 0 && p.observations[n-1].run == run {
			names = append(names, row.RunID)
		}
	}
	return names
}

// read returns the residuals of a report, in the order of the observations.
func (p *problem) read(r *validation.Report, names []string) ([]float64, error) {
	byName := map[string]*validation.Result{}
	for i := range r.Rows {
		byName[r.Rows[i].RunID] = &r.Rows[i]
	}
	list := make([]float64, len(p.observations))
	for i, o := range p.observations {
		e := byName[names[o.run]].Error(o.metric)
		if e == nil {
			return nil, fmt.Errorf("calibration: %s has no %s with the constants of this step", names[o.run], o.metric)
		}
		list[i] = math.Log1p(*e)
	}
	return list, nil
}
