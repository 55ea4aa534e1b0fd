package cli

import (
	"cmp"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/report/curve"
	"clifftop/report/page"
	"clifftop/report/plot"
)

// shownCurve is the curve of a sweep, from one process or merged, with the texts and numbers around it.
type shownCurve struct {
	*curve.Curve
	caption string
	machine page.Machine
}

// show prints the curve and writes its files. The directory may be nil.
func (s *shownCurve) show(c *cobra.Command, dir *console.Directory, output *console.OutputFlags) error {
	printErr, err := s.print(c, output), s.write(c, dir, output)
	return cmp.Or(printErr, err)
}

// print prints the curve. JSON and CSV may be larger than memory and are not buffered.
func (s *shownCurve) print(c *cobra.Command, output *console.OutputFlags) error {
	output.Warn(c, warningTexts(s.CommonWarnings()))
	switch output.Format {
	case "json":
		return s.WriteJSON(c.OutOrStdout())
	case "csv":
		return s.WriteCSV(c.OutOrStdout())
	}
	shown, err := s.Downsampled()
	if err != nil {
		return err
	}
	return output.Print(c, curveTable{shown})
}

// write writes the files of the curve: tables, JSON, pictures and the page. The directory may be nil.
func (s *shownCurve) write(c *cobra.Command, dir *console.Directory, output *console.OutputFlags) error {
	if dir == nil {
		return nil
	}
	if err := dir.Write("curve.csv", s.WriteCSV); err != nil {
		return err
	}
	if s.HasClasses() {
		if err := dir.Write("classes.csv", s.WriteClassesCSV); err != nil {
			return err
		}
	}
	if err := dir.Write("curve.json", s.WriteJSON); err != nil {
		return err
	}
	shown, err := s.Downsampled()
	if err != nil {
		return err
	}
	if err := plot.WriteAll(shown, s.caption, dir.Write); err != nil {
		return err
	}
	if err := s.writePage(c, dir, shown); err != nil {
		return err
	}
	output.Say(c, "wrote report.html, curve.csv, curve.json, sweep.png and other pictures into %s",
		filepath.Clean(dir.Path))
	return nil
}

// writePage writes the curve as a web page, with the scenario of the lowest load.
func (s *shownCurve) writePage(c *cobra.Command, dir *console.Directory, shown *curve.Curve) error {
	p, err := page.Sweep(shown, s.machine)
	if err == nil {
		p.Caption = s.caption
		if lowest := shown.Points[0].Summary; lowest != nil && lowest.Scenario != nil {
			p.Origin.Scenarios = []page.Scenario{{Name: "at the lowest load", Value: lowest.Scenario}}
		}
	}
	return writePage(c, dir, p, err)
}

// curveTable is a curve whose table is followed by a chart.
type curveTable struct{ *curve.Curve }

func (t curveTable) WriteTable(w io.Writer) error {
	if err := t.Curve.WriteTable(w); err != nil {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return plot.Terminal(w, t.Curve, console.TerminalWidth)
}
