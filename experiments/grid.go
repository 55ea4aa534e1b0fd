package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"clifftop/experiments/grid"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report"
)

// Grid is a list of runs that is known before any of them is made, so that tasks can divide it among them.
type Grid struct {
	// Single says that replications are runs of their own.
	Single bool
	// After, unless it is nil, is called once all results are in a store.
	After func(ctx context.Context, l *ResultCache, jobs int, check bool) error
	// Group, unless it is nil, is the number of the group of run i. A task makes the runs of a group together, over one
	// window of measurement; see [RunShared].
	Group func(i int) int
	// Settled, unless it is nil, gives run i in the place of a setup that is run as it is.
	Settled func(ctx context.Context, i int) (*SettledRun, error)

	head   *grid.Manifest // without the runs
	labels []string       // of the runs
	setup  func(i int) (*scenario.Setup, error)
	listed *grid.Manifest // with the runs, once they have been resolved
}

// NewGrid makes a list of runs with these labels. setup resolves run i.
func NewGrid(head *grid.Manifest, labels []string, setup func(i int) (*scenario.Setup, error)) *Grid {
	return &Grid{head: head, labels: labels, setup: setup}
}

// Peak is what a replica of a machine can do at most.
type Peak struct {
	FLOPsPerS float64 `json:"flops_per_s"`
	BytesPerS float64 `json:"bytes_per_s"`
}

// PeakOf is that of the setup's machine; nil where none is modelled.
func PeakOf(u *scenario.Setup) *Peak {
	if w := u.Report.Work; w != nil {
		return &Peak{w.PeakFLOPsPerS, w.PeakBytesPerS}
	}
	return nil
}

// NewManifest is the manifest of a command of this program without any runs. The request is what the command needs
// beside the runs' results.
func NewManifest(command string, request any) (*grid.Manifest, error) {
	data, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	program, err := build()
	return &grid.Manifest{Schema: grid.Schema, Build: program, Command: command, Request: data}, err
}

// Manifest names the results of all runs, for which it resolves each of them. Its error tells all faults.
func (g *Grid) Manifest() (*grid.Manifest, error) {
	if g.listed != nil {
		return g.listed, nil
	}
	m := *g.head
	var faults yamldoc.Faults
	seen := map[string]int{}
	for i, label := range g.labels {
		key, err := g.key(i)
		var fs yamldoc.Faults
		if errors.As(err, &fs) {
			faults = append(faults, fs...)
			continue
		}
		if err != nil {
			return nil, err
		}
		if k, ok := seen[key]; ok {
			return nil, yamldoc.Faults{{Problem: fmt.Sprintf("%s and %s are the same run (want each value once)",
				g.labels[k], label)}}
		}
		seen[key] = i
		m.Runs = append(m.Runs, grid.Run{Label: label, Key: key})
	}
	if faults != nil {
		return nil, faults
	}
	g.listed = &m
	return &m, nil
}

// key names the result of run i.
func (g *Grid) key(i int) (string, error) {
	u, err := g.setup(i)
	if err != nil {
		return "", err
	}
	return CacheKey(u)
}

// enter gives the manifest of a store. Where another task has written it for the same list, only the first of the
// part's runs is resolved to see that it is for the same scenario too: resolving all takes a task longer than many a
// run.
func (g *Grid) enter(p Part) (*grid.Manifest, error) {
	there, err := p.Store.Manifest()
	if err != nil {
		return nil, err
	}
	if there != nil && there.Lists(g.head, g.labels) {
		first := 0
		if i := p.Shard.Index; i < len(g.labels) {
			first = i
		}
		key, err := g.key(first)
		if err != nil {
			return nil, err
		}
		if key == there.Runs[first].Key {
			return there, nil
		}
	}
	m, err := g.Manifest()
	if err == nil {
		err = p.Store.PutManifest(m)
	}
	return m, err
}

// Part is a task's part of a grid.
type Part struct {
	// Store is where results go, each into a file of its own.
	Store *grid.Store
	// Shard says which runs are made; the zero Shard has all.
	Shard grid.Shard
	// Resume takes the results that are there. Without it, all runs are made, and results that are there must be the
	// same.
	Resume bool
	// Jobs is the number of runs at a time; 0 is one for each processor.
	Jobs int
	// Check asserts the simulator's invariants throughout, at a cost.
	Check bool
	// Progress is called, from one goroutine at a time, with the number of finished runs of the part.
	Progress func(done, total int)
}

// Tally says what became of a part.
type Tally struct {
	Made, There int // Runs made, and found made
	Total       int // of the whole grid, where that is known

	Searched, Candidates int  // of a plan: the part's, and all
	Damaged              int  // results that were there, and were damaged
	Complete             bool // all that others have to do was there, so that what depends on it was done
}

