package plot

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"

	"clifftop/report/chart"
)

// Draw is a picture as a figure for files. It lists the kinds of pictures: add a case to add a kind.
func Draw(p chart.Picture) *Figure {
	switch p := p.(type) {
	case *chart.Lines:
		return drawLines(p)
	case *chart.Timeline:
		return drawTimeline(p)
	case *chart.Waterfall:
		return drawWaterfall(p)
	}
	return &Figure{Title: p.Message(), width: pageWidth, height: 100}
}

// DrawText prints a picture as text in width columns, without its title; 0 means 80.
func DrawText(w io.Writer, p chart.Picture, width int) error {
	switch p := p.(type) {
	case *chart.Lines:
		return printLines(w, p, width)
	case *chart.Timeline:
		return printTimeline(w, p, width)
	case *chart.Waterfall:
		return printWaterfall(w, p, width)
	}
	return fmt.Errorf("a %T cannot be drawn", p)
}

func drawLines(c *chart.Lines) *Figure {
	f := &Figure{Title: c.Title, Caption: c.Caption, notes: c.Notes, width: pageWidth, height: 370}
	if c.Beside {
		f.height = 330
		var line []*panel
		for i := range c.Panels {
			line = append(line, drawPanel(&c.Panels[i]))
		}
		f.rows = []row{{1, line}}
		return f
	}
	total := 0.0
	for i := range c.Panels {
		h := c.Panels[i].Height
		if h == 0 {
			h = 1
		}
		total += h
		f.rows = append(f.rows, row{vg.Length(h), []*panel{drawPanel(&c.Panels[i])}})
	}
	if len(c.Panels) > 1 {
		f.height = vg.Length(120 + 190*total)
	}
	return f
}

func scaleAxis(s chart.Scale) axis {
	return axis{title: s.Title, log: s.Log, min: s.Min, max: s.Max, air: 0.1, unit: s.Unit}
}

func written(u chart.Unit, v float64) string {
	switch u {
	case chart.Milliseconds:
		return duration(v, 3)
	case chart.Fraction:
		return percent(v)
	case chart.Dollars:
		return dollars(v)
	case chart.Whole:
		return loadNumber(v)
	case chart.Seconds:
		return sig(v, 6)
	}
	return amount(v)
}

// dollars writes an amount of money with its cents, or as few more digits as it needs.
func dollars(v float64) string {
	switch {
	case math.Abs(v) >= 999.5:
		return "$" + scaled(v, 3)
	case v != math.Trunc(v) && math.Abs(100*v-math.Round(100*v)) < 1e-9:
		return "$" + strconv.FormatFloat(v, 'f', 2, 64)
	}
	return "$" + sig(v, 3)
}

func drawPanel(p *chart.Panel) *panel {
	d := &panel{title: p.Title, x: scaleAxis(p.X), y: scaleAxis(p.Y), ends: true}
	next := 0
	any := false
	for _, l := range p.Lines {
		s := series{name: l.Name, anchor: l.NameAt, guide: l.Guide, scattered: l.Scattered, stepped: l.Stepped,
			filled: l.Filled, width: 1.7}
		if l.Guide {
			s.color, s.width, s.dash = grey, 0.9, dashed
		} else {
			s.color = familyColours[next%len(familyColours)]
			next++
		}
		if l.Dots || l.Scattered {
			s.radius = 2.3
		}
		for _, q := range l.Points {
			s.points = append(s.points, xy{x: q.X, y: q.Y, hollow: q.Hollow, text: q.Label})
			any = any || !l.Guide
			if q.Label != "" {
				d.tags = append(d.tags, tag{x: q.X, y: q.Y, text: q.Label, color: s.color, far: []vg.Length{12, 20, 30},
					order: []direction{northWest, north, southEast, west, east, south, northEast, southWest}})
			}
		}
		d.series = append(d.series, s)
	}
	for _, r := range p.Rules {
		q := rule{at: r.At, vertical: r.Vertical, name: r.Name, color: grey}
		if r.Limit {
			q.color = vermilion
		}
		d.rules = append(d.rules, q)
		if !r.Vertical {
			d.hold = append(d.hold, r.At)
		}
	}
	if !any {
		d.empty = "Nothing was measured"
	}
	return d
}

