package calibration

import (
	"context"
	"fmt"
	"math"

	"clifftop/experiments/scenario"
	"clifftop/model"
)

// stepSpread is the standard deviation of measured iterations around the model, as a fraction.
const stepSpread = 0.04

// FitSteps fits constants to measured iterations of a scenario's deployment.
func FitSteps(
	ctx context.Context, name string, u *scenario.Setup, steps []model.Iteration, o Options,
) (*Result, error) {
	d := u.Deployment
	parameters, err := Choose(o.Fit, d.LLM.Experts > 0, false)
	if err != nil {
		return nil, err
	}
	p := &problem{parameters: parameters, progress: o.Progress}
	names := make([]string, len(steps))
	for i, s := range steps {
		p.observations = append(p.observations, observation{run: i, metric: "seconds", spread: stepSpread})
		names[i] = fmt.Sprintf("line %d", s.Line)
	}
	p.residuals = func(_ context.Context, x []float64) ([]float64, error) {
		own := *d
		record(d.GPU.Name, parameters, x, 0).Correct(&own.GPU)
		timer, err := model.NewKernels(&own, u.KernelOptions())
		if err != nil {
			return nil, err
		}
		list := make([]float64, len(steps))
		for i := range steps {
			first, _, _ := timer.Span(&steps[i].Batch)
			list[i] = math.Log(float64(first) / 1e15 / steps[i].Seconds)
		}
		return list, nil
	}
	f, err := p.solve(ctx)
	if err != nil {
		return nil, err
	}
	return p.result(f, d.GPU.Name, 0, names, fmt.Sprintf("%d iterations of %s", len(steps), name)), nil
}
