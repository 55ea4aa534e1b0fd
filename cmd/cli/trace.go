package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/workload"
)

func newTrace() *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Inspect, convert and generate recorded traffic",
		Long: `Analyze recorded traffic, select a part of it, change its load, and write it in Clifftop's own format.
"clifftop catalog formats" lists the formats that can be read.`,
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

// oneTrace requires the path of one trace as the argument.
func oneTrace(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s: the trace is missing (want a file, or a directory in ServeGen's format)", c.Name())
	}
	return console.AtMostOne("trace")(c, args)
}

// traceOutput are the flags of commands that write a trace.
type traceOutput struct {
	console.OutputFlags
	to string
}

func (o *traceOutput) register(c *cobra.Command) {
	c.Flags().StringVar(&o.to, "to", "", "write to `FILE`, which ends in .csv or .csv.gz; - is standard output")
	o.RegisterQuiet(c, "print no warnings")
	console.AddCheck(c, o.check)
}

func (o *traceOutput) check() error {
	const want = "want a file name ending in .csv or .csv.gz, or - for standard output"
	switch {
	case o.to == "":
		return errors.New("--to: the value is missing (" + want + ")")
	case o.to != "-" && !strings.HasSuffix(o.to, ".csv") && !strings.HasSuffix(o.to, ".csv.gz"):
		return fmt.Errorf("--to: %q is not allowed (%s)", o.to, want)
	}
	return nil
}

// write writes a trace to the file of --to. The function fill writes the rows, compressed if zip is set, and returns
// their number.
func (o *traceOutput) write(c *cobra.Command, fill func(w io.Writer, zip bool) (int64, error)) error {
	if o.to == "-" {
		w := &console.Output{Writer: c.OutOrStdout()}
		if _, err := fill(w, false); w.Err == nil {
			return err
		}
		return console.Failed(w.Err)
	}
	dir := &console.Directory{Path: filepath.Dir(o.to)}
	f, err := dir.Create(filepath.Base(o.to))
	if err != nil {
		return err
	}
	defer f.Abandon()
	rows, err := fill(f, strings.HasSuffix(o.to, ".gz"))
	if w := (*console.WriteError)(nil); errors.As(err, &w) {
		return console.Failed(err)
	}
	if err != nil {
		return err
	}
	if err := f.Commit(); err != nil {
		return console.Failed(err)
	}
	o.Say(c, "wrote %s: %d rows", o.to, rows)
	return nil
}

// traceError names the flag in an error about the load of a trace. It returns other errors unchanged.
func traceError(err error) error {
	if err == nil {
		return nil
	}
	first := err
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		first = joined.Unwrap()[0]
	}
	var f *workload.FieldError
	if !errors.As(first, &f) {
		return err
	}
	flag := strings.TrimPrefix(f.Key, "workload.trace.")
	switch flag {
	case "from", "to":
		flag = "slice"
	case "classes":
		flag = "class"
	}
	return fmt.Errorf("--%s: %s", flag, f.Problem)
}
