package curve

import (
	"io"
	"slices"
	"strings"

	"clifftop/report"
	"clifftop/report/layout"
)

// WriteMarkdown writes the points as a Markdown table for people, and below it what they show.
func (c *Curve) WriteMarkdown(w io.Writer) error {
	c, err := c.Downsampled()
	if err != nil {
		return err
	}
	var b strings.Builder
	head, rows := c.brief(false)
	b.WriteString("| " + strings.Join(head, " | ") + " |\n|" + strings.Repeat("---:|", len(head)) + "\n")
	for _, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	if text := c.Omits(); text != "" {
		b.WriteString("\n" + text + "\n")
	}
	for _, l := range c.legend() {
		b.WriteString("\n" + l[0] + " " + l[1] + "\n")
	}
	if lines := c.Findings(); len(lines) > 0 {
		b.WriteString("\n")
		for _, line := range lines {
			b.WriteString("* " + line[0] + ": " + line[1] + "\n")
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// columns returns the columns of the table after the first one.
func (c *Curve) columns() []report.CurveColumn {
	return slices.DeleteFunc(report.CurveColumns(), func(column report.CurveColumn) bool {
		return column.RateOnly && report.LastKey(c.Over) != "rate"
	})
}

// brief returns the table: the load and the columns that fit a page.
func (c *Curve) brief(narrow bool) (head []string, rows [][]string) {
	precision := 6
	if report.LastKey(c.Over) == "rate" {
		precision = 5
	}
	head = []string{report.LastKey(c.Over)}
	columns := c.columns()
	for _, column := range columns {
		if narrow {
			head = append(head, column.Narrow)
		} else {
			head = append(head, column.Title)
		}
	}
	for _, p := range c.Points {
		row := []string{layout.Significant(p.Value, precision)}
		s := p.Summary
		if s == nil {
			s = &report.Summary{}
		}
		row[0] += p.mark(s)
		half := []string{"  ±"}
		for _, column := range columns {
			value := report.MetricAt(column.Path).Reliable(s)
			row = append(row, layout.Cell(value))
			half = append(half, s.HalfWidth(column.Path, value))
		}
		rows = append(rows, row)
		if s.CI95Method == report.ByReplications && slices.ContainsFunc(half[1:], func(cell string) bool {
			return cell != ""
		}) {
			rows = append(rows, half)
		}
	}
	return head, rows
}

// The marks of rows.
const (
	shortMark      = "*"
	finiteMark     = "~"
	overloadedMark = "!"
)

// mark returns the mark behind the load of a row without a steady state.
func (p *Point) mark(s *report.Summary) string {
	switch {
	case p.Short:
		return shortMark
	case s.Window.State == report.Finite:
		return finiteMark
	case s.Window.State == report.Overloaded:
		return overloadedMark
	}
	return ""
}

// legend explains the marks that occur.
func (c *Curve) legend() (lines [][2]string) {
	if c.scan.finite > 0 {
		lines = append(lines, [2]string{finiteMark, "not settled: the numbers describe the simulated time, and a " +
			"longer run may differ"})
	}
	if c.scan.overloaded > 0 {
		lines = append(lines, [2]string{overloadedMark, "at or above saturation: latencies grow with the length of " +
			"the run"})
	}
	return lines
}

// fewSamples says that percentiles of the table are missing for want of samples; it is empty if none is missing.
func (c *Curve) fewSamples() string {
	for _, p := range c.Points {
		if text := p.Summary.FewSamplesNote(); text != "" {
			return text
		}
	}
	return ""
}

// WriteTable writes the points and the findings in lines of at most 80 characters.
func (c *Curve) WriteTable(w io.Writer) error {
	c, err := c.Downsampled()
	if err != nil {
		return err
	}
	t := &layout.Text{}
	head, rows := c.brief(true)
	t.Grid(append([][]string{head}, rows...), 8)
	replicated := slices.ContainsFunc(c.Points, func(p Point) bool {
		return p.Summary != nil && p.Summary.CI95Method == report.ByReplications
	})
	few := c.fewSamples()
	legend := c.legend()
	if replicated || few != "" || len(legend) > 0 {
		t.Blank()
	}
	for _, l := range legend {
		t.Line(l[0], l[1])
	}
	if replicated {
		t.Line("±", "half of a 95 % interval, by the runs at each load")
	}
	if few != "" {
		t.Line("–", few)
	}
	if text := c.Omits(); text != "" {
		t.Blank()
		t.Paragraph(text)
	}
	if lines := c.Findings(); len(lines) > 0 {
		t.Blank()
		for _, line := range lines {
			t.Line(line[0], line[1])
		}
	}
	_, err = t.WriteTo(w)
	return err
}
