package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/report"
	"clifftop/report/chart"
	"clifftop/report/layout"
	"clifftop/report/plot"
)

// results holds the runs of the fleets on one day, by fleet and seed.
type results struct {
	day    string
	fleets []fleet
	runs   [][]outcome
}

// of returns the runs of a fleet.
func (r *results) of(name string) []outcome {
	return r.runs[slices.IndexFunc(r.fleets, func(f fleet) bool { return f.name == name })]
}

type column struct {
	title string
	of    func(*report.Summary) float64
	write func(float64) string
}

var (
	hours   = func(v float64) string { return fmt.Sprintf("%.0f", v) }
	percent = func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }
)

var columns = []column{
	{"paid GPU hours", paid, hours}, {"idle GPU hours", idle, hours}, {"most replicas", highest, hours},
	{"ready replicas", ready, layout.Digits}, {"starting replicas", starting, layout.Digits},
	{"good requests", attainment, percent}, {"TTFT p95, s", ttftP95, layout.Digits},
	{"TTFT p99, s", ttftP99, layout.Digits},
	{"$ per million good tokens", price, layout.Digits},
}

func (r *results) rows(b *strings.Builder, heads ...string) {
	fmt.Fprintf(b, "| %s |", strings.Join(heads, " | "))
	for _, c := range columns {
		fmt.Fprintf(b, " %s |", c.title)
	}
	b.WriteString("\n|" + strings.Repeat("---|", len(heads)) + strings.Repeat("---:|", len(columns)) + "\n")
	for i, f := range r.fleets {
		fmt.Fprintf(b, "| %s |", f.name)
		if len(heads) > 1 {
			fmt.Fprintf(b, " %s |", f.cold)
		}
		for _, c := range columns {
			fmt.Fprintf(b, " %s |", c.write(mean(r.runs[i], c.of)))
		}
		b.WriteString("\n")
	}
}

// table writes a day as Markdown.
func (x *study) table(b *strings.Builder, r *results) {
	fmt.Fprintf(b, "\n## %s\n\nThe busiest hour has %.2f times the mean load. The SLO needs %d replicas at the mean "+
		"rate and %d at the rate of the busiest hour. Means over %d seeds.\n\n",
		r.day, peakOf(r.day), x.mean[r.day], x.peak[r.day], len(seeds))
	r.rows(b, "Fleet")
}

func coldTable(b *strings.Builder, r *results) {
	fmt.Fprintf(b, "\n## Duration of a cold start\n\n%s, by mean cold start.\n\n", r.day)
	r.rows(b, "Fleet", "Cold start")
}

// costs shows the paid GPU hours, the share of good requests and the TTFT.
func costs(all []results) *plot.Figure {
	c := plot.Comparison{
		Title:   costTitle(&all[0]),
		Caption: "llama-3.1-8b on a10g, chat, 3 requests/s on average; mean of five seeds; cold start 3 min",
		Loads:   days,
		Notes:   []string{"Good requests get a first token within 3 s and then one every 100 ms."},
	}
	for _, f := range fleets {
		c.Systems = append(c.Systems, f.name)
	}
	for _, m := range []struct {
		title string
		of    func(*report.Summary) float64
		late  bool
	}{
		{"paid GPU hours per day", paid, false},
		{"good requests, %", func(s *report.Summary) float64 { return 100 * attainment(s) }, false},
		{"TTFT p95", func(s *report.Summary) float64 { return 1e3 * ttftP95(s) }, true},
	} {
		metric := plot.ComparisonMetric{Title: m.title, Milliseconds: m.late}
		for i := range fleets {
			var row []float64
			for k := range all {
				row = append(row, mean(all[k].runs[i], m.of))
			}
			metric.Values = append(metric.Values, row)
		}
		c.Metrics = append(c.Metrics, metric)
	}
	return c.Figure()
}

// costTitle returns the title of the picture: the savings, and the cost of a bad metric.
func costTitle(r *results) string {
	saved := 1 - mean(r.of(kedaConcurrent), paid)/mean(r.of(forPeak), paid)
	return fmt.Sprintf("Scaling by requests in the system saves %.0f %% of the GPU hours; by queue length, %.0f %% of "+
		"the requests are bad",
		100*saved, 100*(1-mean(r.of(kedaWaiting), attainment)))
}

// quarters is the number of intervals in the picture of a day: quarters of an hour.
const quarters = 96

// course returns the picture of a day, with the first seed.
func course(r *results) *chart.Lines {
	replicas := chart.Panel{Title: "Ready replicas", X: chart.Scale{Unit: chart.Whole, Max: 24},
		Y: chart.Scale{Title: "number, mean of 15 minutes", Unit: chart.Whole}}
	ttft := chart.Panel{
		Title: "Time to first token", X: chart.Scale{Title: "hour of the day", Unit: chart.Whole, Max: 24},
		Y: chart.Scale{Title: "mean of 15 minutes", Unit: chart.Milliseconds, Log: true},
	}
	for _, name := range []string{forPeak, kedaConcurrent, kedaWaiting} {
		series := r.of(name)[0].series
		n, first := chart.Line{Name: name}, chart.Line{Name: name}
		for q := range quarters {
			from, to := float64(q)*900, float64(q+1)*900
			at := (from + to) / 2 / 3600
			n.Points = append(n.Points, chart.Point{X: at,
				Y: over(series, from, to, func(p *report.SeriesPoint) (*float64, float64) {
					return p.ReplicasReady, p.EndS - p.StartS
				})})
			if y := over(series, from, to, func(p *report.SeriesPoint) (*float64, float64) {
				return p.TTFTMeanMs, float64(p.Arrivals)
			}); !math.IsNaN(y) {
				first.Points = append(first.Points, chart.Point{X: at, Y: y})
			}
		}
		replicas.Lines, ttft.Lines = append(replicas.Lines, n), append(ttft.Lines, first)
	}
	ttft.Rules = []chart.Rule{{At: 3000, Name: "limit", Limit: true}}
	return &chart.Lines{
		Title: "The queue length is too late: new replicas come when the queue is already long, and leave when it " +
			"is empty",
		Caption: "llama-3.1-8b on a10g, chat in office hours, 3 requests/s on average; seed " + fmt.Sprint(seeds[0]),
		Panels:  []chart.Panel{replicas, ttft},
	}
}

// over returns the weighted mean of a number over the points from a time to a time.
func over(series []report.SeriesPoint, from, to float64, of func(*report.SeriesPoint) (*float64, float64)) float64 {
	sum, weight := 0.0, 0.0
	for i := range series {
		if p := &series[i]; p.StartS >= from && p.StartS < to {
			if v, w := of(p); v != nil {
				sum, weight = sum+w**v, weight+w
			}
		}
	}
	return sum / weight
}
