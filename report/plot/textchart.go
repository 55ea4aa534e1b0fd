package plot

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot/vg"
)

type textChart struct {
	title       string
	x, y        axis // with their ranges, and y with its labels
	rows, width int  // of characters
	lines       []textLine
	marks       []textMark
}

// textLine is a line of a chart, whose points are glyphs.
type textLine struct {
	points []xy
	glyph  rune
	hollow rune // for points without a steady state
	joint  rune // between points; 0 for none
}

// textMark is a letter at a point.
type textMark struct {
	x, y   float64
	letter rune
}

// labels is the number of labels for which the vertical axis has room.
func (c *textChart) labels() int { return c.rows/3 + 1 }

// String draws the chart: first all joints, then the points, then the marks.
func (c *textChart) String() string {
	x, y := c.x, c.y
	gutter := 8 // for the labels of y
	for _, t := range y.ticks {
		gutter = max(gutter, utf8.RuneCountInString(t.text)+1)
	}
	columns := c.width - gutter - 2
	x.setTicks(columns / 10)
	x.to, y.to = vg.Length(columns-1), vg.Length(c.rows-1)

	field := newCanvas(columns, c.rows, &x, &y)
	for _, l := range c.lines {
		field.join(l)
	}
	for _, l := range c.lines {
		field.dot(l)
	}
	for _, m := range c.marks {
		field.put(xy{x: m.x, y: m.y}, m.letter)
	}

	var b strings.Builder
	b.WriteString("\n" + wrapText(c.title, c.width))
	field.write(&b, gutter)
	fmt.Fprintf(&b, "%s+%s\n", strings.Repeat(" ", gutter), strings.Repeat("-", columns))
	b.WriteString(xLabels(&x, gutter+1, c.width) + "\n")
	if name := x.title; name != "" {
		fmt.Fprintf(&b, "%s%s\n", strings.Repeat(" ", max(gutter+1, gutter+1+(columns-utf8.RuneCountInString(name))/2)),
			name)
	}
	return b.String()
}

// canvas is a field of characters between axes that measure in characters; its first row is the lowest.
type canvas struct {
	cells [][]rune
	x, y  *axis
}

func newCanvas(columns, rows int, x, y *axis) *canvas {
	c := &canvas{make([][]rune, rows), x, y}
	for i := range c.cells {
		c.cells[i] = []rune(strings.Repeat(" ", columns))
	}
	return c
}

// cell is the place of a point.
func (c *canvas) cell(p xy) (column, row int) {
	return int(math.Round(float64(c.x.at(p.x)))), int(math.Round(float64(c.y.at(p.y))))
}

func (c *canvas) shows(p xy) bool { return c.x.shows(p.x) && c.y.shows(p.y) }

// put writes a character at a point, if the axes show it.
func (c *canvas) put(p xy, char rune) {
	if c.shows(p) {
		column, row := c.cell(p)
		c.cells[row][column] = char
	}
}

// join draws what lies between the points of a line.
func (c *canvas) join(l textLine) {
	for i := 1; i < len(l.points) && l.joint != 0; i++ {
		if a, b := clip(l.points[i-1], l.points[i], c.x, c.y); c.shows(a) && c.shows(b) {
			c.line(a, b, l.joint)
		}
	}
}

// dot draws the points of a line.
func (c *canvas) dot(l textLine) {
	for _, p := range l.points {
		glyph := l.glyph
		switch {
		case p.hollow:
			glyph = l.hollow
		case p.finite:
			glyph = '~'
		}
		c.put(p, glyph)
	}
}

// line joins two points with a joint where nothing is yet.
func (c *canvas) line(a, b xy, joint rune) {
	x0, y0 := c.cell(a)
	x1, y1 := c.cell(b)
	n := max(x1-x0, x0-x1, y1-y0, y0-y1)
	for k := 1; k < n; k++ {
		f := float64(k) / float64(n)
		x, y := x0+int(math.Round(f*float64(x1-x0))), y0+int(math.Round(f*float64(y1-y0)))
		if c.cells[y][x] == ' ' {
			c.cells[y][x] = joint
		}
	}
}

// write writes the rows, with the labels of y in a gutter.
func (c *canvas) write(b *strings.Builder, gutter int) {
	labels := make([]string, len(c.cells))
	for _, t := range c.y.ticks {
		labels[int(math.Round(float64(c.y.at(t.at))))] = t.text
	}
	for row := len(c.cells) - 1; row >= 0; row-- {
		line := fmt.Sprintf("%s%s |%s", strings.Repeat(" ", max(0, gutter-1-utf8.RuneCountInString(labels[row]))),
			labels[row], string(c.cells[row]))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// xLabels is the line of labels below a chart; those that would touch are left out.
func xLabels(x *axis, offset, width int) string {
	line := []rune(strings.Repeat(" ", width))
	end := -1
	for _, t := range x.ticks {
		text := []rune(t.text)
		at := offset + int(math.Round(float64(x.at(t.at)))) - len(text)/2
		at = min(at, width-len(text))
		if at <= end || at < 0 {
			continue
		}
		copy(line[at:], text)
		end = at + len(text)
	}
	return strings.TrimRight(string(line), " ")
}