func (t Tally) String() string {
	text := fmt.Sprintf("%d of %d runs", t.Made+t.There, t.Total)
	if t.Total == 0 {
		text = fmt.Sprintf("%d of %d candidates, %d runs", t.Searched, t.Candidates, t.Made+t.There)
	}
	if t.There > 0 {
		text += fmt.Sprintf(", %d of them found there", t.There)
	}
	switch {
	case t.Damaged == 1:
		text += "; a damaged result was made again"
	case t.Damaged > 1:
		text += fmt.Sprintf("; %d damaged results were made again", t.Damaged)
	}
	return text
}

// Run makes a part of the runs and keeps their results. When ctx is done before the end, the results that are kept
// are whole.
func (g *Grid) Run(ctx context.Context, p Part) (Tally, error) {
	t := Tally{Total: g.Count()}
	manifest, err := g.enter(p)
	if err != nil {
		return t, err
	}
	var mine []int
	if g.Group != nil {
		return g.runGroups(ctx, p, manifest)
	}
	for i, r := range manifest.Runs {
		switch {
		case !p.Shard.Has(i):
		case p.Resume && p.Store.Has(r.Key):
			t.There++
		default:
			mine = append(mine, i)
		}
	}
	made := make([]bool, len(mine))
	err = Parallel(ctx, len(mine), p.Jobs, p.Progress, func(ctx context.Context, k int) error {
		i := mine[k]
		s, err := g.run(ctx, i, p.Check)
		if err != nil {
			return err
		}
		data, err := marshal(s)
		if err == nil {
			err = p.Store.Put(manifest.Runs[i].Key, data)
		}
		made[k] = err == nil
		return err
	})
	for _, ok := range made {
		if ok {
			t.Made++
		}
	}
	if err == nil && g.After != nil && whole(manifest, p.Store) {
		err = g.After(ctx, NewResultCache(p.Store, true), p.Jobs, p.Check)
		t.Complete = err == nil
	}
	return t, err
}

// runGroups makes the groups of a part. A group that is not whole in the store is made again.
func (g *Grid) runGroups(ctx context.Context, p Part, manifest *grid.Manifest) (Tally, error) {
	t := Tally{Total: g.Count()}
	missing := map[int]bool{}
	for i, r := range manifest.Runs {
		missing[g.Group(i)] = missing[g.Group(i)] || !p.Resume || !p.Store.Has(r.Key)
	}
	var mine []int
	for i := range manifest.Runs {
		switch {
		case !p.Shard.Has(g.Group(i)):
		case !missing[g.Group(i)]:
			t.There++
		default:
			mine = append(mine, i)
		}
	}
	slices.SortStableFunc(mine, func(i, j int) int { return g.Group(i) - g.Group(j) })
	var setups []*scenario.Setup
	for _, i := range mine {
		u, err := g.setup(i)
		if err != nil {
			return t, err
		}
		setups = append(setups, u)
	}
	var made atomic.Int64
	keep := func(k int, s *report.Summary) error {
		data, err := marshal(s)
		if err == nil {
			err = p.Store.Put(manifest.Runs[mine[k]].Key, data)
		}
		if err == nil {
			made.Add(1)
		}
		return err
	}
	_, err := RunShared(ctx, setups, func(k int) int { return g.Group(mine[k]) },
		BatchOptions{Jobs: p.Jobs, Check: p.Check, Progress: p.Progress, Keep: keep})
	t.Made = int(made.Load())
	return t, err
}

// Whole reports whether a store has the results of all runs.
func whole(m *grid.Manifest, store *grid.Store) bool {
	return !slices.ContainsFunc(m.Runs, func(r grid.Run) bool { return !store.Has(r.Key) })
}

// Count returns the number of runs.
func (g *Grid) Count() int { return len(g.labels) }

// What returns the word for the elements of the grid, in the plural.
func (g *Grid) What() string { return "runs" }

// List names the runs, briefly, and for the most part as --over takes them.
func (g *Grid) List() string {
	const most = 40
	key, text, _ := strings.Cut(g.labels[0], "=")
	for _, label := range g.labels[1:min(most, len(g.labels))] {
		_, v, _ := strings.Cut(label, "=")
		text += "," + v
	}
	if n := len(g.labels); n > most {
		_, last, _ := strings.Cut(g.labels[n-1], "=")
		_, text, _ = strings.Cut(g.labels[0], "=")
		text += ", …, " + last
	}
	return key + "=" + text
}

// Try makes run i and keeps nothing, to see how long it takes.
func (g *Grid) Try(ctx context.Context, i int) error {
	_, err := g.run(ctx, i, false)
	return err
}

func (g *Grid) run(ctx context.Context, i int, check bool) (*report.Summary, error) {
	if g.Settled != nil {
		r, err := g.Settled(ctx, i)
		if err != nil {
			return nil, err
		}
		if r.Setup.Scenario.Replicated() {
			return r.Replicate(ctx, ReplicateOptions{Jobs: 1, Check: check})
		}
		return summary(r.Run(ctx, RunOptions{Check: check}))
	}
	u, err := g.setup(i)
	if err != nil {
		return nil, err
	}
	if g.Single {
		return summary(RunSetup(ctx, u, RunOptions{Check: check}))
	}
	return replicateSetup(ctx, u, ReplicateOptions{Jobs: 1, Check: check})
}
