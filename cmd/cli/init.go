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
)

func newInit() *cobra.Command {
	var force, schema bool
	c := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write an example scenario with comments",
		Long: `Write an example scenario with comments to FILE, scenario.yaml if none is given, or to standard
output for -. With --schema print the JSON Schema of scenarios instead, for editors.`,
		Example: `  clifftop init
  clifftop init --schema > scenario.schema.json`,
		Args: atMostOne("file"),
		RunE: func(c *cobra.Command, args []string) error {
			path, data := "scenario.yaml", scenario.Example()
			if len(args) > 0 {
				path = args[0]
			}
			if schema {
				data = experiments.Schema()
			}
			if path == "-" || schema && len(args) == 0 {
				_, err := c.OutOrStdout().Write(data)
				return failed(err)
			}
			if !schema { // the commands in its comments are to be typed
				data = bytes.ReplaceAll(data, []byte("scenario.yaml"), []byte(path))
			}
			if err := writeNew(path, data, force); err != nil {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "clifftop: wrote %s\n", path)
			return nil
		},
	}
	c.Flags().BoolVarP(&force, "force", "f", false, "replace the file if it exists")
	c.Flags().BoolVar(&schema, "schema", false, "the JSON Schema of scenarios instead of an example")
	return c
}

// writeNew writes a file, over another only if it is forced to.
func writeNew(path string, data []byte, force bool) error {
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(path, mode, 0o666)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists already (want --force to replace it)", path)
	case err != nil:
		return fmt.Errorf("%s cannot be written: %s", path, cause(err))
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
