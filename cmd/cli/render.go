package cli

import (
	"bytes"
	"fmt"
	"io"

	"clifftop/report"
)

// terminalWidth is the width of charts in text.
const terminalWidth = 80

// printOnce prints in one write, so that a reader who leaves early meets no half of it.
func printOnce(w io.Writer, fill func(io.Writer) error) error {
	var b printed
	if err := fill(&b); err != nil {
		return err
	}
	text := b.Bytes()
	if b.table && coloured(w) {
		text = paint(text)
	}
	_, err := w.Write(text)
	return err
}

// printed is what is printed at once.
type printed struct {
	bytes.Buffer
	table bool // for people, who may like colours
}

// forPeople notes that what is printed is a table, where it is printed at once.
func forPeople(w io.Writer) {
	if p, ok := w.(*printed); ok {
		p.table = true
	}
}

// printResult prints a result in one of the forms that it has.
func printResult(w io.Writer, r interface{ WriteTable(io.Writer) error }, format string) error {
	switch format {
	case "json":
		return printJSON(w, r)
	case "csv":
		if r, ok := r.(interface{ WriteCSV(io.Writer) error }); ok {
			return r.WriteCSV(w)
		}
	case "markdown":
		if r, ok := r.(interface{ WriteMarkdown(io.Writer) error }); ok {
			return r.WriteMarkdown(w)
		}
	case "table":
		forPeople(w)
		return r.WriteTable(w)
	}
	return fmt.Errorf("a %T cannot be printed as %s", r, format)
}

// banded is a summary with the bands that its table names, and the course of the run, if it is of one.
type banded struct {
	*report.Summary
	bands  report.Profile
	series []report.SeriesPoint
}

// WriteTable writes the summary for people, and below it the course.
func (b banded) WriteTable(w io.Writer) error {
	if err := b.Summary.WriteTable(w, b.bands); err != nil {
		return err
	}
	return report.WriteCourse(w, b.series)
}

// WriteMarkdown writes the summary as Markdown.
func (b banded) WriteMarkdown(w io.Writer) error { return b.Summary.WriteMarkdown(w, b.bands) }
