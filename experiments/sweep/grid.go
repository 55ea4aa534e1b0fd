package sweep

import (
	"context"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/curve"
)

// GridRequest is what the results of a sweep's runs need to become a curve.
type GridRequest struct {
	Over     string            `json:"over"`
	Values   []float64         `json:"values"`
	Caption  string            `json:"caption"`
	Peak     *experiments.Peak `json:"peak,omitempty"`     // of the machine
	Searched int64             `json:"searched"`           // requests simulated to find the saturation
	Capacity *CapacityRequest  `json:"capacity,omitempty"` // of a sweep with an objective
}

// CapacityRequest is what the search for the capacity is made of. It depends on the results of its runs, so that one
// task makes them all.
type CapacityRequest struct {
	Scenario scenario.Recipe `json:"scenario"`
	Values   []string        `json:"values"`
}

// Find searches, with the runs of a ledger.
func (q *CapacityRequest) Find(ctx context.Context, over string, l *experiments.ResultCache, jobs int,
	check bool) (*curve.Capacity, error) {
	s, err := q.Scenario.Parse()
	if err != nil {
		return nil, err
	}
	return Options{Over: over, Values: q.Values, Jobs: jobs, Check: check, cache: l}.Capacity(ctx, s, nil)
}

// GridCommand is the command of a sweep's list of runs.
const GridCommand = "sweep"

// Grid is the list of a sweep's runs. Loads that a sweep chooses by what it sees cannot be divided: they must be
// given. The caption and what the machine can do are for pictures.
func (o Options) Grid(ctx context.Context, s *scenario.Scenario, caption string,
	peak *experiments.Peak) (*experiments.Grid, error) {
	o.Over = o.over(s)
	p, err := o.plan(ctx, s)
	if err != nil {
		return nil, err
	}
	p.refine = false
	request := GridRequest{Over: o.Over, Caption: caption, Peak: peak, Searched: p.searched}
	var labels []string
	var faults yamldoc.Faults
	for _, v := range p.values {
		x, fault := o.point(v)
		if fault != nil {
			faults = append(faults, fault)
		}
		request.Values, labels = append(request.Values, x), append(labels, o.Over+"="+v)
	}
	if faults != nil {
		return nil, faults
	}
	if ok, err := limited(s); err == nil && ok {
		recipe, err := s.Recipe()
		if err != nil {
			return nil, err
		}
		request.Capacity = &CapacityRequest{recipe, o.Values}
	}
	head, err := experiments.NewManifest(GridCommand, request)
	if err != nil {
		return nil, err
	}
	settled := func(ctx context.Context, i int) (*experiments.SettledRun, error) {
		return p.settled(ctx, s, o, p.values[i], request.Values[i])
	}
	g := experiments.NewGrid(head, labels, func(i int) (*scenario.Setup, error) {
		r, err := settled(ctx, i)
		if err != nil {
			return nil, err
		}
		return r.Setup, nil
	})
	g.Settled = settled
	if q := request.Capacity; q != nil {
		g.After = func(ctx context.Context, l *experiments.ResultCache, jobs int, check bool) error {
			_, err := q.Find(ctx, o.Over, l, jobs, check)
			return err
		}
	}
	return g, nil
}
