package compare

import (
	"context"
	"fmt"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/experiments/steady"
	"clifftop/report"
	"clifftop/report/verdict"
)

// GridRequest is what the results of a comparison's runs, variant by variant, need to become a verdict.
type GridRequest struct {
	Names    []string         `json:"names"`
	Seeds    []uint64         `json:"seeds"`
	By       verdict.Options  `json:"by"`
	Warnings []report.Warning `json:"warnings"`
	// Traffic is that of the baseline, where it follows from the scenario.
	Traffic *report.Traffic `json:"traffic,omitempty"`
	// Cases are what the runs of each variant are judged by.
	Cases []steady.Case `json:"cases"`
	// Searched is the number of requests that were simulated for them.
	Searched int64 `json:"searched"`
}

// GridCommand is the command of a comparison's list of runs.
const GridCommand = "compare"

// Grid is the list of a comparison's runs. Their number has to be known: a precision is looked for by what runs say.
func (o Options) Grid(ctx context.Context, variants []Variant) (*experiments.Grid, error) {
	c, r, err := newComparison(ctx, variants, o)
	if err != nil {
		return nil, err
	}
	if c.oneTrace() {
		return nil, yamldoc.Faults{{Where: "--shard, --resume", Problem: "on one recorded trace each variant is run " +
			"once, which is not divided or gone on with (want neither)"}}
	}
	if r.Precision > 0 {
		return nil, yamldoc.Faults{{Where: "--precision",
			Problem: "the number of runs must be known before shards start (set --replications)"}}
	}
	c.addSeeds(r.Runs)
	var labels []string
	for _, name := range c.names {
		for _, seed := range c.seeds {
			labels = append(labels, fmt.Sprintf("%s seed %d", name, seed))
		}
	}
	traffic, _ := steady.Traffic(c.setups[0])
	request := GridRequest{c.names, c.seeds, o.by(), c.warnings(), traffic, c.cases, c.searched}
	head, err := experiments.NewManifest(GridCommand, request)
	if err != nil {
		return nil, err
	}
	setup := func(i int) (*scenario.Setup, error) { return c.setup(i/len(c.seeds), c.seeds[i%len(c.seeds)]) }
	g := experiments.NewGrid(head, labels, setup)
	g.Single = true
	g.Group = func(i int) int { return c.group(i/len(c.seeds), i%len(c.seeds), len(c.seeds)) }
	return g, nil
}
