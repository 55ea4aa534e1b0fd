package plot

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot/vg"
)

// textChart is a chart in characters.
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
	cell := func(p xy) (int, int) { return int(math.Round(float64(x.at(p.x)))), int(math.Round(float64(y.at(p.y)))) }
	shown := func(p xy) bool { return x.shows(p.x) && y.shows(p.y) }

	field := newCanvas(columns, c.rows)
	for _, l := range c.lines {
		for i := 1; i < len(l.points) && l.joint != 0; i++ {
			if a, b := clip(l.points[i-1], l.points[i], &x, &y); shown(a) && shown(b) {
				x0, y0 := cell(a)
				x1, y1 := cell(b)
				field.line(x0, y0, x1, y1, l.joint)
			}
		}
	}
	for _, l := range c.lines {
		for _, p := range l.points {
			if !shown(p) {
				continue
			}
			col, row := cell(p)
			field[row][col] = l.glyph
			if p.hollow {
				field[row][col] = l.hollow
			}
		}
	}
	for _, m := range c.marks {
		if p := (xy{x: m.x, y: m.y}); shown(p) {
			col, row := cell(p)
			field[row][col] = m.letter
		}
	}

	labels := make([]string, c.rows)
	for _, t := range y.ticks {
		labels[int(math.Round(float64(y.at(t.at))))] = t.text
	}
	var b strings.Builder
	b.WriteString("\n" + wrapText(c.title, c.width))
	for row := c.rows - 1; row >= 0; row-- {
		line := fmt.Sprintf("%s%s |%s", strings.Repeat(" ", max(0, gutter-1-utf8.RuneCountInString(labels[row]))), labels[row], string(field[row]))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	fmt.Fprintf(&b, "%s+%s\n", strings.Repeat(" ", gutter), strings.Repeat("-", columns))
	b.WriteString(xLabels(&x, gutter+1, c.width) + "\n")
	if name := x.title; name != "" {
		fmt.Fprintf(&b, "%s%s\n", strings.Repeat(" ", max(gutter+1, gutter+1+(columns-utf8.RuneCountInString(name))/2)), name)
	}
	return b.String()
}

// canvas is a field of characters; its first row is the lowest.
type canvas [][]rune

func newCanvas(columns, rows int) canvas {
	c := make(canvas, rows)
	for i := range c {
		c[i] = []rune(strings.Repeat(" ", columns))
	}
	return c
}

// line joins two cells with a joint where nothing is yet.
func (c canvas) line(x0, y0, x1, y1 int, joint rune) {
	n := max(x1-x0, x0-x1, y1-y0, y0-y1)
	for k := 1; k < n; k++ {
		f := float64(k) / float64(n)
		x, y := x0+int(math.Round(f*float64(x1-x0))), y0+int(math.Round(f*float64(y1-y0)))
		if c[y][x] == ' ' {
			c[y][x] = joint
		}
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
