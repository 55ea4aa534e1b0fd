package plot

import (
	"fmt"
	"slices"
	"strings"

	"clifftop/report"
	"clifftop/report/chart"
)

// TokenWaste shows what becomes of the tokens that runs emit; nil where all of them are of use, or nothing is known.
func TokenWaste(runs []NamedRun) *chart.Waterfall {
	w := &chart.Waterfall{Unit: "output tokens of the whole run", Stages: []string{"emitted", "successful"}}
	judged := !slices.ContainsFunc(runs, func(r NamedRun) bool { return r.Tokens.OutputGood == nil })
	if judged {
		w.Stages = append(w.Stages, "good (within the SLO)")
	}
	lost := false
	var parts []string
	for _, r := range runs {
		t := &r.Tokens
		values := []float64{float64(t.Output), float64(min(t.OutputSuccessful, t.Output))}
		if judged {
			values = append(values, min(values[1], float64(*t.OutputGood)))
		}
		last := values[len(values)-1]
		lost = lost || last < values[0]
		if values[0] > 0 {
			parts = append(parts, strings.TrimPrefix(r.Name+": ", ": ")+percent(last/values[0]))
		}
		w.Groups = append(w.Groups, chart.WaterfallGroup{Name: r.Name, Values: values})
	}
	if !lost || len(parts) == 0 {
		return nil
	}
	what := "are in completed requests"
	if judged {
		what = "are in requests within the SLO"
	}
	w.Title = fmt.Sprintf("Of the tokens that were emitted, %s %s", strings.Join(parts, "; "), what)
	return w
}

// losses are the parts of GPU time that do not serve anybody, in the order in which they are taken away.
var losses = []struct {
	name string
	of   func(*report.GPUSeconds) *float64
}{
	{"idle", func(g *report.GPUSeconds) *float64 { return g.Idle }},
	{"waits for the host", func(g *report.GPUSeconds) *float64 { return g.Host }},
	{"pipeline bubbles", func(g *report.GPUSeconds) *float64 { return g.Bubble }},
	{"copies of KV", func(g *report.GPUSeconds) *float64 { return g.Swap }},
	{"padding", func(g *report.GPUSeconds) *float64 { return g.Padding }},
	{"attempts without result", func(g *report.GPUSeconds) *float64 { return g.Cancelled }},
	{"rejected drafts", func(g *report.GPUSeconds) *float64 { return g.Rejected }},
	{"cache misses", func(g *report.GPUSeconds) *float64 { return g.CacheMiss }},
	{"recomputation", func(g *report.GPUSeconds) *float64 { return g.Recompute }},
}

// GPUWaste shows what becomes of the GPUs' time in the windows of runs: what is left of all of it after idleness,
// padding, cancelled work and the rest; nil where it is unknown. Parts that no run has are left out.
func GPUWaste(runs []NamedRun) *chart.Waterfall {
	w := &chart.Waterfall{Unit: "% of the GPU time of the window", Stages: []string{"all"}}
	var known []int
	for k, l := range losses {
		if slices.ContainsFunc(runs, func(r NamedRun) bool {
			v, ok := number(l.of(&r.System.GPUSeconds))
			return ok && v > 0
		}) {
			known = append(known, k)
			w.Stages = append(w.Stages, "less "+l.name)
		}
	}
	w.Stages = append(w.Stages, "useful")
	var parts []string
	for _, r := range runs {
		g := &r.System.GPUSeconds
		useful, ok := number(g.Useful)
		if !ok {
			continue
		}
		all := useful
		for _, l := range losses {
			v, _ := number(l.of(g))
			all += v
		}
		if all <= 0 {
			continue
		}
		left, values := all, []float64{100}
		for _, k := range known {
			v, _ := number(losses[k].of(g))
			left -= v
			values = append(values, 100*max(left, 0)/all)
		}
		w.Groups = append(w.Groups, chart.WaterfallGroup{Name: r.Name, Values: append(values, 100*useful/all)})
		parts = append(parts, strings.TrimPrefix(r.Name+": ", ": ")+percent(useful/all))
	}
	if len(parts) == 0 {
		return nil
	}
	w.Title = fmt.Sprintf("Of the GPU’s time, %s does useful work", parts[0])
	if len(parts) > 1 {
		w.Title = "Useful part of the GPU’s time: " + strings.Join(parts, "; ")
	}
	return w
}

// Operating is the roofline with where runs operate while the GPU is busy; nil where the peaks or the use of them are
// unknown. peak is in FLOPs per second, bandwidth in bytes per second.
func Operating(peak, bandwidth float64, runs []NamedRun) *chart.Lines {
	line := chart.Line{Name: "runs", Dots: true}
	if len(runs) == 1 {
		line.Name = "this run"
	}
	compute, memory := 0.0, 0.0 // of the last one
	for _, r := range runs {
		flops, known := number(r.System.MFU)
		bytes, ok := number(r.System.MBU)
		busy, some := number(r.System.BusyFraction)
		if !known || !ok || !some || bytes <= 0 || busy <= 0 || flops <= 0 {
			continue
		}
		compute, memory = flops/busy, bytes/busy
		line.Points = append(line.Points,
			chart.Point{X: flops * peak / (bytes * bandwidth), Y: compute * peak / 1e12, Label: r.Name})
	}
	if len(line.Points) == 0 || !(peak > 0) || !(bandwidth > 0) {
		return nil
	}
	p := chart.Roofline(peak, bandwidth, line)
	p.Lines[0].Name = "roof"
	nearer := "memory bandwidth"
	if line.Points[len(line.Points)-1].X > peak/bandwidth {
		nearer = "arithmetic"
	}
	at := ""
	if len(runs) > 1 {
		at = ", at " + runs[len(runs)-1].Name
	}
	return &chart.Lines{
		Title: fmt.Sprintf("%s is the nearer roof%s: while busy, the GPU reaches %s of its memory bandwidth and %s "+
			"of its arithmetic",
			upperFirst(nearer), at, percent(memory), percent(compute)),
		Panels: []chart.Panel{p},
		Notes:  []string{"Averages over the window, while the GPU is busy. The attention of prompts is left out."},
	}
}
