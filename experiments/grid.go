package experiments

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"clifftop/experiments/grid"
	"clifftop/report"
)

// Grid is a list of runs that is known before any of them is made, so that tasks can divide it among them.
type Grid struct {
	Manifest *grid.Manifest
	setups   []*Setup
	single   bool // replications are runs of their own
	capacity *capacityGrid
	over     string
}

// sweepGrid is what the results of a sweep's runs need to become a curve.
type sweepGrid struct {
	Over     string        `json:"over"`
	Values   []float64     `json:"values"`
	Caption  string        `json:"caption"`
	Capacity *capacityGrid `json:"capacity,omitempty"` // of a sweep with an objective
}

// capacityGrid is what the search for the capacity is made of. It goes by what its runs give, so that one task makes
// them all.
type capacityGrid struct {
	Scenario Recipe   `json:"scenario"`
	Values   []string `json:"values"`
}

// find searches, with the runs of a ledger.
func (q *capacityGrid) find(ctx context.Context, over string, l *Ledger, jobs int, check bool) (*report.Capacity, error) {
	s, err := q.Scenario.Parse()
	if err != nil {
		return nil, err
	}
	return SweepOptions{Over: over, Values: q.Values, Jobs: jobs, Check: check, ledger: l}.Capacity(ctx, s, nil)
}

// compareGrid is what the results of a comparison's runs, variant by variant, need to become a verdict.
type compareGrid struct {
	Names    []string         `json:"names"`
	Seeds    []uint64         `json:"seeds"`
	Margin   float64          `json:"margin"`
	Warnings []report.Warning `json:"warnings"`
}

// The commands whose lists of runs can be divided.
const (
	gridSweep   = "sweep"
	gridCompare = "compare"
)

// Grid is the list of a sweep's runs. Loads that a sweep chooses by what it sees cannot be divided: they must be
// given. The caption is for pictures.
func (o SweepOptions) Grid(ctx context.Context, s *Scenario, caption string) (*Grid, error) {
	o.Over = o.over(s)
	p, err := o.plan(ctx, s)
	if err != nil {
		return nil, err
	}
	p.refine = false
	points, setups, err := p.prepare(s, o, p.values)
	if err != nil {
		return nil, err
	}
	var labels []string
	for _, v := range p.values {
		labels = append(labels, o.Over+"="+v)
	}
	request := sweepGrid{Over: o.Over, Values: points, Caption: caption}
	if slo, err := s.objectiveOfRuns(); err == nil && slo != nil {
		recipe, err := s.Recipe()
		if err != nil {
			return nil, err
		}
		request.Capacity = &capacityGrid{recipe, o.Values}
	}
	g, err := newGrid(gridSweep, request, labels, setups)
	if err == nil {
		g.capacity, g.over = request.Capacity, o.Over
	}
	return g, err
}

// Grid is the list of a comparison's runs. Their number has to be known: a precision is looked for by what runs say.
func (o CompareOptions) Grid(ctx context.Context, variants []Variant) (*Grid, error) {
	c, r, err := newComparison(ctx, variants, o)
	if err != nil {
		return nil, err
	}
	if r.precision > 0 {
		return nil, Faults{{Where: "--precision", Problem: "shards cannot tell how many runs others need (want a number of --replications)"}}
	}
	setups, err := c.next(r.runs)
	if err != nil {
		return nil, err
	}
	var labels []string
	for _, name := range c.names {
		for _, seed := range c.seeds {
			labels = append(labels, fmt.Sprintf("%s seed %d", name, seed))
		}
	}
	g, err := newGrid(gridCompare, compareGrid{c.names, c.seeds, o.Margin, c.warnings()}, labels, setups)
	if err == nil {
		g.single = true
	}
	return g, err
}

// NewManifest is the manifest of a command of this program without any runs. The request is what the command needs beside
// the runs' results.
func NewManifest(command string, request any) (*grid.Manifest, error) {
	data, err := json.Marshal(request)
	return &grid.Manifest{Schema: grid.Schema, Build: build(), Command: command, Request: data}, err
}

// newGrid names the results of a list of runs.
func newGrid(command string, request any, labels []string, setups []*Setup) (*Grid, error) {
	manifest, err := NewManifest(command, request)
	if err != nil {
		return nil, err
	}
	g := &Grid{Manifest: manifest, setups: setups}
	seen := map[string]string{}
	for i, u := range setups {
		key, err := u.Key()
		if err != nil {
			return nil, err
		}
		if other, ok := seen[key]; ok {
			return nil, Faults{{Problem: fmt.Sprintf("%s and %s are the same run (want each value once)", other, labels[i])}}
		}
		seen[key] = labels[i]
		g.Manifest.Runs = append(g.Manifest.Runs, grid.Run{Label: labels[i], Key: key})
	}
	return g, nil
}

