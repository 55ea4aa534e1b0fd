package validation

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"clifftop/report/layout"
)

// WriteTable writes the report for people: a line for each row, what was not simulated, and the errors
// summed up, in lines of at most 120 characters.
func (r *Report) WriteTable(w io.Writer) error { return r.write(w, newLayout(false)) }

// WriteMarkdown writes the same tables as Markdown.
func (r *Report) WriteMarkdown(w io.Writer) error { return r.write(w, newLayout(true)) }

func (r *Report) write(w io.Writer, t *layout.Text) error {
	if text := r.Missing(); text != "" {
		t.Paragraph(text)
		t.Blank()
	}
	r.rowTable(t)
	r.refusals(t)
	r.ruleList(t)
	r.groupTable(t)
	r.summaryTable(t)
	r.kindTable(t)
	_, err := t.WriteTo(w)
	return err
}

func (r *Report) rowTable(t *layout.Text) {
	grid := [][]string{{"run", "model", "gpu", "load", "TTFT ms", "sim", "%", "p90 %", "p99 %", "TPOT ms", "sim", "%",
		"E2E %", "tok/s %"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Status != Scored {
			continue
		}
		line := []string{ending(row.RunID, 28), cut(row.Model, 13), cut(gpus(row.GPU, row.TP), 10), load(row)}
		for _, m := range []string{"ttft_mean_ms", "tpot_mean_ms"} {
			c := row.comparison(m)
			if c == nil {
				c = &Comparison{}
			}
			line = append(line, figure(c.Measured), figure(c.Simulated), percent(c.Error))
			if m == "ttft_mean_ms" {
				line = append(line, percent(row.Error("ttft_p90_ms")), percent(row.Error("ttft_p99_ms")))
			}
		}
		line = append(line, percent(row.Error("e2e_mean_ms")), percent(row.Error("output_tokens_per_s")))
		grid = append(grid, line)
	}
	if len(grid) > 1 {
		t.Heading("Measured and simulated: means, and errors in %% (simulated over measured, less 1)")
		t.Table(grid, 4, 1)
	}
}

// refusals counts the rows that were not scored by their reasons.
func (r *Report) refusals(t *layout.Text) {
	var reasons []string
	rows := map[string][]string{}
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Status != Scored {
			key := string(row.Status) + ": " + row.Reason
			if rows[key] == nil {
				reasons = append(reasons, key)
			}
			rows[key] = append(rows[key], row.RunID)
		}
	}
	if len(reasons) > 0 {
		t.Heading("Not scored")
	}
	for _, key := range reasons {
		list := rows[key]
		names := strings.Join(list[:min(2, len(list))], ", ")
		if len(list) > 2 {
			names += ", …"
		}
		t.Item(fmt.Sprintf("%d", len(list)), fmt.Sprintf("%s (%s)", key, names))
	}
}

// ruleList writes the assumptions and how often each was used.
func (r *Report) ruleList(t *layout.Text) {
	notes, count := r.rowNotes()
	if len(r.Rules)+len(r.Notes)+len(notes) == 0 {
		return
	}
	t.Heading("Filled in")
	for _, rule := range r.Rules {
		n := 0
		for i := range r.Rows {
			for _, code := range r.Rows[i].Rules {
				if code == rule.Code {
					n++
				}
			}
		}
		t.Item(fmt.Sprintf("%d", n), rule.Code+": "+rule.Text)
	}
	for _, note := range notes {
		t.Item(strconv.Itoa(count[note]), note)
	}
	for _, note := range r.Notes {
		t.Item("", note)
	}
}

// rowNotes are the notes of rows, in order, and how many have each.
func (r *Report) rowNotes() (notes []string, count map[string]int) {
	count = map[string]int{}
	for i := range r.Rows {
		for _, note := range r.Rows[i].Notes {
			if count[note] == 0 {
				notes = append(notes, note)
			}
			count[note]++
		}
	}
	return notes, count
}

// summed are the metrics of tables of summed-up errors.
var summed = []struct{ title, metric string }{
	{"TTFT", "ttft_mean_ms"}, {"p90", "ttft_p90_ms"}, {"p99", "ttft_p99_ms"}, {"TPOT", "tpot_mean_ms"},
	{"E2E", "e2e_mean_ms"}, {"p99", "e2e_p99_ms"}, {"tok/s", "output_tokens_per_s"},
}

func summedHead(first ...string) []string {
	for _, s := range summed {
		first = append(first, s.title)
	}
	return first
}

// summedCells are the medians, and the biases where there is more than one row.
func summedCells(list []Spread) []string {
	var cells []string
	for _, m := range summed {
		s := of(list, m.metric)
		switch {
		case s == nil:
			cells = append(cells, "–")
		default:
			cells = append(cells, fmt.Sprintf("%s (%s)", size(s.Median), percent(s.Bias)))
		}
	}
	return cells
}

