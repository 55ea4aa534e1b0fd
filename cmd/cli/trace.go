package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/experiments/scenario"
	"clifftop/experiments/traces"
	"clifftop/report/plot"
	"clifftop/workload"
	"clifftop/workload/trace"
)

func newTrace() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Inspect, convert and generate recorded traffic",
		Long: `Look into recorded traffic, select from it, change its load, and write it in Clifftop's own format.
"clifftop catalog formats" lists what can be read.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newInspect(), newConvert(), newGenerate())
	return c
}

func newInspect() *cobra.Command {
	var in traceFlags
	var output outputFlags
	var block int32
	c := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Say what recorded traffic is like",
		Long: `Read a trace and tell its rate, lengths, burstiness, correlations, sessions and shared prefixes, and what
to beware of. As long as nothing is selected or changed, this is the trace as it was recorded.`,
		Example: `  clifftop trace inspect trace.csv.gz
  clifftop trace inspect trace.jsonl --slice 10m..20m --format json
  clifftop trace inspect trace.csv --out pictures`,
		Args: oneTrace,
		RunE: func(c *cobra.Command, args []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			if block < 0 || block > 1<<20 {
				return fmt.Errorf("--block: %d is not allowed (want 1 to %d tokens)", block, 1<<20)
			}
			load, changed, err := in.load(c)
			if err != nil {
				return err
			}
			if !changed {
				load = nil
			}
			return inspectTrace(c, in.file(args[0]), load, block, &output)
		},
	}
	in.register(c)
	output.register(c, "table", "json", "markdown")
	c.Flags().BoolVarP(&output.quiet, "quiet", "q", false, "no warnings")
	c.Flags().StringVarP(&output.out, "out", "o", "", "write inspect.json and a picture, trace.png and trace.svg, into `DIR`")
	c.Flags().Int32Var(&block, "block", 0, "compare prefixes in blocks of `N` tokens (default 512)")
	return c
}

func inspectTrace(c *cobra.Command, file *scenario.TraceFile, load *trace.Load, block int32, output *outputFlags) error {
	dir, err := output.directory()
	if err != nil {
		return err
	}
	x, err := traces.Inspect(c.Context(), file, load, block)
	if err != nil {
		return traceError(err)
	}
	if output.format == "json" { // the others have the warnings in them
		var list []string
		for _, w := range x.Warnings {
			list = append(list, strings.TrimSuffix(w.Text, "."))
		}
		output.warn(c.ErrOrStderr(), list)
	}
	err = printOnce(c.OutOrStdout(), func(w io.Writer) error { return printResult(w, x, output.format) })
	if err != nil || dir == nil {
		return failed(err)
	}
	if err := dir.writeJSON("inspect.json", x); err != nil {
		return failed(err)
	}
	picture := plot.Traffic(x)
	picture.Caption = filepath.Base(x.File)
	return failed(picture.WriteFiles("trace", dir.write))
}

func newConvert() *cobra.Command {
	var in traceFlags
	var to string
	var quiet bool
	c := &cobra.Command{
		Use:   "convert FILE --to FILE",
		Short: "Write a trace in Clifftop's own format",
		Long: `Read a trace in any format, select from it, change its load, and write it as CSV, gzipped where the name
