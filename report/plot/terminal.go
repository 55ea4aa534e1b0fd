package plot

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"clifftop/report/chart"
	"clifftop/report/curve"
)

// Terminal prints a sweep as text: the title, throughput against load, and TTFT against load. It fits in width columns,
// limited to 40 to 100; 0 means 80. It needs neither colours nor cursor.
func Terminal(w io.Writer, c *curve.Curve, width int) error {
	width = textWidth(width)
	v := newSweep(c)

	var b strings.Builder
	b.WriteString(wrapText(v.title()+".", width))
	if s := v.detail(); s != "" {
		b.WriteString(wrapText(s, width))
	}
	throughput := axis{}
	latencies := axis{log: true, unit: chart.Milliseconds}
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
	if slices.ContainsFunc(v.points, func(p point) bool { return p.finite && p.steady }) {
		parts = append(parts, "~ not settled")
	}
	if v.points.anyShort() {
		parts = append(parts, "o too short a run")
	}
	for _, m := range v.landmarks() {
		parts = append(parts, fmt.Sprintf("%c %s at %s", letter(m), m.name, v.load(m.load)))
	}
	var b strings.Builder
	writeLegend(&b, parts, width)
	return b.String()
}

func letter(m landmark) rune {
	return map[shape]rune{diamond: 'K', triangle: 'P', inverted: 'C'}[m.shape]
}

// chart draws a statistic against load; it is empty if there is nothing to draw.
func (v *sweep) chart(title string, y axis, stat statistic, rows, width int) string {
	points := v.series(stat)
	c := textChart{title: title, x: v.loadAxis(), y: y, rows: rows, width: width,
		lines: []textLine{{points: points, glyph: '*', hollow: 'o', joint: '.'}}}
	for _, m := range v.landmarks() {
		if value, ok := v.at(m.load, stat); ok {
			c.marks = append(c.marks, textMark{m.load, value, letter(m)})
		}
	}
	values := make([]float64, len(points))
	for i, p := range points {
		values[i] = p.y
	}
	if !c.y.spread(values, c.labels()) || !(c.x.min < c.x.max) {
		return ""
	}
	return c.String()
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
