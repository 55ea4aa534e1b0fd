package plot

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/plot/vg"

	"clifftop/report"
)

// Terminal prints a sweep as text: the finding, throughput against load, and TTFT against load. It fits
// in width columns, of which it takes 40 to 100; 0 means 80. It needs neither colours nor cursor.
func Terminal(w io.Writer, c *report.Curve, width int) error {
	if width <= 0 {
		width = 80
	}
	width = min(max(width, 40), 100)
	v := newSweep(c)

	var b strings.Builder
	b.WriteString(wrapText(v.finding()+".", width))
	if s := v.detail(); s != "" {
		b.WriteString(wrapText(s, width))
	}
	throughput := axis{format: amount}
	latencies := axis{log: true, format: wait}
	tps := v.chart("Output tokens/s, whole system", throughput, outputTPS, 12, width)
	ttft := v.chart("Time to first token, p95, log scale", latencies, latency("ttft", "p95"), 10, width)
	b.WriteString(tps)
	b.WriteString(ttft)
	if tps+ttft != "" {
		b.WriteString("\n" + v.legend(width))
	}
	for _, note := range v.failureNotes() {
		b.WriteString(wrapText(note, width))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing a chart: %w", err)
	}
	return nil
}

// legend explains the letters of the charts.
func (v *sweep) legend(width int) string {
	parts := []string{"* measured"}
	for _, p := range v.points {
		if !p.steady {
			name := "o not settled"
			if v.open() {
				name = "o no steady state"
			}
			parts = append(parts, name)
			break
		}
	}
	if v.anyShort() {
		parts = append(parts, "o too short a run")
	}
	for _, m := range v.landmarks() {
		parts = append(parts, fmt.Sprintf("%c %s at %s", letter(m), m.name, v.load(m.load)))
	}
	var b strings.Builder
	column := 0
	for _, part := range parts {
		if n := utf8.RuneCountInString(part); column > 0 && column+3+n > width {
			b.WriteByte('\n')
			column = 0
		} else if column > 0 {
			b.WriteString("   ")
			column += 3
		}
		b.WriteString(part)
		column += utf8.RuneCountInString(part)
	}
	b.WriteByte('\n')
	return b.String()
}

// letter stands for a landmark.
func letter(m landmark) rune {
	return map[shape]rune{diamond: 'K', triangle: 'P', inverted: 'C'}[m.shape]
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

// line joins two cells with dots where nothing is yet.
func (c canvas) line(x0, y0, x1, y1 int) {
	n := max(x1-x0, x0-x1, y1-y0, y0-y1)
	for k := 1; k < n; k++ {
		f := float64(k) / float64(n)
		x, y := x0+int(math.Round(f*float64(x1-x0))), y0+int(math.Round(f*float64(y1-y0)))
		if c[y][x] == ' ' {
			c[y][x] = '.'
		}
	}
}

// chart draws a statistic against load; it is empty if there is nothing to draw.
func (v *sweep) chart(title string, y axis, stat statistic, rows, width int) string {
	points := v.series(stat)
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.y
	}
	x := v.loadAxis()
	if !y.spread(values, rows/3+1) || !(x.min < x.max) {
		return ""
	}
	gutter := 8 // for the labels of y
	for _, t := range y.ticks {
		gutter = max(gutter, utf8.RuneCountInString(t.text)+1)
	}
	columns := width - gutter - 2
	x.setTicks(columns / 10)
	x.to, y.to = vg.Length(columns-1), vg.Length(rows-1)
	cell := func(p xy) (int, int) { return int(math.Round(float64(x.at(p.x)))), int(math.Round(float64(y.at(p.y)))) }

	c := newCanvas(columns, rows)
	var last *xy
	for i := range points {
		p := &points[i]
		if !x.shows(p.x) || !y.shows(p.y) {
			last = nil
			continue
		}
		x1, y1 := cell(*p)
		if last != nil {
			x0, y0 := cell(*last)
			c.line(x0, y0, x1, y1)
		}
		last = p
	}
	for _, p := range points {
		if x.shows(p.x) && y.shows(p.y) {
			col, row := cell(p)
			c[row][col] = '*'
			if p.hollow {
				c[row][col] = 'o'
			}
		}
	}
	for _, m := range v.landmarks() {
		if value, ok := v.at(m.load, stat); ok && x.shows(m.load) && y.shows(value) {
			col, row := cell(xy{x: m.load, y: value})
			c[row][col] = letter(m)
		}
	}

	labels := make([]string, rows)
	for _, t := range y.ticks {
		labels[int(math.Round(float64(y.at(t.at))))] = t.text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", title)
	for row := rows - 1; row >= 0; row-- {
		line := fmt.Sprintf("%s%s |%s", strings.Repeat(" ", max(0, gutter-1-utf8.RuneCountInString(labels[row]))), labels[row], string(c[row]))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	fmt.Fprintf(&b, "%s+%s\n", strings.Repeat(" ", gutter), strings.Repeat("-", columns))
	b.WriteString(xLabels(&x, gutter+1, width) + "\n")
	name := x.title
	fmt.Fprintf(&b, "%s%s\n", strings.Repeat(" ", max(gutter+1, gutter+1+(columns-utf8.RuneCountInString(name))/2)), name)
	return b.String()
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

// wrapText breaks text at spaces, and ends it with a line feed.
func wrapText(text string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+n > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	b.WriteByte('\n')
	return b.String()
}
