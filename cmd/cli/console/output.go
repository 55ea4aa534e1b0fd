package console

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/report/layout"
)

// OutputFlags are the flags that control what a command prints and writes.
type OutputFlags struct {
	Format string
	Out    string // directory for result files; empty writes none
	quiet  bool   // no progress, no warnings, no messages about files
}

// RegisterFormat adds --format. The first format is the default.
func (f *OutputFlags) RegisterFormat(c *cobra.Command, formats ...string) {
	AddChoice(c, &f.Format, "format", "format of the result: "+strings.Join(formats, ", "), formats...)
}

// RegisterOut adds --out with an empty default.
func (f *OutputFlags) RegisterOut(c *cobra.Command, usage string) {
	c.Flags().StringVarP(&f.Out, "out", "o", f.Out, usage)
}

// RegisterQuiet adds --quiet.
func (f *OutputFlags) RegisterQuiet(c *cobra.Command, usage string) {
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, usage)
}

// Quiet reports whether --quiet is given.
func (f *OutputFlags) Quiet() bool { return f.quiet }

// Directory opens the directory of --out. It returns nil if there is none.
func (f *OutputFlags) Directory() (*Directory, error) {
	if f.Out == "" {
		return nil, nil
	}
	return OpenDirectory("--out", f.Out)
}

// Warn prints warnings to standard error, equal ones once.
func (f *OutputFlags) Warn(c *cobra.Command, texts []string) {
	if f.quiet {
		return
	}
	var seen []string
	for _, text := range texts {
		if !slices.Contains(seen, text) {
			fmt.Fprintf(c.ErrOrStderr(), "clifftop: warning: %s\n", layout.Plain(text))
			seen = append(seen, text)
		}
	}
}

// Say prints a message to standard error, such as the names of files that were written.
func (f *OutputFlags) Say(c *cobra.Command, format string, args ...any) {
	if !f.quiet {
		fmt.Fprintln(c.ErrOrStderr(), layout.Plain("clifftop: "+fmt.Sprintf(format, args...)))
	}
}

// Print prints a result to standard output in the format of --format.
func (f *OutputFlags) Print(c *cobra.Command, r Tabular) error {
	return PrintOnce(c.OutOrStdout(), func(w io.Writer) error { return printResult(w, r, f.Format) })
}

// HasWarnings reports whether the result in the chosen format contains the warnings. The other formats leave them to
// standard error.
func (f *OutputFlags) HasWarnings() bool { return f.Format == "table" || f.Format == "markdown" }

// SimulationFlags are the output flags of commands that simulate, and those that control the simulation.
type SimulationFlags struct {
	OutputFlags
	progress string
	Check    bool
	Jobs     int // runs in parallel; 0 means one per processor
}

// Register adds --format, --progress, --quiet and --check. The first format is the default.
func (f *SimulationFlags) Register(c *cobra.Command, formats ...string) {
	f.RegisterFormat(c, formats...)
	f.RegisterQuiet(c, "print no progress and no warnings")
	AddChoice(c, &f.progress, "progress", "progress display: auto (a bar on a terminal), plain, off",
		"auto", "plain", "off")
	c.Flags().BoolVar(&f.Check, "check", false, "check the simulator's invariants during the run; slower")
}

// RegisterJobs adds --jobs, for commands that make several runs.
func (f *SimulationFlags) RegisterJobs(c *cobra.Command) {
	c.Flags().IntVarP(&f.Jobs, "jobs", "j", 0, "`N` runs in parallel (default one per processor); changes no result")
	AddCheck(c, func() error {
		if f.Jobs < 0 {
			return fmt.Errorf("--jobs: %d is not allowed (want 1 or more, or 0 for one per processor)", f.Jobs)
		}
		return nil
	})
}
