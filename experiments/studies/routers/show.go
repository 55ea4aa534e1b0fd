package main

import (
	"fmt"
	"math"
	"strings"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/stats"
	"clifftop/report/verdict"
)

const legend = `
Means over the seeds 2 to 6. *Minus the first* is the mean difference to the first row, paired by seed, with its 95 %
confidence interval. ▼ and ▲ mark significant differences (Student's t, with Holm's procedure over all rows of a table,
5 %). *Most loaded* is the largest time-averaged number of requests at any replica, as a multiple of the mean over the
replicas. *Longest queue* is the largest number of requests that waited at one replica.
`

type column struct {
	title        string
	path         string // of the metric in a comparison, for the column of differences; empty for none
	milliseconds bool
	of           func(*report.Summary) *float64
}

const ttftMean, ttftP99 = "latency_ms.ttft.mean", "latency_ms.ttft.p99"

func columns() []column {
	return []column{
		{"TTFT mean, ms", ttftMean, true, func(s *report.Summary) *float64 { return s.Latency.TTFT.Mean }},
		{"TTFT p99, ms", ttftP99, true, func(s *report.Summary) *float64 { return s.Latency.TTFT.P99 }},
		{"Prefix hits, %", "", false, func(s *report.Summary) *float64 { return percent(s.System.PrefixHitRate) }},
		{"Within SLO, %", "", false, func(s *report.Summary) *float64 { return percent(s.Goodput.Attainment) }},
		{"Output tokens/s", "", false, func(s *report.Summary) *float64 { return s.Throughput.OutputTokensPerS }},
		{"Most loaded", "", false, mostLoaded},
		{"Longest queue", "", false, longestQueue},
	}
}

func percent(x *float64) *float64 {
	if x == nil {
		return nil
	}
	v := 100 * *x
	return &v
}

// mostLoaded returns the largest mean number of requests at a replica, divided by the mean over the replicas.
func mostLoaded(s *report.Summary) *float64 {
	sum, most := 0.0, 0.0
	for i := range s.Replicas {
		n := s.Replicas[i].Concurrency.InSystem.Mean
		if n == nil {
			return nil
		}
		sum, most = sum+*n, max(most, *n)
	}
	v := most * float64(len(s.Replicas)) / sum
	return &v
}

// longestQueue returns the largest number of requests that waited at one replica.
func longestQueue(s *report.Summary) *float64 {
	most := 0.0
	for i := range s.Replicas {
		n := s.Replicas[i].Concurrency.QueueDepth.Max
		if n == nil {
			return nil
		}
		most = max(most, *n)
	}
	return &most
}

// values returns a number by seed; NaN if a run does not have it.
func (c *contest) values(system, point int, of func(*report.Summary) *float64) []float64 {
	list := make([]float64, len(c.runs[system][point]))
	for i, s := range c.runs[system][point] {
		list[i] = math.NaN()
		if x := of(s); x != nil {
			list[i] = *x
		}
	}
	return list
}

// mean returns the mean over seeds; NaN if there is none.
func (c *contest) mean(system, point int, of func(*report.Summary) *float64) float64 {
	if c.refused[system] != "" {
		return math.NaN()
	}
	center, _ := stats.MeanInterval(c.values(system, point, of), stats.Confidence)
	return center
}

// judge compares the systems with the first one at a point, and returns the comparisons by name.
func (c *contest) judge(point int) map[string]*verdict.Variant {
	var names []string
	var runs [][]*report.Summary
	for i, s := range c.systems {
		if c.refused[i] == "" {
			names, runs = append(names, s.name), append(runs, c.runs[i][point])
		}
	}
	v := verdict.Compare(names, c.seeds, runs)
	variants := map[string]*verdict.Variant{}
	for i := range v.Variants {
		variants[v.Variants[i].Name] = &v.Variants[i]
	}
	return variants
}

// table writes the results as Markdown.
func (c *contest) table(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n", c.title(), c.question)
	for k, p := range c.points {
		fmt.Fprintf(b, "\n**%s**\n\n| router |", p.name)
		n := 0
		for _, col := range columns() {
			b.WriteString(" " + col.title + " |")
			n++
			if col.path != "" {
				b.WriteString(" minus the first |")
				n++
			}
		}
		b.WriteString("\n|---|" + strings.Repeat("---:|", n) + "\n")
		variants := c.judge(k)
		for i, s := range c.systems {
			if c.refused[i] == "" {
				fmt.Fprintf(b, "| %s |%s\n", s.name, c.row(i, k, variants[s.name]))
			}
		}
	}
	for i, s := range c.systems {
		if c.refused[i] != "" {
			fmt.Fprintf(b, "\n`%s` is rejected: %s.\n", s.name, c.refused[i])
		}
	}
}

// row writes the row of a system at a point; v is nil for the first system.
func (c *contest) row(system, point int, v *verdict.Variant) string {
	var b strings.Builder
	for _, col := range columns() {
		b.WriteString(" " + number(c.mean(system, point, col.of)) + " |")
		if col.path == "" {
			continue
		}
		cell := ""
		if v != nil {
			cell = difference(v, col.path)
		}
		b.WriteString(" " + cell + " |")
	}
	return b.String()
}

// difference writes the difference of a variant in a metric, with its interval and a mark if it is significant.
func difference(v *verdict.Variant, path string) string {
	for _, d := range v.Metrics {
		if d.Path != path || d.Difference == nil || d.CI95 == nil {
			continue
		}
		mark := ""
		switch d.Verdict {
		case verdict.Pass:
			mark = " ▼"
		case verdict.Fail:
			mark = " ▲"
		}
		return fmt.Sprintf("%s ± %s%s", signed(*d.Difference), number((d.CI95[1]-d.CI95[0])/2), mark)
	}
	return "–"
}

func number(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return layout.Digits(v)
}

func signed(v float64) string {
	if v < 0 {
		return "−" + number(-v)
	}
	return "+" + number(v)
}

func (c *contest) title() string {
	return map[string]string{
		"conversations": "Conversations on eight L40S",
		"recorded":      "The recorded hour on eight times four H100",
		"stale":         "Routers with old metrics",
		"front-ends":    "Several front ends",
	}[c.name]
}
