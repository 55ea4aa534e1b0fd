package plot

import (
	"gonum.org/v1/plot/vg"

	"clifftop/report/chart"
)

// Overlay draws several systems over the same loads, a panel for each number: lines of one name have one colour in all
// panels.
type Overlay struct {
	// Title is the message of the picture; Caption says what was simulated.
	Title, Caption string
	// Load names the axis of loads.
	Load string
	// Panels stand below each other. The first is the tallest.
	Panels []OverlayPanel
	// Notes stand below.
	Notes []string
}

// OverlayPanel is a number of several systems.
type OverlayPanel struct {
	// Title names the number with its unit.
	Title string
	// Fraction says that the values are parts of 1, to be written in percent; Milliseconds that they are latencies,
	// which are drawn on a logarithmic scale.
	Fraction, Milliseconds bool
	Lines                  []OverlayLine
}

// OverlayLine is the number of one system.
type OverlayLine struct {
	Name   string
	Points []OverlayPoint
	// Quoted says that the values are not simulated: hollow black dots without a line.
	Quoted bool
}

// OverlayPoint is a value at a load, with the ends of its confidence interval, which are equal if it has none.
type OverlayPoint struct{ Load, Value, Low, High float64 }

// overlayColours go to names in the order in which they appear.
var overlayColours = []colour{vermilion, blue, green, purple, rgb(0xB07D00), rgb(0x3A94CF)}

// Figure draws the overlay.
func (o *Overlay) Figure() *Figure {
	f := &Figure{Title: o.Title, Caption: o.Caption, notes: o.Notes, width: pageWidth}
	f.height = vg.Length(110 + 155*len(o.Panels) + 12*len(o.Notes))
	colours := map[string]colour{}
	for i := range o.Panels {
		p := o.Panels[i].panel(colours)
		height := vg.Length(1)
		if i == 0 && len(o.Panels) > 1 {
			height = 1.8
		}
		if i == len(o.Panels)-1 {
			p.x.title = o.Load
		}
		f.rows = append(f.rows, row{height, []*panel{p}})
	}
	return f
}

func (o *OverlayPanel) panel(colours map[string]colour) *panel {
	p := &panel{x: axis{unit: chart.Whole}, y: axis{title: o.Title, air: 0.08}, ends: true}
	switch {
	case o.Fraction:
		p.y.unit = chart.Fraction
	case o.Milliseconds:
		p.y.unit, p.y.log = chart.Milliseconds, true
		p.y.title += ", log scale"
	}
	for _, l := range o.Lines {
		s := series{name: l.Name, width: 2, radius: 2.4}
		if l.Quoted {
			s.color, s.radius, s.scattered = black, 3.4, true
		} else {
			if _, ok := colours[l.Name]; !ok {
				colours[l.Name] = overlayColours[len(colours)%len(overlayColours)]
			}
			s.color = colours[l.Name]
		}
		for _, q := range l.Points {
			if finite(q.Value) && (!o.Milliseconds || q.Value > 0) {
				s.points = append(s.points, xy{x: q.Load, y: q.Value, low: q.Low, high: q.High, hollow: l.Quoted})
			}
		}
		p.series = append(p.series, s)
	}
	if len(p.series) == 0 {
		p.empty = "Nothing was measured"
	}
	return p
}
