package cli

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report/layout"
)

// exampleName is the file name of the example scenario, which its comments use in commands.
const exampleName = "scenario.yaml"

type initCommand struct{ force, schema bool }

func newInit() *cobra.Command {
	var i initCommand
	c := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write an example scenario with comments",
		Long: `Write an example scenario with comments to FILE (default scenario.yaml), or to standard output if
FILE is -. With --schema, print the JSON Schema of scenarios instead, for editors.`,
		Example: `  clifftop init
  clifftop init --schema > scenario.schema.json`,
		Args: console.AtMostOne("file"),
		RunE: i.run,
	}
	c.Flags().BoolVarP(&i.force, "force", "f", false, "replace the file if it exists")
	c.Flags().BoolVar(&i.schema, "schema", false, "write the JSON Schema of scenarios instead of an example")
	return c
}

func (i *initCommand) run(c *cobra.Command, args []string) error {
	path, data := exampleName, scenario.Example()
	if len(args) > 0 {
		path = args[0]
	}
	if i.schema {
		data = experiments.Schema()
	}
	if path == "-" || i.schema && len(args) == 0 {
		_, err := c.OutOrStdout().Write(data)
		return console.Failed(err)
	}
	if !i.schema {
		data = bytes.ReplaceAll(data, []byte(exampleName), []byte(path))
	}
	if err := console.WriteNew(path, data, i.force); err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "clifftop: wrote %s\n", layout.Plain(path))
	return nil
}
