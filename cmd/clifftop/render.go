package main

import (
	"bytes"
	"fmt"
	"io"

	"clifftop/report"
	"clifftop/report/plot"
)

// terminalWidth is the width of charts in text.
const terminalWidth = 80

// printOnce prints in one write, so that a reader who leaves early meets no half of it.
func printOnce(w io.Writer, fill func(io.Writer) error) error {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
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
		return r.WriteTable(w)
	}
	return fmt.Errorf("a %T cannot be printed as %s", r, format)
}

// banded is a summary with the bands that its table names.
type banded struct {
	*report.Summary
	bands report.Profile
}

// WriteTable writes the summary for people.
func (b banded) WriteTable(w io.Writer) error { return b.Summary.WriteTable(w, b.bands) }

// WriteMarkdown writes the summary as Markdown.
func (b banded) WriteMarkdown(w io.Writer) error { return b.Summary.WriteMarkdown(w, b.bands) }

// drawn is a curve whose table has a chart below it.
type drawn struct{ *report.Curve }

// WriteTable writes the points and the chart.
func (d drawn) WriteTable(w io.Writer) error {
	if err := d.Curve.WriteTable(w); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return plot.Terminal(w, d.Curve, terminalWidth)
}

// writePictures draws a curve into files.
func writePictures(dir *directory, curve *report.Curve, caption string) error {
	return plot.WriteAll(curve, caption, func(name string) (io.WriteCloser, error) {
		f, err := dir.create(name)
		if err != nil {
			return nil, err
		}
		return pictureFile{f}, nil
	})
}

// pictureFile commits on closing.
type pictureFile struct{ *file }

// Close gives the file its name.
func (p pictureFile) Close() error { return p.commit() }
