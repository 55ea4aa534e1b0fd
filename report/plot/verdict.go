package plot

import (
	"fmt"
	"math"
	"strings"

	"clifftop/report/verdict"
)

// Differences shows a variant's numbers over the baseline's, with their intervals; nil where no number differs.
func Differences(v *verdict.Result, x *verdict.Variant) *Figure {
	r := newRatios(v, x)
	if len(r.names) == 0 {
		return nil
	}
	p := &panel{
		x:     axis{title: "Variant over baseline (log scale)", log: true},
		y:     axis{places: r.names, min: -0.6, max: float64(len(r.names)) - 0.4},
		rules: []rule{{at: 1, vertical: true, name: v.Baseline, color: grey}},
	}
	r.drawIntervals(p)
	var parts []string
	for _, s := range []*series{&r.better, &r.worse, &r.open} {
		if n := len(s.points); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.name))
			s.scattered, s.radius = true, 3.2
			p.series = append(p.series, *s)
		}
	}
	return &Figure{
		Title: fmt.Sprintf("%s against %s: of %d numbers that differ, %s", x.Name, v.Baseline, len(r.names),
			strings.Join(parts, ", ")),
		notes: []string{"Bars: 95 % confidence intervals of the ratio. Better and worse are told by more than " +
			"chance, all comparisons allowed for."},
		width: pageWidth, height: 360, rows: []row{{1, []*panel{p}}},
	}
}

// ratios are a variant's numbers divided by the baseline's, one above the other, grouped by the significance of the
// change.
type ratios struct {
	names               []string // from below
	better, worse, open series
	low, high           float64
	intervals           []ratioInterval
}

// ratioInterval is the 95 % interval of the ratio at the height y.
type ratioInterval struct {
	low, high, y float64
	color        colour
}

func newRatios(v *verdict.Result, x *verdict.Variant) *ratios {
	r := &ratios{
		better: series{name: "better", color: green}, worse: series{name: "worse", color: vermilion},
		open: series{name: "cannot be told apart", color: grey}, low: math.Inf(1),
	}
	for k := len(x.Metrics) - 1; k >= 0; k-- {
		m := &x.Metrics[k]
		base, known := number(m.Baseline)
		value, ok := number(m.Variant)
		if known && ok && base > 0 && value > 0 && base != value {
			r.add(m, v.Title(m.Path), base, value)
		}
	}
	return r
}

func (r *ratios) add(m *verdict.Difference, title string, base, value float64) {
	s := &r.open
	switch m.Verdict {
	case verdict.Pass:
		s = &r.better
	case verdict.Fail:
		s = &r.worse
	}
	y, ratio := float64(len(r.names)), m.Ratio()
	r.names = append(r.names, title)
	s.points = append(s.points, xy{x: ratio, y: y,
		text: fmt.Sprintf("%s: %s against %s", title, scaled(value, 4), scaled(base, 4))})
	r.low, r.high = min(r.low, ratio), max(r.high, ratio)
	if m.CI95 != nil && m.CI95[0] < m.CI95[1] {
		r.intervals = append(r.intervals, ratioInterval{1 + m.CI95[0]/base, 1 + m.CI95[1]/base, y, s.color})
	}
}

// drawIntervals draws the intervals, and lets the panel hold them and the ratios. An interval may be wide beyond
// measure, or reach below nothing: the panel shows only so much of it.
func (r *ratios) drawIntervals(p *panel) {
	low, high := min(r.low, 1), max(r.high, 1)
	least, most := low/2, 2*high
	for _, b := range r.intervals {
		low, high = min(low, max(b.low, least)), max(high, min(b.high, most))
		p.bars = append(p.bars, bar{from: max(b.low, least/10), to: b.high, y: b.y, height: 0.14, color: b.color,
			text: fmt.Sprintf("%s: 95 %% interval of the ratio, %s to %s", r.names[int(b.y)], sig(max(b.low, 0), 3),
				sig(b.high, 3))})
	}
	p.x.min, p.x.max = low/1.04, high*1.04
}
