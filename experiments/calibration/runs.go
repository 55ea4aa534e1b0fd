package calibration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/experiments/validation"
)

// runMetrics are the metrics of runs that the fit uses, with their standard deviations as fractions. Repeated runs
// differ by about 1 % in time per token and by 2 to 5 % in time to first token, and effects outside the model add as
// much.
var runMetrics = []struct {
	name   string
	spread float64
}{{"ttft_mean_ms", 0.04}, {"tpot_mean_ms", 0.02}}

// FitRuns fits constants to measured runs of one GPU. Runs that no scenario expresses and overloaded runs are not used.
// The function keep selects among the others; nil keeps all.
func FitRuns(
	ctx context.Context, ref *validation.Reference, cases []*validation.Case, keep func(*validation.Row) bool,
	o Options,
) (*Result, error) {
	runs, err := selectRuns(cases, keep, o.ByGPU)
	if err != nil {
		return nil, err
	}
	parameters, err := choose(o.Fit, runs.moe, true)
	if err != nil {
		return nil, err
	}
	if o.ByGPU {
		parameters = slices.DeleteFunc(parameters, func(p Parameter) bool { return !p.host })
	}
	p := &problem{parameters: parameters, progress: o.Progress}
	score := func(ctx context.Context, x []float64) (*validation.Report, error) {
		rec := record(runs.gpu, p.parameters, x, runs.frontend)
		delay := -1.0
		if f := rec.Calibration.FrontendMilliseconds; f != nil {
			delay = *f / 1e3
		}
		list, err := validation.Corrected(runs.cases, rec.Correct, delay)
		if err != nil {
			return nil, err
		}
		return validation.Run(ctx, ref, list, runs.keeps, validation.Options{Jobs: o.Jobs, Check: o.Check})
	}
	first, err := score(ctx, make([]float64, len(parameters)))
	if err != nil {
		return nil, err
	}
	names := p.observe(first, runs)
	if o.ByGPU {
		p.groupByGPU(first, names)
	}
	if len(p.observations) == 0 {
		return nil, fmt.Errorf("no run of %s has a metric that the fit uses (want ttft_mean_ms or tpot_mean_ms)",
			runs.gpu)
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
	source := fmt.Sprintf("%d runs of %s", len(names), ref.Name)
	if n := len(runs.skipped); n > 0 {
		source = fmt.Sprintf("%d of %d runs of %s", len(names), len(names)+n, ref.Name)
	}
	r := p.result(f, runs.gpu, runs.frontend, names, source, len(names))
	r.Skipped = append(r.Skipped, runs.skipped...)
	r.record.Evidence.Models = runs.models
	return r, nil
}

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

// selection is a set of runs that can be fitted.
type selection struct {
	cases    []*validation.Case
	gpu      string  // the GPU, or several separated by commas
	moe      bool    // some model is a mixture of experts
	frontend float64 // time of the API server in ms
	skipped  []Skipped
	models   []string // of the runs with a metric to fit, sorted

	keep func(*validation.Row) bool // nil keeps all
}

// overloaded is the reason for leaving out runs whose queue grows for as long as they last.
const overloaded = "overloaded: the system did not keep up with the rate"

// keeps reports whether a row is selected and was measured in a steady state.
func (s *selection) keeps(r *validation.Row) bool {
	return !r.Overloaded() && (s.keep == nil || s.keep(r))
}

// skip adds the selected rows of a case that cannot be fitted, with the reason.
func (s *selection) skip(c *validation.Case) {
	for _, row := range c.Rows {
		reason := cmp.Or(c.Bad, c.Refused)
		if reason == "" && row.Overloaded() {
			reason = overloaded
		}
		if reason != "" && (s.keep == nil || s.keep(row)) {
			s.skipped = append(s.skipped, Skipped{Run: row.ID, Reason: reason})
		}
	}
}

// selectRuns returns the cases with a scenario and a row to keep. It is an error if they are of several GPUs, unless
// several is set.
func selectRuns(cases []*validation.Case, keep func(*validation.Row) bool, several bool) (*selection, error) {
	s := &selection{keep: keep}
	var gpus []string
	for _, c := range cases {
		s.skip(c)
		u := c.Setup()
		if u == nil || !slices.ContainsFunc(c.Rows, s.keeps) {
			continue
		}
		s.cases = append(s.cases, c)
		if g := u.Pools[0].Deployment.GPU.Name; !slices.Contains(gpus, g) {
			gpus = append(gpus, g)
		}
		s.moe = s.moe || u.Pools[0].Deployment.LLM.Experts > 0
		if s.frontend == 0 {
			s.frontend = u.Pools[0].Config.Frontend.Seconds() * 1e3
		}
	}
	switch {
	case len(gpus) == 0:
		return nil, errors.New("there is no run to fit " +
			"(want measured runs that a scenario can express and that are not overloaded)" + s.hint())
	case len(gpus) > 1 && !several:
		return nil, fmt.Errorf("the runs are of %d GPUs, %s (want one: select it with --only gpu=%s)",
			len(gpus), strings.Join(gpus, ", "), gpus[0])
	}
	slices.Sort(gpus)
	s.gpu = strings.Join(gpus, ", ")
	return s, nil
}

// hint is a line with the first run that was left out; empty if there is none.
func (s *selection) hint() string {
	if len(s.skipped) == 0 {
		return ""
	}
	return fmt.Sprintf("\nhint: %s is left out: %s", s.skipped[0].Run, s.skipped[0].Reason)
}

// observe adds an observation for each metric of the scored rows, and returns the names of the rows. Rows without one
// are skipped in the selection, which gets the models of the others.
func (p *problem) observe(r *validation.Report, s *selection) []string {
	var names []string
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Status != validation.Scored {
			if !slices.ContainsFunc(s.skipped, func(k Skipped) bool { return k.Run == row.RunID }) {
				s.skipped = append(s.skipped, Skipped{Run: row.RunID, Reason: row.Reason})
			}
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
			if !slices.Contains(s.models, row.Model) {
				s.models = append(s.models, row.Model)
			}
			continue
		}
		s.skipped = append(s.skipped, Skipped{Run: row.RunID, Reason: "neither ttft_mean_ms nor tpot_mean_ms is there"})
	}
	slices.Sort(s.models)
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
