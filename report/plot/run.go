package plot

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"

	"clifftop/report"
	"clifftop/report/chart"
)

// Run is a picture of one run over time: requests running and waiting, use of the KV cache, output, and the number of
// replicas, where they come and go.
// The summary may be nil.
func Run(s *report.Summary, buckets []report.SeriesPoint) *Figure {
	r := newTimes(buckets)
	requests, kv, output := r.panel(), r.panel(), r.panel()

	requests.title, requests.y.title = "Requests", "number, mean over each interval"
	requests.series = []series{
		r.series("waiting", vermilion, func(p *report.SeriesPoint) *float64 { return &p.QueueMean }),
		r.series("running", blue, func(p *report.SeriesPoint) *float64 { return &p.RunningMean }),
	}
	kv.title, kv.y.title, kv.y.unit = "KV cache", "% of usable blocks in use", chart.Fraction
	kv.y.min, kv.y.max = 0, 1.04
	kv.series = []series{r.series("", blue, func(p *report.SeriesPoint) *float64 { return p.KVUsageMean })}
	if len(kv.series[0].points) == 0 {
		kv.empty = "The KV cache has no limit"
	}
	output.title, output.y.title = "Output", "tokens/s, whole system"
	output.series = []series{r.series("", green, func(p *report.SeriesPoint) *float64 {
		rate := float64(p.OutputTokens) / (p.EndS - p.StartS)
		return &rate
	})}
	rows := []row{{1.2, []*panel{requests}}, {1, []*panel{kv}}, {1, []*panel{output}}}
	height := vg.Length(480)
	if len(buckets) > 0 && buckets[0].ReplicasReady != nil {
		rows, height = append(rows, row{1, []*panel{r.replicas()}}), 600
	}
	rows[len(rows)-1].panels[0].x.title = "Time since the start, " + r.unit
	for _, row := range rows {
		if len(buckets) == 0 {
			row.panels[0].empty = "Nothing was recorded"
		}
	}
	return &Figure{Title: runTitle(s), notes: runNotes(s), width: pageWidth, height: height, rows: rows}
}

// replicas is the panel of a fleet whose replicas come and go.
func (r *times) replicas() *panel {
	p := r.panel()
	p.title, p.y.title = "Replicas", "number, mean over each interval"
	p.series = []series{
		r.series("paid for", vermilion, func(p *report.SeriesPoint) *float64 { return p.ReplicasPaid }),
		r.series("ready", blue, func(p *report.SeriesPoint) *float64 { return p.ReplicasReady }),
	}
	return p
}

// times is a run's time series in a suitable unit.
type times struct {
	buckets []report.SeriesPoint
	unit    string
	scale   float64 // units per second
	end     float64 // of the run, in the unit
	bands   []band
}

func newTimes(buckets []report.SeriesPoint) *times {
	r := &times{buckets: buckets, unit: "s", scale: 1}
	if n := len(buckets); n > 0 {
		r.end = buckets[n-1].EndS
	}
	switch {
	case r.end > 3*3600:
		r.unit, r.scale = "hours", 1.0/3600
	case r.end > 600:
		r.unit, r.scale = "minutes", 1.0/60
	}
	r.end *= r.scale
	first, last := math.Inf(1), math.Inf(-1)
	for _, b := range buckets {
		if b.InWindow {
			first, last = min(first, b.StartS*r.scale), max(last, b.EndS*r.scale)
		}
	}
	if first < last {
		if first > 0 {
			r.bands = append(r.bands, band{0, first, "warm-up"})
		}
		if last < r.end {
			r.bands = append(r.bands, band{last, r.end, "drain"})
		}
	}
	return r
}

func (r *times) panel() *panel {
	return &panel{
		x:     axis{min: 0, max: r.end, unit: chart.Whole},
		y:     axis{},
		bands: r.bands,
		ends:  true,
	}
}

func (r *times) series(name string, color colour, value func(*report.SeriesPoint) *float64) series {
	s := series{name: name, color: color, width: 1.4}
	for i := range r.buckets {
		b := &r.buckets[i]
		if y, ok := number(value(b)); ok {
			s.points = append(s.points, xy{x: (b.StartS + b.EndS) / 2 * r.scale, y: y})
			if b.InWindow {
				s.anchor = len(s.points)
			}
		}
	}
	// The name stands a little before the window's end, where the levels are telling.
	s.anchor -= s.anchor / 6
	return s
}

func runTitle(s *report.Summary) string {
	if s == nil {
		return "One run over time"
	}
	if s.Window.Unsettled() {
		if g := s.Window.GrowthRequestsPerS; g != nil && *g > 0 {
			return fmt.Sprintf("No steady state: the queue grows by %s requests/s", sig(*g, 2))
		}
		return "The run had not settled"
	}
	text := "One run over time"
	running, known := number(s.Concurrency.Running.Mean)
	waiting, ok := number(s.Concurrency.QueueDepth.Mean)
	if known && ok {
		text = fmt.Sprintf("%s requests running and %s waiting on average", sig(running, 2), sig(waiting, 2))
	}
	if use, ok := number(s.System.KVUsage.Mean); ok {
		text += fmt.Sprintf("; KV cache %s full", percent(use))
	}
	if ms, ok := number(s.Latency.TTFT.P95); ok {
		text += "; TTFT p95 " + duration(ms, 2)
	}
	return text
}

func runNotes(s *report.Summary) []string {
	if s == nil {
		return nil
	}
	var notes []string
	if n := s.System.Preemptions; n > 0 {
		notes = append(notes, fmt.Sprintf("%s preemptions in the window.", scaled(float64(n), 3)))
	}
	if s.Partial {
		notes = append(notes, "Interrupted: the run is incomplete.")
	}
	return notes
}
