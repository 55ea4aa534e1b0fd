package planning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"clifftop/experiments"
	"clifftop/experiments/grid"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/report/plan"
)

// command is the manifest's word for a plan.
const command = "plan"

// Grid is the list of a plan's candidates that nothing stands against before they are simulated, for tasks to divide.
//
// A task searches its candidates. The best of all are known, and looked at closely, when all have been searched: the
// task that finds so at its end does it.
type Grid struct {
	// Manifest names the candidates.
	Manifest *grid.Manifest

	planner planner
	all     []*candidate // as they are before the search
}

// Divide prepares a plan, and lists the candidates to search.
func Divide(ctx context.Context, s *scenario.Scenario, o Options) (*Grid, error) {
	g := &Grid{planner: planner{options: o, scenario: s, spec: s.Planning()}}
	recipe, err := s.Recipe()
	if err != nil {
		return nil, err
	}
	if g.all, err = g.planner.prepare(ctx); err != nil {
		return nil, err
	}
	g.Manifest, err = experiments.NewManifest(command, recipe)
	if err != nil {
		return nil, err
	}
	for _, c := range open(g.all) {
		key, err := experiments.CacheKey(c.setup)
		if err != nil {
			return nil, err
		}
		g.Manifest.Runs = append(g.Manifest.Runs, grid.Run{Label: c.name, Key: key})
	}
	return g, nil
}

// IsPlan reports whether results are those of a plan's tasks.
func IsPlan(m *grid.Manifest) bool { return m.Command == command }

// fresh is a planner, with the candidates as they are before the search.
func (g *Grid) fresh(o Options) (*planner, []*candidate) {
	p := g.planner
	p.options = o
	all := make([]*candidate, len(g.all))
	for i, c := range g.all {
		d := *c
		d.knobs, d.probes = maps.Clone(c.knobs), map[float64]*report.Summary{}
		all[i] = &d
	}
	return &p, all
}

// Run searches a part of the candidates, and keeps the results of all runs. Where all candidates have been searched
// then, it completes the plan.
func (g *Grid) Run(ctx context.Context, part experiments.Part) (experiments.Tally, error) {
	t := experiments.Tally{Candidates: len(g.Manifest.Runs)}
	if err := part.Store.PutManifest(g.Manifest); err != nil {
		return t, err
	}
	o := Options{Jobs: part.Jobs, Check: part.Check, Ledger: experiments.NewResultCache(part.Store, part.Resume)}
	if part.Progress != nil {
		const fine = 1000
		o.Progress = func(fraction float64) { part.Progress(int(fraction*fine), fine) }
	}
	p, all := g.fresh(o)
	p.shard, p.total = part.Shard, 0
	for i := range g.Manifest.Runs {
		if part.Shard.Has(i) {
			p.total++
		}
	}
	err := p.search(ctx, open(all))
	t.Searched, t.Made, t.There = p.done, o.Ledger.Made(), o.Ledger.Found()
	if err != nil {
		return t, err
	}
	runs, err := grid.Join([]string{part.Store.Dir()})
	if err != nil {
		return t, err
	}
	q, all := g.fresh(Options{Jobs: part.Jobs, Ledger: experiments.ReadResultCache(runs)})
	var missing *MissingError
	switch err := q.search(ctx, open(all)); {
	case errors.As(err, &missing):
		return t, nil // others have candidates to search
	case err != nil:
		return t, err
	}
	o.Ledger, o.Progress = experiments.NewResultCache(part.Store, true), nil
	q, all = g.fresh(o)
	_, err = q.plan(ctx, all)
	t.Made, t.Complete = t.Made+o.Ledger.Made(), err == nil
	return t, err
}

// Plan puts the plan together of what tasks have kept, as one process would. Where something is missing, what is
// there is marked partial and comes with a [MissingError].
func (g *Grid) Plan(ctx context.Context, runs *grid.Joined) (*plan.Result, error) {
	if err := runs.Fits(g.Manifest); err != nil {
		return nil, err
	}
	o := g.planner.options
	o.Ledger = experiments.ReadResultCache(runs)
	p, all := g.fresh(o)
	return p.plan(ctx, all)
}

// Merge does the same for results whose manifest says what was planned.
func Merge(ctx context.Context, runs *grid.Joined, o Options) (*plan.Result, error) {
	var recipe scenario.Recipe
	if err := json.Unmarshal(runs.Manifest.Request, &recipe); err != nil {
		return nil, errors.New("the manifest's request is not that of a plan")
	}
	s, err := recipe.Parse()
	if err != nil {
		return nil, err
	}
	g, err := Divide(ctx, s, o)
	if err != nil {
		return nil, err
	}
	return g.Plan(ctx, runs)
}

// Count returns the number of candidates.
func (g *Grid) Count() int { return len(g.Manifest.Runs) }

// What returns the word for the elements of the grid, in the plural.
func (g *Grid) What() string { return "candidates" }

// List names the candidates, briefly.
func (g *Grid) List() string {
	const most = 6
	var names []string
	for _, r := range g.Manifest.Runs[:min(most, g.Count())] {
		names = append(names, r.Label)
	}
	text := strings.Join(names, "; ")
	if n := g.Count() - most; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return text
}

// Try searches candidate i and keeps nothing, to see how long it takes.
func (g *Grid) Try(ctx context.Context, i int) error {
	p, all := g.fresh(Options{Jobs: 1})
	c := open(all)[i]
	if p.spec.Fewest != nil {
		return p.fewestSeats(ctx, c)
	}
	return p.fewest(ctx, c, math.Inf(1))
}

// MissingError tells which runs of a plan's tasks are missing.
type MissingError struct {
	Labels []string // of candidates at rates
	Of     int      // candidates that are searched; 0 where those that were found best are looked at
}

// Error names the first of them.
func (m *MissingError) Error() string {
	const most = 8
	text := fmt.Sprintf("runs of %d of %d candidates are missing: ", len(m.Labels), m.Of)
	if m.Of == 0 {
		text = "all candidates have been searched, but runs of the best ones are missing: "
	}
	text += strings.Join(m.Labels[:min(most, len(m.Labels))], "; ")
	if n := len(m.Labels) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// gather takes the runs that are missing by an error, and leaves any other error.
func (m *MissingError) gather(err error) error {
	var more *MissingError
	if !errors.As(err, &more) {
		return err
	}
	m.Labels = append(m.Labels, more.Labels...)
	return nil
}

// orNil is the error, if anything is missing.
func (m *MissingError) orNil() error {
	if len(m.Labels) == 0 {
		return nil
	}
	return m
}

// each does n things side by side. Runs that are missing end only the thing that needs them.
func (p *planner) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	labels := make([]string, n)
	err := experiments.Parallel(ctx, n, p.options.Jobs, nil, func(ctx context.Context, i int) error {
		err := do(ctx, i)
		if errors.Is(err, experiments.ErrMissing) {
			labels[i] = strings.TrimSuffix(err.Error(), ": "+experiments.ErrMissing.Error())
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	m := &MissingError{}
	for _, label := range labels {
		if label != "" {
			m.Labels = append(m.Labels, label)
		}
	}
	return m.orNil()
}
