package plot

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/plot/vg"

	"clifftop/report/chart"
	"clifftop/report/curve"
)

// names are the pictures of a sweep, for [Curve].
func names() []string {
	return []string{"sweep", "operating", "throughput", "latency", "interactivity", "kv"}
}

// Curve is a picture of a sweep:
//
//   - operating: throughput against TTFT, with the loads along the curve
//   - throughput: throughput against load
//   - latency: percentiles of TTFT and TPOT against load
//   - interactivity: throughput per GPU against the speed that each user sees
//   - kv: use of the KV cache, and preemptions, against load
//   - sweep: all of these on one page
func Curve(c *curve.Curve, name string) (*Figure, error) {
	v := newSweep(c)
	switch name {
	case "operating":
		f := v.page(v.title(), 380, row{1, []*panel{v.operating()}})
		f.notes = slices.Concat(v.notes(), v.barNotes(), v.failureNotes())
		return f, nil
	case "throughput":
		f := v.page(v.throughputTitle(), 340, row{1, []*panel{v.throughput()}})
		f.notes = append(v.notes(), v.barNotes()...)
		return f, nil
	case "latency":
		f := v.page(v.latencyTitle(), 310, row{1, []*panel{v.latency("ttft"), v.latency("tpot")}})
		f.notes = append(v.notes(), v.latencyNotes()...)
		return f, nil
	case "interactivity":
		return v.page(v.interactivityTitle(), 340, row{1, []*panel{v.interactivity()}}), nil
	case "kv":
		return v.page(v.kvTitle(), 390, row{1.25, []*panel{v.kv()}}, row{1, []*panel{v.preemptions()}}), nil
	case "sweep":
		return v.overview(), nil
	}
	return nil, fmt.Errorf("plot: unknown picture %q (want one of %s)", name, strings.Join(names(), ", "))
}

// WriteAll writes every picture of a sweep, as [Figure.WriteFiles] does. The caption stands below the titles. The
// pictures are drawn at the same time, and kept in their order.
func WriteAll(c *curve.Curve, caption string, keep func(name string, fill func(io.Writer) error) error) error {
	var files []pictureFile
	for _, name := range names() {
		f, err := Curve(c, name)
		if err != nil {
			return err
		}
		f.Caption = caption
		files = append(files, pictureFile{name: name + ".png", draw: f.WritePNG},
			pictureFile{name: name + ".svg", draw: f.WriteSVG})
	}
	var all sync.WaitGroup
	for i := range files {
		all.Go(func() { files[i].err = files[i].draw(&files[i].data) })
	}
	all.Wait()
	for i := range files {
		if err := files[i].err; err != nil {
			return err
		}
		if err := keep(files[i].name, func(w io.Writer) error {
			_, err := w.Write(files[i].data.Bytes())
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// pictureFile is a picture in one format.
type pictureFile struct {
	name string
	draw func(io.Writer) error
	data bytes.Buffer
	err  error
}

const pageWidth = vg.Length(560)

// page is a figure of about a screen's width.
func (v *sweep) page(title string, height vg.Length, rows ...row) *Figure {
	return &Figure{Title: title, detail: v.detail(), notes: v.notes(), width: pageWidth, height: height, rows: rows}
}

func (v *sweep) overview() *Figure {
	operating, throughput, interactivity := v.operating(), v.throughput(), v.interactivity()
	operating.title = "Throughput against latency"
	throughput.title, interactivity.title = "Throughput", "Speed for each user"
	throughput.compact, interactivity.compact = true, true
	f := v.page(v.title(), 1010,
		row{1.45, []*panel{operating}},
		row{1.05, []*panel{throughput, interactivity}},
		row{1, []*panel{v.latency("ttft"), v.latency("tpot")}},
		row{0.9, []*panel{v.kv(), v.preemptions()}})
	f.width = 640
	f.notes = append(v.notes(), v.latencyNotes()...)
	return f
}

func (v *sweep) loadAxis() axis {
	a := axis{title: v.loadTitle(), log: v.points.clumped(), unit: chart.Whole}
	if a.log {
		a.title += " (log scale)"
	}
	if n := len(v.points); n > 0 {
		lo, hi := v.points[0].load, v.points[n-1].load
		switch {
		case a.log:
			a.min, a.max = lo/1.15, hi*1.15
		case lo == hi && lo > 0:
			a.min, a.max = 0, 2*lo
		case lo == hi:
			a.min, a.max = lo-1, lo+1
		case lo >= 0:
			a.min, a.max = 0, hi+0.02*hi
		default:
			a.min, a.max = lo-0.02*(hi-lo), hi+0.02*(hi-lo)
		}
	}
	return a
}

// unsteady shades the loads without a steady state.
func (v *sweep) unsteady() []band {
	from, ok := v.saturatedFrom()
	if !ok {
		return nil
	}
	if v.Saturation != nil && v.open() {
		return []band{{from: from, to: 1e300, name: "no steady state"}}
	}
	edge := from
	for _, p := range v.points {
		if p.load < from {
			edge = p.load
		}
	}
	name := "not settled"
	if v.open() {
		name = "no steady state"
	}
	if edge == from {
		edge = 0
	}
	return []band{{from: (edge + from) / 2, to: 1e300, name: name}}
}

// landmark is a load with a name.
type landmark struct {
	load, tps float64
	name      string
	shape     shape
}

// landmarks are knee, peak and collapse, as far as there are any. A peak at the highest load is none.
func (v *sweep) landmarks() []landmark {
	var out []landmark
	peak := v.Peak
	if peak != nil && (peak.AtEdge || len(v.points) < 2 || v.Level()) {
		peak = nil
	}
	if v.Knee != nil {
		name := "knee"
		if peak != nil && peak.Value == v.Knee.Value {
			name, peak = "knee and peak", nil
		}
		out = append(out, landmark{v.Knee.Value, v.Knee.OutputTokensPerS, name, diamond})
	}
	if peak != nil {
		name := "peak"
		if v.LevelsOff() {
			name = "plateau"
		}
		out = append(out, landmark{peak.Value, peak.OutputTokensPerS, name, triangle})
	}
	if v.Collapse != nil {
		out = append(out, landmark{v.Collapse.Value, v.Collapse.OutputTokensPerS, "collapse", inverted})
	}
	return out
}

// landmarkRules are the landmarks of a panel against load.
func (v *sweep) landmarkRules() []rule {
	var out []rule
	for _, m := range v.landmarks() {
		out = append(out, rule{at: m.load, vertical: true, name: m.name, color: grey, shape: m.shape, marked: true})
	}
	return out
}
