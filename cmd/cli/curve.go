package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"clifftop/report"
	"clifftop/report/page"
	"clifftop/report/plot"
)

// shownCurve is the result of a sweep, of one process or merged, with what stands beside it.
type shownCurve struct {
	*report.Curve
	caption string
	machine page.Machine
}

// print prints the curve. JSON and CSV may be larger than memory, and are printed as they come.
func (s *shownCurve) print(c *cobra.Command, output *outputFlags) error {
	output.warn(c.ErrOrStderr(), texts(s.CommonWarnings()))
	w := c.OutOrStdout()
	switch output.format {
	case "json":
		return s.WriteJSON(w)
	case "csv":
		return s.WriteCSV(w)
	}
	shown, err := s.Shown()
	if err != nil {
		return err
	}
	return printOnce(w, func(w io.Writer) error { return printResult(w, drawn{shown}, output.format) })
}

// write writes the files of a sweep into a directory, classes.csv among them where the traffic has classes. Nothing is written
// without one.
func (s *shownCurve) write(c *cobra.Command, dir *directory, output *outputFlags) error {
	if dir == nil {
		return nil
	}
	if err := dir.write("curve.csv", s.WriteCSV); err != nil {
		return err
	}
	if s.HasClasses() {
		if err := dir.write("classes.csv", s.WriteClassesCSV); err != nil {
			return err
		}
	}
	if err := dir.write("curve.json", s.WriteJSON); err != nil {
		return err
	}
	shown, err := s.Shown()
	if err != nil {
		return err
	}
	if err := plot.WriteAll(shown, s.caption, dir.write); err != nil {
		return err
	}
	p, err := page.Sweep(shown, s.machine)
	if err == nil {
		p.Caption = s.caption
		if lowest := shown.Points[0].Summary; lowest != nil && lowest.Scenario != nil { // it stands for the scenario
			p.Origin.Scenarios = []page.Scenario{{Name: "at the lowest load", Value: lowest.Scenario}}
		}
	}
	if err := writePage(c, dir, p, err); err != nil {
		return err
	}
	if !output.quiet {
		fmt.Fprintf(c.ErrOrStderr(), "clifftop: wrote report.html, curve.csv, curve.json, sweep.png and other pictures into %s\n", filepath.Clean(dir.path))
	}
	return nil
}

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
