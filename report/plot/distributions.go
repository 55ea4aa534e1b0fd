package plot

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/report"
	"clifftop/report/chart"
	"clifftop/report/curve"
	"clifftop/report/stats"
)

// NamedRun is a run with a name for the legend. Most pictures need its Detail.
type NamedRun struct {
	Name string // such as "knee, 13.5 req/s"; may be empty for a single run
	*report.Summary
}

// SelectedRuns returns up to three runs of a sweep: the lowest load, the knee, and the collapse, the first load without
// a steady state or the highest load.
func SelectedRuns(c *curve.Curve) []NamedRun {
	v := newSweep(c)
	var out []NamedRun
	add := func(name string, load float64) {
		for _, p := range v.points {
			if p.load == load && !slices.ContainsFunc(out, func(o NamedRun) bool { return o.Summary == p.summary }) {
				out = append(out, NamedRun{strings.TrimPrefix(name+", "+v.load(load), ", "), p.summary})
			}
		}
	}
	if len(v.points) == 0 {
		return nil
	}
	add("light", v.points[0].load)
	if v.Knee != nil {
		add("knee", v.Knee.Value)
	}
	last := v.points[len(v.points)-1].load
	from, unsteady := v.points.unsteadyFrom()
	switch {
	case v.Collapse != nil:
		add("collapse", v.Collapse.Value)
	case unsteady && v.open():
		add("overload", from)
	default:
		add("highest", last)
	}
	return out
}

// Latencies are the distributions of TTFT, TPOT and end-to-end latency of runs, with the limits of the objective. Of
// runs without details they are drawn through the percentiles that every summary has.
func Latencies(runs []NamedRun) *chart.Lines {
	note := "Completed requests that arrived in the window. Points lie at the edges of bins at most 3 % wide; the " +
		"percentiles in tables are exact."
	exact := !slices.ContainsFunc(runs, func(r NamedRun) bool { return r.Detail == nil })
	if !exact {
		note = "Completed requests that arrived in the window. The points are p50, p90, p95, p99, p99.9 and the " +
			"maximum, as far as there are requests enough to know them; what lies between is not kept."
		if slices.ContainsFunc(runs, func(r NamedRun) bool { return r.Replications != nil }) {
			note += " Of several runs the percentiles are means."
		}
	}
	c := &chart.Lines{Title: latenciesTitle(runs), Beside: true, Notes: []string{note}}
	for _, m := range []struct {
		key, title string
		shape      func(*report.Detail) *stats.Shape
		of         func(*report.Latency) *report.Distribution
	}{
		{"ttft", "Time to first token (TTFT)", func(d *report.Detail) *stats.Shape {
			return &d.TTFT
		}, func(l *report.Latency) *report.Distribution { return &l.TTFT }},
		{"tpot", "Time per output token (TPOT)", func(d *report.Detail) *stats.Shape {
			return &d.TPOT
		}, func(l *report.Latency) *report.Distribution { return &l.TPOT }},
		{"e2e", "End to end", func(d *report.Detail) *stats.Shape {
			return &d.E2E
		}, func(l *report.Latency) *report.Distribution { return &l.E2E }},
	} {
		p := chart.Panel{
			Title: m.title, X: chart.Scale{Title: "ms or s, log scale", Unit: chart.Milliseconds, Log: true},
			Y: chart.Scale{Title: "% of requests that take at most so long", Unit: chart.Fraction, Min: 0, Max: 1.0001},
		}
		if !exact {
			p.Y.Min = 0.5 // below the median nothing is kept
		}
		for _, r := range runs {
			line := chart.Line{Name: r.Name}
			if exact {
				line.Points = cumulative(m.shape(r.Detail))
			} else {
				line.Points = percentiles(m.of(&r.Latency))
			}
			p.Lines = append(p.Lines, line)
		}
		p.Rules = limitsOn(runs, m.key)
		c.Panels = append(c.Panels, p)
	}
	return c
}

// percentiles are the points of a distribution that summaries keep.
func percentiles(d *report.Distribution) []chart.Point {
	var points []chart.Point
	for _, q := range []struct {
		part  float64
		value *float64
		least int64 // samples
	}{{.5, d.P50, 2}, {.9, d.P90, 10}, {.95, d.P95, 20}, {.99, d.P99, report.MinSamplesP99},
		{.999, d.P999, report.MinSamplesP999},
		{1, d.Max, 1}} {
		if v, ok := number(q.value); ok && v > 0 && d.N >= q.least {
			points = append(points, chart.Point{X: v, Y: q.part})
		}
	}
	return points
}

// cumulative is the part of the values up to each bin's end.
func cumulative(s *stats.Shape) []chart.Point {
	var points []chart.Point
	below := int64(0)
	for i, b := range s.Bins {
		if i == 0 {
			points = append(points, chart.Point{X: b.Low})
		}
		below += b.N
		points = append(points, chart.Point{X: b.High, Y: float64(below) / float64(s.N)})
	}
	return points
}

