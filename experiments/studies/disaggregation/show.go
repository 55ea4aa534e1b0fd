package main

import (
	"fmt"
	"strings"

	"clifftop/report/layout"
	"clifftop/report/plot"
)

// table writes a traffic's results as Markdown.
func (t *traffic) table(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\nRequests per second: a rate that meets the objective, a rate that misses it, and the "+
		"limit that is missed.\n\n| GPUs |", t.scenario.Name)
	for _, o := range objectives {
		fmt.Fprintf(b, " %s | missed |", o.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|---|", len(objectives)) + "\n")
	for i, l := range layouts {
		fmt.Fprintf(b, "| %s |", l.name)
		for k := range objectives {
			c := t.capacities[i][k]
			fmt.Fprintf(b, " %s – %s | %s |", rate(c.Passes), rate(c.Fails), c.Limit)
		}
		b.WriteString("\n")
	}
}

func rate(v *float64) string {
	if v == nil {
		return "?"
	}
	return layout.Digits(*v)
}

// picture shows the capacities of all traffics.
func picture(list []*traffic) *plot.Figure {
	c := plot.Comparison{
		Title: title(list),
		Caption: "llama-3.1-8b on four h100-sxm; requests per second at which 90 % get a first token within 2 s and " +
			"meet the TPOT limit",
	}
	for _, o := range objectives {
		c.Loads = append(c.Loads, o.name)
	}
	for _, l := range layouts {
		c.Systems = append(c.Systems, l.name)
	}
	for _, t := range list {
		m := plot.ComparisonMetric{Title: t.scenario.Name}
		for i := range layouts {
			var row []float64
			for k := range objectives {
				row = append(row, t.of(i, k))
			}
			m.Values = append(m.Values, row)
		}
		c.Metrics = append(c.Metrics, m)
	}
	return c.Figure()
}

// title returns the title of the picture: the largest gain of a split, and its cost with the loose limit.
func title(list []*traffic) string {
	gain := func(t *traffic, k int) float64 {
		best := 0.0
		for i := 1; i < len(layouts); i++ {
			best = max(best, t.of(i, k))
		}
		return best/t.of(0, k) - 1
	}
	most := list[0]
	for _, t := range list {
		if gain(t, 0) > gain(most, 0) {
			most = t
		}
	}
	name, _, _ := strings.Cut(most.scenario.Name, ",")
	return fmt.Sprintf("Separate GPUs for prefill: %+.0f %% capacity for %s with %s, and %+.0f %% with %s",
		100*gain(most, 0), name, objectives[0].name, 100*gain(most, 1), objectives[1].name)
}
