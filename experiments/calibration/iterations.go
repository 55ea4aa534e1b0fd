package calibration

import (
	"context"
	"fmt"
	"math"

	"clifftop/experiments/scenario"
	"clifftop/model"
)

// iterationSpread is the standard deviation of measured iterations around the model, as a fraction.
const iterationSpread = 0.04

// FitIterations fits constants to measured iterations of a scenario's deployment.
func FitIterations(
	ctx context.Context, name string, u *scenario.Setup, all []model.Iteration, o Options,
) (*Result, error) {
	d := u.Pools[0].Deployment
	parameters, err := choose(o.Fit, d.LLM.Experts > 0, false)
	if err != nil {
		return nil, err
	}
	p := &problem{parameters: parameters, progress: o.Progress}
	names := make([]string, len(all))
	for i, s := range all {
		p.observations = append(p.observations, observation{run: i, metric: "seconds", spread: iterationSpread})
		names[i] = fmt.Sprintf("line %d", s.Line)
	}
	p.residuals = func(_ context.Context, x []float64) ([]float64, error) {
		own := *d
		record(d.GPU.Name, p.parameters, x, 0).Correct(&own.GPU)
		timer, err := model.NewKernels(&own, u.Pools[0].KernelOptions())
		if err != nil {
			return nil, err
		}
		list := make([]float64, len(all))
		for i := range all {
			first, _, _ := timer.Span(&all[i].Batch)
			list[i] = math.Log(float64(first) / 1e15 / all[i].Seconds)
		}
		return list, nil
	}
	f, err := p.solve(ctx)
	if err != nil {
		return nil, err
	}
	return p.result(f, d.GPU.Name, 0, names, fmt.Sprintf("%d iterations of %s", len(all), name), 0), nil
}
