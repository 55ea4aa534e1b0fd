package plot

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
)

// Picture can be drawn as a figure and, in text, on a terminal.
type Picture interface {
	// Figure is the picture for files.
	Figure() *Figure
	// Terminal prints the picture as text in width columns; 0 means 80.
	Terminal(w io.Writer, width int) error
}

// Chart is a picture of lines, in one panel or several.
type Chart struct {
	// Title states the finding, and Caption what was simulated.
	Title, Caption string
	// Panels stand one above the other, or side by side.
	Panels []ChartPanel
	Beside bool
	// Notes stand below.
	Notes []string
}

// ChartPanel is one diagram of a chart.
type ChartPanel struct {
	// Title is left out where it is empty.
	Title string
	X, Y  Scale
	Lines []Line
	Rules []Rule
	// Height is the panel's part of the chart where panels stand above one another; 0 is 1.
	Height float64
}

// Scale is an axis of a panel.
type Scale struct {
	// Title names what is measured, with the unit where Unit does not write one.
	Title string
	Unit  Unit
	Log   bool
	// Min and Max are the ends; where both are 0 the lines choose them.
	Min, Max float64
}

// Unit says how an axis writes its values.
type Unit int

// The units.
const (
	Plain        Unit = iota // 950, 1.2k
	Milliseconds             // 80 ms, 1.2 s
	Fraction                 // 0.25 is 25 %
	Dollars                  // $0.25
)

// Line is a line of a panel. Lines take their colours in turn, those for comparison are grey.
type Line struct {
	// Name stands where the line ends, or at its point number NameAt if that is not 0; it may be empty.
	Name   string
	NameAt int
	Points []Point
	// Dots marks the points, and Scattered leaves the line between them out.
	Dots, Scattered bool
	// Guide is a thin line to compare with: the axes need not hold it.
	Guide bool
}

// Point is a point of a line.
type Point struct {
	X, Y float64
	// Label stands beside the point if there is room.
	Label string
	// Hollow marks a point without a steady state, which is to be read with care.
	Hollow bool
}

// Rule is a thin line across a panel at a value of the vertical axis, or of the horizontal one if it is Vertical.
type Rule struct {
	At       float64
	Vertical bool
	Name     string
}

var _ Picture = (*Chart)(nil)

