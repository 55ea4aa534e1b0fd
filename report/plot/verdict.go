package plot

import (
	"fmt"
	"math"
	"strings"

	"clifftop/report"
)

// Differences shows a variant's numbers over the baseline's, with their intervals; nil where no number differs.
func Differences(v *report.Verdict, x *report.Variant) *Figure {
	better, worse, open := series{name: "better", color: green}, series{name: "worse", color: vermilion}, series{name: "cannot be told apart", color: grey}
	p := &panel{x: axis{title: "Variant over baseline (log scale)", log: true}, rules: []rule{{at: 1, vertical: true, name: v.Baseline, color: grey}}}
	low, high := math.Inf(1), 0.0
	type bounds struct {
		low, high, y float64
		color        colour
	}
	var intervals []bounds
	for k := len(x.Metrics) - 1; k >= 0; k-- {
		m := &x.Metrics[k]
		base, known := number(m.Baseline)
		value, ok := number(m.Variant)
		if !known || !ok || base <= 0 || value <= 0 || base == value {
			continue
		}
		s := &open
		switch m.Verdict {
		case report.Pass:
			s = &better
		case report.Fail:
			s = &worse
		}
		y := float64(len(p.y.places))
		p.y.places = append(p.y.places, v.Title(m.Path))
		ratio := value / base
		s.points = append(s.points, xy{x: ratio, y: y, text: fmt.Sprintf("%s: %s against %s", v.Title(m.Path), scaled(value, 4), scaled(base, 4))})
		low, high = min(low, ratio), max(high, ratio)
		if m.CI95 != nil && m.CI95[0] < m.CI95[1] {
			intervals = append(intervals, bounds{1 + m.CI95[0]/base, 1 + m.CI95[1]/base, y, s.color})
		}
	}
	if len(p.y.places) == 0 {
		return nil
	}
	// An interval may be wide beyond measure, or reach below nothing.
	least, most := min(low, 1)/2, 2*max(high, 1)
	low, high = min(low, 1), max(high, 1)
	for _, b := range intervals {
		low, high = min(low, max(b.low, least)), max(high, min(b.high, most))
		p.bars = append(p.bars, bar{from: max(b.low, least/10), to: b.high, y: b.y, height: 0.14, color: b.color,
			text: fmt.Sprintf("%s: 95 %% interval of the ratio, %s to %s", p.y.places[int(b.y)], sig(max(b.low, 0), 3), sig(b.high, 3))})
	}
	p.x.min, p.x.max = low/1.04, high*1.04
	p.y.min, p.y.max = -0.6, float64(len(p.y.places))-0.4
	var parts []string
	for _, s := range []*series{&better, &worse, &open} {
		if n := len(s.points); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.name))
			s.scattered, s.radius = true, 3.2
			p.series = append(p.series, *s)
		}
	}
	return &Figure{
		Title: fmt.Sprintf("%s against %s: of %d numbers that differ, %s", x.Name, v.Baseline, len(p.y.places), strings.Join(parts, ", ")),
		notes: []string{"Bars: 95 % confidence intervals of the ratio. Better and worse are told by more than chance, all comparisons allowed for."},
		width: pageWidth, height: 360, rows: []row{{1, []*panel{p}}},
	}
}
