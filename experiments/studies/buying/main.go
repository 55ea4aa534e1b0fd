// Command buying answers four questions about what to buy, and writes the plans: when more of a cheaper GPU wins and
// when it loses, and when four GPUs are better as one replica or as four.
//
//	go run ./experiments/studies/buying -out experiments/studies/buying
package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"

	"clifftop/experiments/planning"
	"clifftop/experiments/scenario"
	"clifftop/experiments/studies/paper"
	"clifftop/report/plan"
)

//go:embed pairs.yaml
var pairs []byte

// plans runs the planner for all questions, in their order.
func plans(ctx context.Context) (names []string, list []*plan.Result, err error) {
	for _, doc := range bytes.Split(pairs, []byte("\n---\n")) {
		s, err := scenario.Parse("pairs.yaml", doc)
		if err != nil {
			return nil, nil, err
		}
		p, err := planning.New(ctx, s, planning.Options{})
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		names, list = append(names, s.Name), append(list, p)
	}
	return names, list, nil
}

func main() { paper.Main(run) }

func run(ctx context.Context, out string) error {
	names, list, err := plans(ctx)
	if err != nil {
		return err
	}
	results, err := paper.New(out, "buying", "; [pairs.yaml](pairs.yaml) has the questions.")
	if err != nil {
		return err
	}
	for i, p := range list {
		fmt.Fprintf(&results.Text,
			"\n## %s\n\n| candidate | $/month | requests/s per replica | SLO used |\n|---|---:|---:|---:|\n", names[i])
		for _, c := range p.Candidates {
			fmt.Fprintf(&results.Text, "| %s | %.0f | %.3g | %.0f %% |\n", c.Name, *c.USDPerMonth,
				c.Capacity.PassesRequestsPerS, 100*c.AtPlan.SLOUse)
		}
		results.Text.WriteString("\n")
		for _, why := range p.Why {
			results.Text.WriteString("* " + why + "\n")
		}
	}
	return results.Save()
}
