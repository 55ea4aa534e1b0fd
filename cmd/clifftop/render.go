package main

import (
	"bytes"
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

// printSummary prints the result of a run, or of several.
func printSummary(w io.Writer, s *report.Summary, format string, bands report.Profile) error {
	switch format {
	case "json":
		return printJSON(w, s)
	case "csv":
		return s.WriteCSV(w)
	case "markdown":
		return s.WriteMarkdown(w, bands)
	}
	return s.WriteTable(w, bands)
}

// printSweep prints a curve.
func printSweep(w io.Writer, curve *report.Curve, format string) error {
	switch format {
	case "json":
		return printJSON(w, curve)
	case "csv":
		return curve.WriteCSV(w)
	case "markdown":
		return curve.WriteMarkdown(w)
	}
	if err := curve.WriteTable(w); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return plot.Terminal(w, curve, terminalWidth)
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
