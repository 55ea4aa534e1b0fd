package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"clifftop/experiments/traces"
	"clifftop/report/plot"
)

// maxPrefixBlock is the largest block of --block in tokens.
const maxPrefixBlock = 1 << 20

// inspectCommand is the command trace inspect.
type inspectCommand struct {
	trace  traceFlags
	output outputFlags
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
	i.output.registerFormat(c, "table", "json", "markdown")
	i.output.registerQuiet(c, "print no warnings")
	i.output.registerOut(c, "write inspect.json, trace.png and trace.svg into `DIR`")
	c.Flags().Int32Var(&i.block, "block", 0, "compare prefixes in blocks of `N` tokens (default 512)")
	addCheck(c, func() error {
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
	dir, err := i.output.directory()
	if err != nil {
		return err
	}
	x, err := traces.Inspect(c.Context(), i.trace.file(args[0]), load, i.block)
	if err != nil {
		return traceError(err)
	}
	if !i.output.hasWarnings() {
		i.output.warn(c, warningTexts(x.Warnings))
	}
	if err := i.output.print(c, x); err != nil || dir == nil {
		return failed(err)
	}
	if err := dir.writeJSON("inspect.json", x); err != nil {
		return failed(err)
	}
	picture := plot.Traffic(x)
	picture.Caption = filepath.Base(x.File)
	return failed(picture.WriteFiles("trace", dir.write))
}