// glyphs are the points of lines in text, in their order.
const glyphs = "*o+x#@%&"

// printLines prints the panels one below the other.
func printLines(w io.Writer, c *chart.Lines, width int) error {
	width = textWidth(width)
	var b strings.Builder
	for i := range c.Panels {
		printPanel(&b, &c.Panels[i], width)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// textWidth is the width of pictures in text for the width asked.
func textWidth(width int) int {
	if width <= 0 {
		width = 80
	}
	return min(max(width, 40), 100)
}

// printPanel prints a panel, or nothing where it has no points but of guides.
func printPanel(b *strings.Builder, p *chart.Panel, width int) {
	xs, ys := held(p)
	if len(xs) == 0 {
		return
	}
	c := textChart{title: p.Y.Title, rows: 14, width: width, x: scaleAxis(p.X), y: scaleAxis(p.Y)}
	if p.Title != "" {
		c.title = strings.TrimSuffix(p.Title+": "+p.Y.Title, ": ")
	}
	if c.x.min == c.x.max {
		c.x.spread(xs, width/10)
	}
	if c.y.min == c.y.max {
		c.y.spread(ys, c.labels())
	} else {
		c.y.setTicks(c.labels())
	}
	c.lines = textLines(p.Lines)
	var legend []string
	for i, l := range p.Lines {
		legend = addName(legend, c.lines[i].glyph, l.Name)
	}
	for _, r := range p.Rules {
		l := c.rule(r)
		c.lines = slices.Insert(c.lines, 0, l) // what comes later is drawn over it
		legend = addName(legend, l.glyph, r.Name)
	}
	b.WriteString(c.String())
	writeLegend(b, legend, width)
}

func held(p *chart.Panel) (xs, ys []float64) {
	for _, l := range p.Lines {
		if l.Guide {
			continue
		}
		for _, q := range l.Points {
			xs, ys = append(xs, q.X), append(ys, q.Y)
		}
	}
	for _, r := range p.Rules {
		if !r.Vertical {
			ys = append(ys, r.At)
		}
	}
	return xs, ys
}

// textLines are the lines in characters: each has a glyph of its own, and guides have dots.
func textLines(lines []chart.Line) []textLine {
	var drawn []textLine
	next := 0
	for _, l := range lines {
		t := textLine{glyph: '.'}
		if !l.Guide {
			t.glyph = rune(glyphs[next%len(glyphs)])
			next++
		}
		t.hollow = t.glyph
		if !l.Scattered {
			t.joint = '.'
		}
		for _, q := range l.Points {
			t.points = append(t.points, xy{x: q.X, y: q.Y, hollow: q.Hollow})
		}
		drawn = append(drawn, t)
	}
	return drawn
}

// rule is a rule across the chart, whose axes have their ranges.
func (c *textChart) rule(r chart.Rule) textLine {
	if r.Vertical {
		return textLine{glyph: ':', joint: ':', points: []xy{{x: r.At, y: c.y.min}, {x: r.At, y: c.y.max}}}
	}
	return textLine{glyph: '-', joint: '-', points: []xy{{x: c.x.min, y: r.At}, {x: c.x.max, y: r.At}}}
}

// addName adds a glyph and its name to a legend; nothing without a name.
func addName(legend []string, glyph rune, name string) []string {
	if name == "" {
		return legend
	}
	return append(legend, fmt.Sprintf("%c %s", glyph, name))
}

// writeLegend writes the parts in as many lines as they need.
func writeLegend(b *strings.Builder, parts []string, width int) {
	column := 0
	for _, part := range parts {
		n := len([]rune(part))
		if column > 0 && column+3+n > width {
			b.WriteByte('\n')
			column = 0
		} else if column > 0 {
			b.WriteString("   ")
			column += 3
		}
		b.WriteString(part)
		column += n
	}
	if column > 0 {
		b.WriteByte('\n')
	}
}