// limitsOn are the objective's limits on a metric.
func limitsOn(runs []NamedRun, metric string) []chart.Rule {
	var out []chart.Rule
	for _, r := range runs {
		if slo := r.Goodput.SLO; slo != nil {
			for _, o := range slo.Objectives {
				if o.Metric == metric {
					l := limit{o.Metric, o.Statistic(), o.Limit.Milliseconds()}
					out = append(out, chart.Rule{At: l.ms, Vertical: true,
						Name: fmt.Sprintf("SLO %s %s", l.statistic(), duration(l.ms, 3)), Limit: true})
				}
			}
			return out // they share it
		}
	}
	return nil
}

func latenciesTitle(runs []NamedRun) string {
	var parts []string
	for _, r := range runs {
		half, known := number(r.Latency.TTFT.P50)
		tail, ok := number(r.Latency.TTFT.P95)
		if known && ok {
			parts = append(parts, strings.TrimPrefix(fmt.Sprintf("%s: %s and %s", r.Name, duration(half, 2),
				duration(tail, 2)), ": "))
		}
	}
	switch len(parts) {
	case 0:
		return "No request completed in the window"
	case 1:
		return "Half of the requests, and 95 %, see a first token within " + parts[0]
	}
	return "Half of the requests, and 95 %, see a first token within: " + strings.Join(parts, "; ")
}

// gapStep is the ratio of the edges of a bin of gaps.
const gapStep = 1.05

// Gaps are the distributions of the gaps between the tokens of an answer, on logarithmic scales, so that what is rare
// and long shows: iterations that a prompt makes long stand out on the right like the teeth of a comb.
func Gaps(runs []NamedRun) *chart.Lines {
	p := chart.Panel{
		X: chart.Scale{Title: "Gap between two output tokens, ms or s, log scale", Unit: chart.Milliseconds,
			Log: true},
		Y: chart.Scale{Title: "% of all gaps, in steps of 5 %, log scale", Unit: chart.Fraction, Log: true},
	}
	for _, r := range runs {
		p.Lines = append(p.Lines, chart.Line{Name: r.Name, Points: inSteps(&r.Detail.ITL), Stepped: true,
			Filled: len(runs) == 1})
	}
	if len(runs) == 1 {
		d := &runs[0].Latency.ITL
		for _, q := range []struct {
			name string
			ms   *float64
		}{{"p50", d.P50}, {"p99", d.P99}} {
			if ms, ok := number(q.ms); ok {
				p.Rules = append(p.Rules, chart.Rule{At: ms, Vertical: true, Name: q.name + " " + duration(ms, 2)})
			}
		}
	}
	p.Rules = append(p.Rules, limitsOn(runs, "itl")...)
	return &chart.Lines{Title: gapsTitle(runs), Panels: []chart.Panel{p}}
}

// inSteps divides a distribution anew, in steps that are alike on a logarithmic axis. The last point ends the last one.
func inSteps(s *stats.Shape) []chart.Point {
	var bins []stats.Bin
	for _, b := range s.Bins {
		if b.Low > 0 {
			bins = append(bins, b)
		}
	}
	if len(bins) == 0 {
		return nil
	}
	at := func(ms float64) float64 { return math.Log(ms) / math.Log(gapStep) }
	first := int(math.Floor(at(bins[0].Low)))
	last := int(math.Floor(at(bins[len(bins)-1].High)))
	shares := make([]float64, last-first+1)
	for _, b := range bins {
		lo, hi := at(b.Low), at(b.High)
		for k := int(math.Floor(lo)); k <= int(math.Floor(hi)); k++ {
			part := 1.0
			if hi > lo {
				part = (min(hi, float64(k+1)) - max(lo, float64(k))) / (hi - lo)
			}
			shares[k-first] += part * float64(b.N) / float64(s.N)
		}
	}
	var points []chart.Point
	for k, share := range shares {
		points = append(points, chart.Point{X: math.Pow(gapStep, float64(first+k)), Y: share})
	}
	return append(points, chart.Point{X: math.Pow(gapStep, float64(last+1))})
}

func gapsTitle(runs []NamedRun) string {
	if len(runs) == 0 {
		return "No gaps were measured"
	}
	r := runs[len(runs)-1]
	if i := slices.IndexFunc(runs, func(c NamedRun) bool { return strings.HasPrefix(c.Name, "knee") }); i >= 0 {
		r = runs[i]
	}
	half, known := number(r.Latency.ITL.P50)
	tail, ok := number(r.Latency.ITL.P99)
	if !known || !ok || half <= 0 {
		return "Gaps between output tokens"
	}
	text := fmt.Sprintf("Half of the gaps between tokens are within %s; one in a hundred is longer than %s, %s "+
		"times that", duration(half, 2), duration(tail, 2), sig(tail/half, 2))
	if tail < 1.5*half {
		text = fmt.Sprintf("Tokens arrive evenly: half of the gaps between tokens are within %s, 99 %% within %s",
			duration(half, 2), duration(tail, 2))
	}
	if r.Name != "" {
		text = upperFirst(r.Name) + ": " + strings.ToLower(text[:1]) + text[1:]
	}
	return text
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// AllRuns returns every run of a sweep, named by its load.
func AllRuns(c *curve.Curve) []NamedRun {
	v := newSweep(c)
	var out []NamedRun
	for _, p := range v.points {
		out = append(out, NamedRun{v.load(p.load), p.summary})
	}
	return out
}

// Load writes a load of a sweep with its unit.
func Load(c *curve.Curve, value float64) string { return newSweep(c).load(value) }
