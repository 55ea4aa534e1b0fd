package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/traces"
	"clifftop/report/plot"
)

// maxPrefixBlock is the largest block of --block in tokens.
const maxPrefixBlock = 1 << 20

// inspectCommand is the command trace inspect.
type inspectCommand struct {
	trace  traceFlags
	output console.OutputFlags
	block  int32
}

func newInspect() *cobra.Command {
	var i inspectCommand
	c := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Analyze recorded traffic",
		Long: `Analyze a trace: rate, lengths, burstiness, correlations, sessions and shared prefixes, with warnings.
Unless flags select or change something, the trace is analyzed as recorded.`,
		Example: `  clifftop trace inspect trace.csv.gz
  clifftop trace inspect trace.jsonl --slice 10m..20m --format json
  clifftop trace inspect trace.csv --out pictures`,
		Args: oneTrace,
		RunE: i.run,
	}
	i.trace.register(c)
	i.output.RegisterFormat(c, "table", "json", "markdown")
	i.output.RegisterQuiet(c, "print no warnings")
	i.output.RegisterOut(c, "write inspect.json, trace.png and trace.svg into `DIR`")
	c.Flags().Int32Var(&i.block, "block", 0, "compare prefixes in blocks of `N` tokens (default 512)")
	console.AddCheck(c, func() error {
		if i.block < 0 || i.block > maxPrefixBlock {
			return fmt.Errorf("--block: %d is not allowed (want 1 to %d tokens)", i.block, maxPrefixBlock)
		}
		return nil
	})
	return c
}

func (i *inspectCommand) run(c *cobra.Command, args []string) error {
	load := i.trace.load()
	if !i.trace.changesLoad(c) {
		load = nil
	}
	dir, err := i.output.Directory()
	if err != nil {
		return err
	}
	x, err := traces.Inspect(c.Context(), i.trace.file(args[0]), load, i.block)
	if err != nil {
		return traceError(err)
	}
	if !i.output.HasWarnings() {
		i.output.Warn(c, warningTexts(x.Warnings))
	}
	if err := i.output.Print(c, x); err != nil || dir == nil {
		return console.Failed(err)
	}
	if err := dir.WriteJSON("inspect.json", x); err != nil {
		return console.Failed(err)
	}
	picture := plot.Traffic(x)
	picture.Caption = filepath.Base(x.File)
	return console.Failed(picture.WriteFiles("trace", dir.Write))
}
