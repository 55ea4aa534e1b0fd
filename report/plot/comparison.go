package plot

import (
	"strings"

	"gonum.org/v1/plot/vg"

	"clifftop/report/chart"
)

// Comparison is a comparison of systems, such as batching policies, at a few loads: a line for each system, a
// panel for each metric, and on each line a dot for each load.
type Comparison struct {
	// Title is the message of the picture; Caption says what was simulated.
	Title, Caption string
	// Loads name the dots, from the lowest to the highest.
	Loads []string
	// Systems are the lines, from top to bottom.
	Systems []string
	// Metrics are the panels.
	Metrics []ComparisonMetric
	// Notes stand below.
	Notes []string
}

// ComparisonMetric is a number by which systems are compared.
type ComparisonMetric struct {
	// Title names it with its unit.
	Title string
	// Milliseconds says that it is a latency, which is drawn on a logarithmic scale.
	Milliseconds bool
	// Values has one number for each system and load; NaN where there is none.
	Values [][]float64
}

// shades of the dots, from the lowest load to the highest.
var shades = [...]colour{rgb(0xA9CCE3), blue, rgb(0x003A5C), vermilion}

// Figure draws the comparison. It has room for up to four loads.
func (c *Comparison) Figure() *Figure {
	f := &Figure{
		Title: c.Title, Caption: c.Caption, notes: c.Notes,
		width:  720,
		height: vg.Length(110 + 19*len(c.Systems) + 12*len(c.Notes)),
	}
	colours := "Dots from light to dark"
	if len(c.Loads) == len(shades) {
		colours += ", and red"
	}
	f.detail = colours + ": " + strings.Join(c.Loads, ", ")
	var panels []*panel
	for i, m := range c.Metrics {
		panels = append(panels, c.panel(m, i == 0))
	}
	f.rows = []row{{1, panels}}
	return f
}

func (c *Comparison) panel(m ComparisonMetric, named bool) *panel {
	n := len(c.Systems)
	p := &panel{
		title: m.Title,
		x:     axis{},
		y:     axis{min: -0.6, max: float64(n) - 0.4},
	}
	if m.Milliseconds {
		p.x.log, p.x.unit = true, chart.Milliseconds
	}
	p.y.places = make([]string, n)
	if named {
		for i, name := range c.Systems {
			p.y.places[n-1-i] = name
		}
	}
	for load := range c.Loads {
		// Dots of higher loads are smaller, so that they do not hide those below.
		s := series{color: shades[min(load, len(shades)-1)], radius: 4.2 - 0.6*vg.Length(load), scattered: true}
		for i := range c.Systems {
			if v := m.Values[i][load]; finite(v) && (!m.Milliseconds || v > 0) {
				s.points = append(s.points, xy{x: v, y: float64(n - 1 - i)})
			}
		}
		p.series = append(p.series, s)
	}
	return p
}