// Figure draws the chart.
func (c *Chart) Figure() *Figure {
	f := &Figure{Title: c.Title, Caption: c.Caption, notes: c.Notes, width: pageWidth, height: 370}
	if c.Beside {
		f.height = 330
		var line []*panel
		for i := range c.Panels {
			line = append(line, c.Panels[i].panel())
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
		f.rows = append(f.rows, row{vg.Length(h), []*panel{c.Panels[i].panel()}})
	}
	if len(c.Panels) > 1 {
		f.height = vg.Length(120 + 190*total)
	}
	return f
}

func (s Scale) axis() axis {
	a := axis{title: s.Title, log: s.Log, min: s.Min, max: s.Max, air: 0.1}
	switch s.Unit {
	case Milliseconds:
		a.format = wait
	case Fraction:
		a.format = percent
	case Dollars:
		a.format = dollars
	default:
		a.format = amount
	}
	return a
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

func (p *ChartPanel) panel() *panel {
	d := &panel{title: p.Title, x: p.X.axis(), y: p.Y.axis(), ends: true}
	next := 0
	any := false
	for _, l := range p.Lines {
		s := series{name: l.Name, anchor: l.NameAt, guide: l.Guide, scattered: l.Scattered, width: 1.7}
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
			s.points = append(s.points, xy{x: q.X, y: q.Y, hollow: q.Hollow})
			any = any || !l.Guide
			if q.Label != "" {
				d.tags = append(d.tags, tag{x: q.X, y: q.Y, text: q.Label, color: s.color, far: []vg.Length{12, 20, 30},
					order: []direction{northWest, north, southEast, west, east, south, northEast, southWest}})
			}
		}
		d.series = append(d.series, s)
	}
	for _, r := range p.Rules {
		d.rules = append(d.rules, rule{at: r.At, vertical: r.Vertical, name: r.Name, color: grey})
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

// Terminal prints the panels one below the other, without the title.
func (c *Chart) Terminal(w io.Writer, width int) error {
	width = textWidth(width)
	var b strings.Builder
	for i := range c.Panels {
		c.Panels[i].text(&b, width)
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

func (p *ChartPanel) text(b *strings.Builder, width int) {
	c := textChart{rows: 14, width: width, x: p.X.axis(), y: p.Y.axis()}
	c.title = p.Y.Title
	if p.Title != "" {
		c.title = strings.TrimSuffix(p.Title+": "+p.Y.Title, ": ")
	}
	var xs, ys []float64
	var legend []string
	next := 0
	for _, l := range p.Lines {
		t := textLine{glyph: '.', hollow: '.'}
		if !l.Scattered {
			t.joint = '.'
		}
		if !l.Guide {
			t.glyph = rune(glyphs[next%len(glyphs)])
			t.hollow = t.glyph
			next++
			if l.Name != "" {
				legend = append(legend, fmt.Sprintf("%c %s", t.glyph, l.Name))
			}
		} else if l.Name != "" {
			legend = append(legend, ". "+l.Name)
		}
		for _, q := range l.Points {
			t.points = append(t.points, xy{x: q.X, y: q.Y, hollow: q.Hollow})
			if !l.Guide {
				xs, ys = append(xs, q.X), append(ys, q.Y)
			}
		}
		c.lines = append(c.lines, t)
	}
	for _, r := range p.Rules {
		if !r.Vertical {
			ys = append(ys, r.At)
		}
	}
	if len(xs) == 0 {
		return
	}
	if c.x.min == c.x.max {
		c.x.spread(xs, width/10)
	}
	if c.y.min == c.y.max {
		c.y.spread(ys, c.labels())
	} else {
		c.y.setTicks(c.labels())
	}
	for _, r := range p.Rules {
		l := textLine{glyph: '-', joint: '-', points: []xy{{x: c.x.min, y: r.At}, {x: c.x.max, y: r.At}}}
		name := "- " + r.Name
		if r.Vertical {
			l.glyph, l.joint, l.points = ':', ':', []xy{{x: r.At, y: c.y.min}, {x: r.At, y: c.y.max}}
			name = ": " + r.Name
		}
		c.lines = slices.Insert(c.lines, 0, l)
		if r.Name != "" {
			legend = append(legend, name)
		}
	}
	b.WriteString(c.String())
	writeLegend(b, legend, width)
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

// Distribution is a line from the smallest of the values to the greatest: how large a part of them is at most so
// large. The values are sorted in place.
func Distribution(name string, values []float64) Line {
	slices.Sort(values)
	l := Line{Name: name}
	const most = 400 // points
	n := len(values)
	for k := range min(n, most) {
		i := k
		if n > most {
			i = k * (n - 1) / (most - 1)
		}
		l.Points = append(l.Points, Point{X: values[i], Y: float64(i+1) / float64(n)})
	}
	return l
}

// Roofline is a panel of the arithmetic that a machine does each second against the arithmetic that a program does
// for each byte that it reads: neither can be above the roof. Peak is in FLOPs per second, bandwidth in bytes per second.
// The lines go in FLOPs per byte and TFLOPs per second.
func Roofline(peak, bandwidth float64, lines ...Line) ChartPanel {
	lo, hi := peak/bandwidth, peak/bandwidth
	for _, l := range lines {
		for _, q := range l.Points {
			lo, hi = min(lo, q.X), max(hi, q.X)
		}
	}
	lo, hi = lo/1.6, hi*2.5
	ridge := peak / bandwidth
	top := peak / 1e12
	roof := Line{Guide: true, Points: []Point{{X: lo, Y: lo * bandwidth / 1e12}, {X: ridge, Y: top}, {X: hi, Y: top}}}
	return ChartPanel{
		X:     Scale{Title: "Arithmetic per byte read, FLOPs/byte (log scale)", Log: true, Min: lo, Max: hi},
		Y:     Scale{Title: "Arithmetic done, TFLOPs/s (log scale)", Log: true, Min: 0.4 * lo * bandwidth / 1e12, Max: 2 * top},
		Lines: append([]Line{roof}, lines...),
		Rules: []Rule{{At: ridge, Vertical: true, Name: fmt.Sprintf("ridge, %s FLOPs/byte", sig(ridge, 3))}},
	}
}
