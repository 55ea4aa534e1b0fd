package verify

import (
	"context"
	"fmt"
	"math"

	"clifftop/experiments/scenario"
	"clifftop/experiments/validation"
)

// moreSeeds is the number of further simulations that show how much a metric differs by chance. A further value lies
// between the least and the largest of n others with a probability of (n − 1)/(n + 1): 90 % of 19, the first one
// included.
const moreSeeds = 18

// byChance widens the bars of a run whose traffic was drawn. The measured run is one draw of arrivals and lengths, and
// the simulation another: long runs agree whatever the draw, the percentiles of short ones do not. The error of the
// model and the difference of the draws are independent, so their squares add up, on logarithms.
func byChance(ctx context.Context, c *validation.Case, run *Run, o Options) error {
	least, largest := map[string]float64{}, map[string]float64{}
	note := func(metrics []validation.Comparison) {
		for _, m := range metrics {
			if m.Simulated == nil || *m.Simulated <= 0 {
				continue
			}
			if low, known := least[m.Metric]; !known || *m.Simulated < low {
				least[m.Metric] = *m.Simulated
			}
			largest[m.Metric] = max(largest[m.Metric], *m.Simulated)
		}
	}
	for k := range moreSeeds {
		seed := fmt.Sprint(c.Setup().Scenario.Run.Seed + uint64(k) + 1)
		varied, err := c.Varied(nil, scenario.Setting{Key: "run.seed", Value: seed, Flag: "verify"})
		if err != nil {
			return err
		}
		report, err := simulated(ctx, varied, Options{Jobs: o.Jobs})
		if err != nil {
			return err
		}
		note(report.Rows[0].Metrics)
	}
	for i := range run.Metrics {
		m := &run.Metrics[i]
		low, known := least[m.Name]
		if m.P90 == nil || !known {
			continue
		}
		low, high := min(low / *m.Simulated, 1)-1, max(largest[m.Name] / *m.Simulated, 1)-1
		m.Chance = &[2]float64{low, high}
		m.P90 = &[2]float64{both(m.P90[0], low), both(m.P90[1], high)}
		m.Verdict = Within
		if *m.Difference < m.P90[0] || *m.Difference > m.P90[1] {
			m.Verdict = Outside
		}
	}
	run.Notes = append(run.Notes, fmt.Sprintf("the bars include what the draw of arrivals and lengths does: from %d "+
		"simulations with other seeds", moreSeeds))
	return nil
}

// both joins the end of a bar with that of another, which is independent and on its side. Ends are measured over
// simulated less 1. A bar that does not reach 0 keeps its end.
func both(end, chance float64) float64 {
	x, y := math.Log1p(end), math.Log1p(chance)
	switch {
	case x*y < 0:
		return end
	case x+y < 0:
		return math.Expm1(-math.Hypot(x, y))
	}
	return math.Expm1(math.Hypot(x, y))
}
