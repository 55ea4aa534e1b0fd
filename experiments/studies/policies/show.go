package main

import (
	"fmt"
	"math"
	"strings"

	"clifftop/report"
	"clifftop/report/plot"
)

type column struct {
	title        string
	milliseconds bool
	of           func(*report.Summary) *float64
}

func columns() []column {
	return []column{
		{"Output tokens/s", false, func(s *report.Summary) *float64 { return s.Throughput.OutputTokensPerS }},
		{"TTFT p50", true, func(s *report.Summary) *float64 { return s.Latency.TTFT.P50 }},
		{"TTFT p99", true, func(s *report.Summary) *float64 { return s.Latency.TTFT.P99 }},
		{"ITL p99", true, func(s *report.Summary) *float64 { return s.Latency.ITL.P99 }},
		{"Preemptions", false, func(s *report.Summary) *float64 { v := float64(s.System.Preemptions); return &v }},
		{"Recomputed, %", false, recomputed},
		{"Fairness (Jain)", false, (*report.Summary).Fairness},
	}
}

// recomputed returns the fraction of computed tokens that are recomputed, in %.
func recomputed(s *report.Summary) *float64 {
	t := s.Tokens
	all := float64(t.Input - t.CachedInput + t.Output + t.Recomputed)
	if all == 0 {
		return nil
	}
	v := 100 * float64(t.Recomputed) / all
	return &v
}

// table writes a traffic's results as Markdown.
func (t *traffic) table(b *strings.Builder, names []string) {
	fmt.Fprintf(b, "\n## %s\n\nvllm saturates at %.3g requests/s. Latencies are in ms.\n", t.name, t.saturation)
	for k, load := range loads {
		fmt.Fprintf(b, "\n**At %.0f %% of this rate**\n\n| policy |", 100*load)
		for _, c := range columns() {
			b.WriteString(" " + c.title + " |")
		}
		b.WriteString("\n|---|" + strings.Repeat("---:|", len(columns())) + "\n")
		for i, name := range names {
			b.WriteString("| " + name + " |")
			for _, c := range columns() {
				cell := "–"
				if v := c.of(t.results[i][k]); v != nil {
					cell = number(*v)
				}
				b.WriteString(" " + cell + " |")
			}
			b.WriteString("\n")
		}
	}
}

// number writes three significant digits.
func number(v float64) string {
	if math.Abs(v) >= 100 || v == math.Trunc(v) {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// picture shows a traffic's throughput and tails.
func (t *traffic) picture(names []string) *plot.Figure {
	d := t.scenario
	c := plot.Comparison{
		Title: title(t, names),
		Caption: fmt.Sprintf("%s on one %s, %s; 100 %% is %.3g requests/s, where vllm saturates", d.Model, d.GPU,
			t.name, t.saturation),
		Systems: names,
	}
	for _, load := range loads {
		c.Loads = append(c.Loads, fmt.Sprintf("%.0f %%", 100*load))
	}
	for _, k := range []int{0, 2, 3} {
		column := columns()[k]
		m := plot.ComparisonMetric{Title: column.title, Milliseconds: column.milliseconds}
		for i := range names {
			var row []float64
			for k := range loads {
				v := math.NaN()
				if x := column.of(t.results[i][k]); x != nil {
					v = *x
				}
				row = append(row, v)
			}
			m.Values = append(m.Values, row)
		}
		c.Metrics = append(c.Metrics, m)
	}
	return c.Figure()
}

// title names the policies with the smallest and the largest ITL p99 below saturation, among those that keep up.
func title(t *traffic, names []string) string {
	const at = 1 // 80 % load
	best, worst := -1, -1
	for i := range names {
		x := t.results[i][at]
		if !keepsUp(x) || x.Latency.ITL.P99 == nil {
			continue
		}
		if best < 0 || *x.Latency.ITL.P99 < *t.results[best][at].Latency.ITL.P99 {
			best = i
		}
		if worst < 0 || *x.Latency.ITL.P99 > *t.results[worst][at].Latency.ITL.P99 {
			worst = i
		}
	}
	if best < 0 {
		return t.name + ": no policy keeps up"
	}
	stall := func(i int) string { return number(*t.results[i][at].Latency.ITL.P99) }
	return fmt.Sprintf("%s at %.0f %% load: ITL p99 is %s ms under %s and %s ms under %s",
		strings.ToUpper(t.name[:1])+t.name[1:], 100*loads[at], stall(best), names[best], stall(worst), names[worst])
}

// keepsUp reports whether requests completed at nearly the rate at which they arrived.
func keepsUp(s *report.Summary) bool {
	x := s.Throughput
	return x.RequestsPerS != nil && x.OfferedRequestsPerS != nil && *x.RequestsPerS > 0.9**x.OfferedRequestsPerS
}