ends in .gz. Comments before the header record the source and what was done to it. Unlike a replay, a
conversion does not spread rows over the ticks of a coarse clock by itself.`,
		Example: `  clifftop trace convert trace.jsonl.gz --to trace.csv.gz
  clifftop trace convert week.csv --to noon.csv --slice 12h..13h --rate 8
  clifftop trace convert trace.csv --to - --class chat --limit 100`,
		Args: oneTrace,
		RunE: func(c *cobra.Command, args []string) error {
			if err := traceName(to); err != nil {
				return err
			}
			load, _, err := in.load(c)
			if err != nil {
				return err
			}
			return convertTrace(c, in.file(args[0]), *load, to, quiet)
		},
	}
	in.register(c)
	c.Flags().StringVar(&to, "to", "", "write to `FILE`, ending in .csv or .csv.gz; - is standard output")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "no warnings")
	return c
}

func convertTrace(c *cobra.Command, in *scenario.TraceFile, load trace.Load, to string, quiet bool) error {
	err := writeTrace(c, to, quiet, func(w io.Writer, zip bool) (int64, error) {
		rows, err := traces.Convert(c.Context(), w, in, load, zip)
		return rows, traceError(err)
	})
	if err == nil {
		out := outputFlags{quiet: quiet}
		out.warn(c.ErrOrStderr(), in.Last().Warnings())
	}
	return err
}

// traceName checks the name of a trace that is to be written.
func traceName(to string) error {
	const want = "want a file name ending in .csv or .csv.gz, or - for standard output"
	switch {
	case to == "":
		return errors.New("--to: the value is missing (" + want + ")")
	case to != "-" && !strings.HasSuffix(to, ".csv") && !strings.HasSuffix(to, ".csv.gz"):
		return fmt.Errorf("--to: %q is not allowed (%s)", to, want)
	}
	return nil
}

// writeTrace makes a trace in a file or on standard output, and says how many rows it has.
func writeTrace(c *cobra.Command, to string, quiet bool, fill func(w io.Writer, zip bool) (int64, error)) error {
	if to == "-" {
		w := &remembered{Writer: c.OutOrStdout()}
		if _, err := fill(w, false); w.err == nil {
			return err
		}
		return failed(w.err)
	}
	dir := &directory{filepath.Dir(to)}
	f, err := dir.create(filepath.Base(to))
	if err != nil {
		return err
	}
	defer f.abandon()
	rows, err := fill(f, strings.HasSuffix(to, ".gz"))
	var w *writeError
	if errors.As(err, &w) {
		return failed(err)
	} else if err != nil {
		return err
	}
	if err := f.commit(); err != nil {
		return failed(err)
	}
	if !quiet {
		fmt.Fprintf(c.ErrOrStderr(), "clifftop: wrote %s: %d rows\n", to, rows)
	}
	return nil
}

func newGenerate() *cobra.Command {
	var scenario scenarioFlags
	var to string
	var quiet bool
	c := &cobra.Command{
		Use:   "generate [SCENARIO] --to FILE",
		Short: "Write the traffic of a scenario as a trace",
		Long: `Write the requests that a scenario sends, as they meet the system in a run with the same seed, in Clifftop's
own format; gzipped where the name ends in .gz. A closed loop has no traffic of its own.`,
		Example: `  clifftop trace generate --to chat.csv.gz --rate 8 --requests 100000
  clifftop trace generate scenario.yaml --to -`,
		Args: atMostOne("scenario"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := traceName(to); err != nil {
				return err
			}
			s, err := scenario.load(args)
			if err != nil {
				return err
			}
			setup, err := s.Resolve()
			if err != nil {
				return err
			}
			out := outputFlags{quiet: quiet}
			out.warn(c.ErrOrStderr(), texts(setup.Warnings))
			return writeTrace(c, to, quiet, func(w io.Writer, zip bool) (int64, error) {
				return traces.Generate(c.Context(), setup, w, zip)
			})
		},
	}
	scenario.register(c)
	c.Flags().StringVar(&to, "to", "", "write to `FILE`, ending in .csv or .csv.gz; - is standard output")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "no warnings")
	return c
}

// remembered is a writer that remembers that it failed, to tell its errors from those of the trace.
type remembered struct {
	io.Writer
	err error
}

// Write writes on.
func (r *remembered) Write(p []byte) (int, error) {
	n, err := r.Writer.Write(p)
	if err != nil {
		r.err = err
	}
	return n, err
}

// oneTrace wants the name of one trace.
func oneTrace(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return fmt.Errorf("%s: the trace is missing (want a file, or a directory of ServeGen's)", c.Name())
	case len(args) == 1 && args[0] == "":
		return fmt.Errorf("%s: the name of the trace is empty", c.Name())
	}
	return atMostOne("trace")(c, args)
}

// traceError names the flags where the load of a trace is at fault.
func traceError(err error) error {
	if err == nil {
		return nil
	}
	var list []error
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	} else {
		list = []error{err}
	}
	var f *workload.FieldError
	if !errors.As(list[0], &f) {
		return err
	}
	key := strings.TrimPrefix(f.Key, "workload.trace.")
	switch key {
	case "from", "to":
		key = "slice"
	case "classes":
		key = "class"
	}
	return fmt.Errorf("--%s: %s", key, f.Problem)
}
