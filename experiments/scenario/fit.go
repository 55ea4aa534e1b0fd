package scenario

import (
	"errors"
	"slices"

	"clifftop/model"
)

// Fit is a scenario as far as memory goes. It can be had where the model does not fit its GPUs too.
type Fit struct {
	Deployment *model.Deployment
	// Budget is where the memory of a GPU goes. Misfit says what is missing; nil where the model fits.
	Budget model.KVBudget
	Misfit *model.FitError
	// UsableBlocks is the number of KV blocks that sequences can have, of BlockSize tokens each; MaxNumSeqs is how many
	// sequences run at most, whatever the memory. They are of one replica.
	UsableBlocks, BlockSize, MaxNumSeqs int
	// Utilization is the part of the GPU's memory that the engine may use.
	Utilization float64

	setup *Setup
}

// Fit sizes the memory of the scenario's deployment.
func (s *Scenario) Fit() (*Fit, error) {
	u, faults, err := given{scenario: s}.resolve()
	var misfit *model.FitError
	switch {
	case err != nil:
		return nil, err
	case len(faults) > 1 || len(faults) == 1 && (len(s.Pools) > 0 || !errors.As(faults[0].Cause, &misfit)):
		return nil, faults
	}
	p := &u.Pools[0]
	e := &p.Scenario.Engine
	f := &Fit{setup: u, Deployment: p.Deployment, Misfit: misfit, BlockSize: e.BlockSize, MaxNumSeqs: *e.MaxNumSeqs,
		Utilization: *e.GPUMemoryUtilization}
	switch {
	case misfit != nil:
		f.Budget = misfit.Budget
	case p.Memory == nil:
		return nil, s.Fault("step_time", "%s has an unlimited KV cache, so every model fits (want kernels or roofline)",
			s.StepTime.Kind)
	default:
		f.Budget, f.UsableBlocks = *p.Memory, p.Config.UsableBlocks()
	}
	return f, nil
}

// Blocks returns the number of KV blocks that a sequence of n tokens holds while it decodes.
func (f *Fit) Blocks(n int) int {
	if h := f.setup.Pools[0].Config.Hybrid; h != nil {
		return h.Held(n)
	}
	return f.Deployment.Pages(n, f.BlockSize)
}

// Length is a request's tokens at its end: prompt and output.
type Length struct{ Input, Output int32 }

// Total is all tokens, which the KV cache holds when the request ends.
func (l Length) Total() int { return int(l.Input) + int(l.Output) }

// Lengths samples requests of the scenario's traffic, in the order of their total.
func (f *Fit) Lengths(n int) ([]Length, error) {
	src, err := f.setup.SourceAt(ProbeLoad{Rate: 1, Requests: int64(n)})
	if err != nil {
		return nil, err
	}
	var lengths []Length
	for len(lengths) < n {
		if _, ok := src.Peek(); !ok {
			break
		}
		r := src.Next()
		lengths = append(lengths, Length{r.InputTokens, r.OutputTokens})
	}
	slices.SortFunc(lengths, func(a, b Length) int { return a.Total() - b.Total() })
	return lengths, src.Err()
}
