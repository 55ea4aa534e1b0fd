package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report/layout"
)

// exampleName is the file name of the example scenario, which its comments use in commands.
const exampleName = "scenario.yaml"

// initCommand is the command init.
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
		Args: atMostOne("file"),
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
		return failed(err)
	}
	if !i.schema {
		data = bytes.ReplaceAll(data, []byte(exampleName), []byte(path))
	}
	if err := writeNew(path, data, i.force); err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOrStderr(), "clifftop: wrote %s\n", layout.Plain(path))
	return nil
}

// writeNew writes a file. It replaces an existing file only if force is set.
func writeNew(path string, data []byte, force bool) error {
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, mode, 0o666)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s already exists (want --force to replace it)", path)
	case err != nil:
		return fmt.Errorf("%s cannot be written to: %s", path, cause(err))
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return failed(&writeError{path, err})
	}
	return nil
}
