package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/report/layout"
)

// outputFlags are the flags that control what a command prints and writes.
type outputFlags struct {
	format string
	out    string // directory for result files; empty writes none
	quiet  bool   // no progress, no warnings, no messages about files
}

// registerFormat adds --format. The first format is the default.
func (f *outputFlags) registerFormat(c *cobra.Command, formats ...string) {
	addChoice(c, &f.format, "format", "format of the result: "+strings.Join(formats, ", "), formats...)
}

// registerOut adds --out with an empty default.
func (f *outputFlags) registerOut(c *cobra.Command, usage string) {
	c.Flags().StringVarP(&f.out, "out", "o", f.out, usage)
}

// registerQuiet adds --quiet.
func (f *outputFlags) registerQuiet(c *cobra.Command, usage string) {
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, usage)
}

// directory opens the directory of --out. It returns nil if there is none.
func (f *outputFlags) directory() (*directory, error) {
	if f.out == "" {
		return nil, nil
	}
	return openDirectory("--out", f.out)
}

// warn prints warnings to standard error, equal ones once.
func (f *outputFlags) warn(c *cobra.Command, texts []string) {
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

// say prints a message to standard error, such as the names of files that were written.
func (f *outputFlags) say(c *cobra.Command, format string, args ...any) {
	if !f.quiet {
		fmt.Fprintln(c.ErrOrStderr(), layout.Plain("clifftop: "+fmt.Sprintf(format, args...)))
	}
}

// print prints a result to standard output in the format of --format.
func (f *outputFlags) print(c *cobra.Command, r tabular) error {
	return printOnce(c.OutOrStdout(), func(w io.Writer) error { return printResult(w, r, f.format) })
}

// hasWarnings reports whether the result in the chosen format contains the warnings. The other formats leave them to
// standard error.
func (f *outputFlags) hasWarnings() bool { return f.format == "table" || f.format == "markdown" }

// simulationFlags are the output flags of commands that simulate, and those that control the simulation.
type simulationFlags struct {
	outputFlags
	progress string
	check    bool
	jobs     int // runs in parallel; 0 means one per processor
}

// register adds --format, --progress, --quiet and --check. The first format is the default.
func (f *simulationFlags) register(c *cobra.Command, formats ...string) {
	f.registerFormat(c, formats...)
	f.registerQuiet(c, "print no progress and no warnings")
	addChoice(c, &f.progress, "progress", "progress display: auto (a bar on a terminal), plain, off",
		"auto", "plain", "off")
	c.Flags().BoolVar(&f.check, "check", false, "check the simulator's invariants during the run; slower")
}

// registerJobs adds --jobs, for commands that make several runs.
func (f *simulationFlags) registerJobs(c *cobra.Command) {
	c.Flags().IntVarP(&f.jobs, "jobs", "j", 0, "`N` runs in parallel (default one per processor); changes no result")
	addCheck(c, func() error {
		if f.jobs < 0 {
			return fmt.Errorf("--jobs: %d is not allowed (want 1 or more, or 0 for one per processor)", f.jobs)
		}
		return nil
	})
}
