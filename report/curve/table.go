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
	c, err := c.Shown()
	if err != nil {
		return err
	}
	var b strings.Builder
	head, rows := c.brief()
	b.WriteString("| " + strings.Join(head, " | ") + " |\n|" + strings.Repeat("---:|", len(head)) + "\n")
	for _, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	if text := c.Omits(); text != "" {
		b.WriteString("\n" + text + "\n")
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

// brief are the few columns that fit a page. Beside a rate stands the one that there was.
func (c *Curve) brief() (head []string, rows [][]string) {
	isRate, precision := report.LastKey(c.Over) == "rate", 6
	if isRate {
		precision = 5
	}
	head = []string{report.LastKey(c.Over), "req/s", "out tok/s", "TTFT p50 ms", "p99 ms", "TPOT p50 ms", "p99 ms",
		"busy", "KV max"}
	if isRate {
		head = slices.Insert(head, 1, "offered")
	}
	for _, p := range c.Points {
		row := []string{layout.Significant(p.Value, precision)}
		if p.Short {
			row[0] += "*"
		}
		s := p.Summary
		if s == nil {
			s = &report.Summary{}
		}
		half := []string{"  ±"}
		for _, n := range pointNumbers(s, isRate) {
			row = append(row, layout.Cell(n.value))
			half = append(half, s.HalfWidth(n.path, n.value))
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

// FewSamplesNote says why percentiles of the table are missing; it is empty where none is, for want of samples.
func (c *Curve) fewSamples() string {
	for _, p := range c.Points {
		if text := p.Summary.FewSamplesNote(); text != "" {
			return text
		}
	}
	return ""
}

// quantity is a number of a summary, with its path there.
type quantity struct {
	path  string
	value *float64
}

// pointNumbers are the numbers of a row of a curve's table, with the offered rate if it is wanted.
func pointNumbers(s *report.Summary, offered bool) []quantity {
	var row []quantity
	for _, path := range [...]string{
		"throughput.offered_requests_per_s", "throughput.requests_per_s", "throughput.output_tokens_per_s",
		"latency_ms.ttft.p50", "latency_ms.ttft.p99", "latency_ms.tpot.p50", "latency_ms.tpot.p99",
		"system.busy_fraction", "system.kv_usage.max",
	} {
		row = append(row, quantity{path, report.MetricAt(path).Reliable(s)})
	}
	if !offered {
		row = row[1:]
	}
	return row
}

// WriteTable writes the points for people, in lines of at most 80 characters, and what they show.
func (c *Curve) WriteTable(w io.Writer) error {
	c, err := c.Shown()
	if err != nil {
		return err
	}
	t := &layout.Text{}
	head, rows := c.brief()
	short := append(head[:len(head)-8:len(head)-8], "req/s", "tok/s", "TTFTp50", "p99", "TPOTp50", "p99", "busy",
		"KVmax")
	t.Grid(append([][]string{short}, rows...), 8)
	replicated := slices.ContainsFunc(c.Points, func(p Point) bool {
		return p.Summary != nil && p.Summary.CI95Method == report.ByReplications
	})
	few := c.fewSamples()
	if replicated || few != "" {
		t.Blank()
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