// Part is a task's part of a grid.
type Part struct {
	// Store is where results go, each into a file of its own.
	Store *grid.Store
	// Shard says which runs are made; the zero Shard has all.
	Shard grid.Shard
	// Resume takes the results that are there. Without it, all runs are made, and results that are there must be the same.
	Resume bool
	// Jobs is the number of runs at a time; 0 is one for each processor.
	Jobs int
	// Check asserts the simulator's invariants throughout, at a cost.
	Check bool
	// Progress is told, from one goroutine at a time, how many of the part's runs are done.
	Progress func(done, total int)
}

// Tally says what became of a part.
type Tally struct {
	Made, There int // runs made, and found made
	Total       int // of the whole grid, where that is known

	Searched, Candidates int  // of a plan: the part's, and all
	Complete             bool // all that others have to do was there, so that what depends on it was done
}

// String writes it in words.
func (t Tally) String() string {
	text := fmt.Sprintf("%d of %d runs", t.Made+t.There, t.Total)
	if t.Total == 0 {
		text = fmt.Sprintf("%d of %d candidates, %d runs", t.Searched, t.Candidates, t.Made+t.There)
	}
	if t.There > 0 {
		text += fmt.Sprintf(", %d of them found there", t.There)
	}
	return text
}

// Run makes a part of the runs and keeps their results. When ctx is done before the end, the results that are kept
// are whole.
func (g *Grid) Run(ctx context.Context, p Part) (Tally, error) {
	t := Tally{Total: len(g.setups)}
	if err := p.Store.PutManifest(g.Manifest); err != nil {
		return t, err
	}
	var mine []int
	for i, r := range g.Manifest.Runs {
		switch {
		case !p.Shard.Has(i):
		case p.Resume && p.Store.Has(r.Key):
			t.There++
		default:
			mine = append(mine, i)
		}
	}
	made := make([]bool, len(mine))
	err := Parallel(ctx, len(mine), p.Jobs, p.Progress, func(ctx context.Context, k int) error {
		i := mine[k]
		s, err := g.run(ctx, i, p.Check)
		if err != nil {
			return err
		}
		data, err := marshal(s)
		if err == nil {
			err = p.Store.Put(g.Manifest.Runs[i].Key, data)
		}
		made[k] = err == nil
		return err
	})
	for _, ok := range made {
		if ok {
			t.Made++
		}
	}
	if err == nil && g.capacity != nil && g.whole(p.Store) {
		_, err = g.capacity.find(ctx, g.over, NewLedger(p.Store, true), p.Jobs, p.Check)
		t.Complete = err == nil
	}
	return t, err
}

// whole reports whether a store has the results of all runs.
func (g *Grid) whole(store *grid.Store) bool {
	return !slices.ContainsFunc(g.Manifest.Runs, func(r grid.Run) bool { return !store.Has(r.Key) })
}

// Count is the number of runs, and What the word for them.
func (g *Grid) Count() int   { return len(g.setups) }
func (g *Grid) What() string { return "runs" }

// List names the runs, briefly, and for the most part as --over takes them.
func (g *Grid) List() string {
	const most = 40
	runs := g.Manifest.Runs
	key, text, _ := strings.Cut(runs[0].Label, "=")
	for _, r := range runs[1:] {
		_, v, _ := strings.Cut(r.Label, "=")
		text += "," + v
	}
	if len(runs) > most {
		_, last, _ := strings.Cut(runs[len(runs)-1].Label, "=")
		_, text, _ = strings.Cut(runs[0].Label, "=")
		text += ", …, " + last
	}
	return key + "=" + text
}

// Try makes run i and keeps nothing, to see how long it takes.
func (g *Grid) Try(ctx context.Context, i int) error {
	_, err := g.run(ctx, i, false)
	return err
}

// run makes run i.
func (g *Grid) run(ctx context.Context, i int, check bool) (*report.Summary, error) {
	if !g.single {
		return g.setups[i].Replicate(ctx, ReplicateOptions{Jobs: 1, Check: check})
	}
	r, err := g.setups[i].Run(ctx, RunOptions{Check: check})
	if err != nil {
		return nil, err
	}
	return r.Summary, nil
}