// scored is the number of rows with errors.
func (r *Report) scored() int {
	n := 0
	for i := range r.Rows {
		if r.Rows[i].Status == Scored {
			n++
		}
	}
	return n
}

func (r *Report) groupTable(t *layout.Text) {
	if r.scored() < 2 {
		return
	}
	t.Heading("Errors over rows: median size (mean with sign) in %%")
	grid := [][]string{summedHead("", "", "rows")}
	last := ""
	for _, g := range r.Groups {
		by := g.By
		if by == last && !t.Markdown {
			by = ""
		}
		last = g.By
		grid = append(grid, append([]string{by, g.Value, strconv.Itoa(g.Rows)}, summedCells(g.Errors)...))
	}
	t.Table(grid, 2, 1)
}

func (r *Report) summaryTable(t *layout.Text) {
	if r.scored() < 2 {
		return
	}
	t.Heading("Errors over cells (model, GPU, tensor-parallel size): median of the cells' median sizes (their mean) " +
		"in %%")
	grid := [][]string{summedHead("", "rows", "cells")}
	for _, c := range r.Summary {
		line := []string{c.Name, strconv.Itoa(c.Rows), strconv.Itoa(len(c.Cells))}
		for _, m := range summed {
			cell := "–"
			if s := of(c.Errors, m.metric); s != nil {
				cell = fmt.Sprintf("%s (%s)", size(s.Median), size(s.Mean))
			}
			line = append(line, cell)
		}
		grid = append(grid, line)
	}
	t.Table(grid, 1, 1)
}

// WriteCSV writes a row for each run and metric, with the names of the JSON form.
func (r *Report) WriteCSV(w io.Writer) error {
	rows := [][]string{{"run_id", "status", "tier", "engine", "model", "moe", "gpu", "tp", "load", "rate", "users",
		"overload", "rules", "reason", "metric", "measured", "simulated", "error"}}
	for i := range r.Rows {
		row := &r.Rows[i]
		users := ""
		if row.Users != nil {
			users = strconv.Itoa(*row.Users)
		}
		line := []string{row.RunID, string(row.Status), row.Tier, row.Engine, row.Model, strconv.FormatBool(row.MoE),
			row.GPU, strconv.Itoa(row.TP),
			row.Load, exact(row.Rate), users, strconv.FormatBool(row.Overload), strings.Join(row.Rules, " "),
			row.Reason}
		metrics := row.Metrics
		if len(metrics) == 0 {
			metrics = []Comparison{{}}
		}
		for _, m := range metrics {
			rows = append(rows, append(slices.Clone(line), m.Metric, exact(m.Measured), exact(m.Simulated),
				exact(m.Error)))
		}
	}
	return writeCSV(w, rows)
}

func writeCSV(w io.Writer, rows [][]string) error { return layout.NewCSVWriter(w).WriteAll(rows) }

func exact(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'g', 10, 64)
}

// newLayout is for tables that are wider than most.
func newLayout(markdown bool) *layout.Text { return &layout.Text{Markdown: markdown, Columns: 120} }

// percent is an error with its sign.
func percent(e *float64) string {
	switch {
	case e == nil:
		return "–"
	case math.Abs(*e) >= 10:
		return fmt.Sprintf("%+.0f×", *e+1)
	case math.Abs(*e) >= 0.995:
		return fmt.Sprintf("%+.0f", 100**e)
	}
	return fmt.Sprintf("%+.1f", 100**e)
}

// size is an error without its sign.
func size(e *float64) string {
	if e == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f", 100**e)
}

// figure is a measured or simulated value of three to four digits.
func figure(x *float64) string {
	switch {
	case x == nil:
		return "–"
	case *x >= 1000:
		return fmt.Sprintf("%.0f", *x)
	case *x >= 100:
		return fmt.Sprintf("%.1f", *x)
	}
	return fmt.Sprintf("%.2f", *x)
}

// load says how much was asked.
func load(r *Result) string {
	switch {
	case r.Load == "closed" && r.Users != nil:
		return fmt.Sprintf("%d users", *r.Users)
	case r.Rate != nil:
		return fmt.Sprintf("%.3g/s", *r.Rate)
	}
	return r.Load
}

func gpus(name string, tp int) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, "-sxm"), "-se")
	if tp > 1 {
		return fmt.Sprintf("%d×%s", tp, name)
	}
	return name
}

// cut shortens a text to n characters.
func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func ending(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return "…" + string(r[len(r)-n+1:])
	}
	return s
}
