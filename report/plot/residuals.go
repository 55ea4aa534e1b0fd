package plot

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"

	"clifftop/report/chart"
)

// ResidualPanel holds errors against a size. The axis of sizes is logarithmic.
type ResidualPanel struct {
	// Title names what is compared, X the size.
	Title, X string
	Points   []ResidualPoint
}

// ResidualPoint is an error as a fraction at a size of 0 or more. Sizes below 1 stand at 1.
type ResidualPoint struct {
	X, Error float64
	// Family gives the colour.
	Family string
}

// mostResidual is the largest error that is drawn.
const mostResidual = 0.6

// residualSteps is the number of dots per doubling of the size.
const residualSteps = 2

// Residuals is a picture of errors against sizes. A dot is the median of the points of a family within a step of the
// size; its bar is their range from the 10th to the 90th percentile. Errors above 60 % stand at 60 %. Panels stand in
// two columns.
func Residuals(title string, panels []ResidualPanel, notes ...string) *Figure {
	var families []string
	for _, p := range panels {
		for _, q := range p.Points {
			if !slices.Contains(families, q.Family) {
				families = append(families, q.Family)
			}
		}
	}
	var list []*panel
	for _, p := range panels {
		list = append(list, p.panel(families))
	}
	f := twoColumns(title, families, list, notes)
	f.height = 90 + 210*vg.Length(max(1, len(f.rows)))
	return f
}

func (p ResidualPanel) panel(families []string) *panel {
	d := &panel{title: p.Title}
	d.x = axis{title: p.X, log: true, unit: chart.Plain}
	d.y = axis{title: "error", unit: chart.Fraction}
	sizes, errors := []float64{}, []float64{-0.12, 0.12}
	sets := make([]series, len(families))
	for i, name := range families {
		s := &sets[i]
		s.points = residualDots(p.Points, name)
		s.color, s.radius, s.scattered = familyColours[i%len(familyColours)], dotRadius(len(s.points)), true
		for _, q := range s.points {
			sizes, errors = append(sizes, q.x), append(errors, q.low, q.high)
		}
	}
	if !d.x.spread(sizes, 6) {
		d.empty = "Nothing was measured"
		return d
	}
	d.y.spread(errors, 6)
	for _, level := range []float64{0, -0.1, 0.1} {
		guide := series{color: pale, width: 0.9, guide: true,
			points: []xy{{x: d.x.min, y: level}, {x: d.x.max, y: level}}}
		if level != 0 {
			guide.width, guide.dash = 0.7, dashed
		}
		d.series = append(d.series, guide)
	}
	d.series = append(d.series, sets...)
	return d
}

func residualDots(points []ResidualPoint, family string) (dots []xy) {
	parts := map[int][]ResidualPoint{}
	var steps []int
	for _, q := range points {
		if q.Family != family || !finite(q.X) || !finite(q.Error) {
			continue
		}
		q.X, q.Error = max(q.X, 1), min(max(q.Error, -mostResidual), mostResidual)
		k := int(math.Round(residualSteps * math.Log2(q.X)))
		if parts[k] == nil {
			steps = append(steps, k)
		}
		parts[k] = append(parts[k], q)
	}
	slices.Sort(steps)
	for _, k := range steps {
		part := parts[k]
		slices.SortStableFunc(part, func(a, b ResidualPoint) int { return cmp.Compare(a.Error, b.Error) })
		at := func(share float64) float64 { return part[int(share*float64(len(part)-1)+0.5)].Error }
		dots = append(dots, xy{x: math.Exp2(float64(k) / residualSteps), y: at(0.5), low: at(0.1), high: at(0.9)})
	}
	return dots
}
