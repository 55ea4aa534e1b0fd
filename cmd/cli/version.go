package cli

import (
	"io"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments"
	"clifftop/internal/notices"
)

// commit is the hash of the commit that the program was built from. The build of a release sets it with -ldflags -X.
var commit string

// version returns the version of the program, followed by the commit if the program is of a release.
func version() string {
	if commit == "" {
		return experiments.Version
	}
	return experiments.Version + " (" + commit[:min(12, len(commit))] + ")"
}

func newVersion() *cobra.Command {
	var licences bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version, or the licences of third-party parts", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			text := "clifftop " + version() + "\n"
			if licences {
				text = notices.Text
			}
			_, err := io.WriteString(c.OutOrStdout(), text)
			return console.Failed(err)
		},
	}
	c.Flags().BoolVar(&licences, "notices", false, "print the third-party parts of the program with their licences")
	return c
}
