package scenario

import (
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
	u, faults, err := s.resolveAll(Setup{})
	switch {
	case err != nil:
		return nil, err
	case len(faults) > 1 || len(faults) == 1 && u.misfit == nil:
		return nil, faults
	case u.misfit == nil && u.Memory == nil:
		return nil, s.Fault("step_time", "%s has an unlimited KV cache, so every model fits (want kernels or roofline)",
			s.StepTime.Kind)
	}
	f := &Fit{setup: u, Deployment: u.Deployment, Misfit: u.misfit, BlockSize: u.Scenario.Engine.BlockSize,
		MaxNumSeqs:  *u.Scenario.Engine.MaxNumSeqs,
		Utilization: *u.Scenario.Engine.GPUMemoryUtilization}
	if u.misfit != nil {
		f.Budget = u.misfit.Budget
		return f, nil
	}
	f.Budget, f.UsableBlocks = *u.Memory, u.Config.UsableBlocks()
	return f, nil
}

// Blocks returns the number of KV blocks that a sequence of n tokens holds while it decodes.
func (f *Fit) Blocks(n int) int {
	if h := f.setup.Config.Hybrid; h != nil {
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
