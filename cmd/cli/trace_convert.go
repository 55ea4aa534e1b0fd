package cli

import (
	"io"

	"github.com/spf13/cobra"

	"clifftop/experiments/traces"
)

// convertCommand is the command trace convert.
type convertCommand struct {
	trace  traceFlags
	output traceOutput
}

func newConvert() *cobra.Command {
	var t convertCommand
	c := &cobra.Command{
		Use:   "convert FILE --to FILE",
		Short: "Write a trace in Clifftop's own format",
		Long: `Read a trace in any format, select a part of it, change its load, and write it as CSV, compressed
if the file name ends in .gz. Comments before the header record the source and the changes. Unlike a replay, a
conversion does not spread rows over the ticks of a coarse clock unless --dequantise says so.`,
		Example: `  clifftop trace convert trace.jsonl.gz --to trace.csv.gz
  clifftop trace convert week.csv --to noon.csv --slice 12h..13h --rate 8
  clifftop trace convert trace.csv --to - --class chat --limit 100`,
		Args: oneTrace,
		RunE: t.run,
	}
	t.trace.register(c)
	t.output.register(c)
	return c
}

func (t *convertCommand) run(c *cobra.Command, args []string) error {
	in := t.trace.file(args[0])
	err := t.output.write(c, func(w io.Writer, zip bool) (int64, error) {
		rows, err := traces.Convert(c.Context(), w, in, *t.trace.load(), zip)
		return rows, traceError(err)
	})
	if err == nil {
		t.output.Warn(c, in.Last().Warnings())
	}
	return err
}
