package plot

import (
	"slices"

	"gonum.org/v1/plot/vg"

	"clifftop/report/chart"
)

// ParityPanel holds what was measured against what was simulated, on logarithmic axes alike.
type ParityPanel struct {
	// Title names what is compared; Unit is "ms", which is written as a time, or else stands beside the axes.
	Title, Unit string
	Points      []ParityPoint
}

// ParityPoint is one comparison; values of 0 or less have no place and are left out.
type ParityPoint struct {
	Measured, Simulated float64
	// Family gives the colour.
	Family string
	// Hollow marks points to be read with care.
	Hollow bool
	// Name is the name of the run, for tooltips.
	Name string
}

// Parity is a picture of measured against simulated values: points on the diagonal agree, those between the dashed
// lines to 10 %. Panels stand in two columns.
func Parity(title string, panels []ParityPanel, notes ...string) *Figure {
	families := familiesOf(panels)
	var list []*panel
	for _, p := range panels {
		list = append(list, p.panel(families))
	}
	f := twoColumns(title, families, list, notes)
	f.height = 70 + 250*vg.Length(max(1, len(f.rows)))
	return f
}

// twoColumns lays panels out in two columns, below a key of families.
func twoColumns(title string, families []string, panels []*panel, notes []string) *Figure {
	f := &Figure{Title: title, width: pageWidth, notes: notes}
	for i, name := range families {
		f.key = append(f.key, keyEntry{name, familyColours[i%len(familyColours)]})
	}
	for line := range slices.Chunk(panels, 2) {
		f.rows = append(f.rows, row{1, line})
	}
	return f
}

// familyColours are by Okabe and Ito, and two greys.
var familyColours = []colour{blue, vermilion, green, purple, rgb(0xB07D00), rgb(0x3A94CF), black, pale}

func familiesOf(panels []ParityPanel) []string {
	var names []string
	for _, p := range panels {
		for _, q := range p.Points {
			if !slices.Contains(names, q.Family) {
				names = append(names, q.Family)
			}
		}
	}
	slices.Sort(names)
	return names
}

// dotRadius makes all dots as large, though panels draw smaller ones where a series has many.
func dotRadius(n int) vg.Length {
	const radius = 1.9
	if n > 20 {
		return radius / 0.7
	}
	return radius
}

func (p ParityPanel) panel(families []string) *panel {
	unit := chart.Plain
	title := ", " + p.Unit
	if p.Unit == "ms" {
		unit, title = chart.Milliseconds, ""
	}
	d := &panel{title: p.Title}
	d.x = axis{title: "measured" + title, log: true, unit: unit}
	d.y = axis{title: "simulated" + title, log: true, unit: unit}
	var all []float64
	sets := make([]series, len(families))
	for _, q := range p.Points {
		if !(q.Measured > 0 && q.Simulated > 0 && finite(q.Measured) && finite(q.Simulated)) {
			continue
		}
		all = append(all, q.Measured, q.Simulated)
		s := &sets[slices.Index(families, q.Family)]
		s.points = append(s.points, xy{x: q.Measured, y: q.Simulated, hollow: q.Hollow, text: q.Name})
	}
	if !d.x.spread(all, 6) {
		d.empty = "Nothing was measured"
		return d
	}
	lo, hi := d.x.min, d.x.max
	d.y.min, d.y.max = lo, hi
	const band = 1.1
	d.series = []series{
		{color: pale, width: 0.9, guide: true, points: []xy{{x: lo, y: lo}, {x: hi, y: hi}}},
		{color: pale, width: 0.7, dash: dashed, guide: true,
			points: []xy{{x: lo, y: lo * band}, {x: hi / band, y: hi}}},
		{color: pale, width: 0.7, dash: dashed, guide: true,
			points: []xy{{x: lo * band, y: lo}, {x: hi, y: hi / band}}},
	}
	for i, s := range sets {
		s.color, s.radius, s.scattered = familyColours[i%len(familyColours)], dotRadius(len(s.points)), true
		d.series = append(d.series, s)
	}
	return d
}
