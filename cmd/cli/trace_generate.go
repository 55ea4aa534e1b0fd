package cli

import (
	"io"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/traces"
)

// generateCommand is the command trace generate.
type generateCommand struct {
	scenario scenarioFlags
	output   traceOutput
}

func newGenerate() *cobra.Command {
	var g generateCommand
	c := &cobra.Command{
		Use:   "generate [SCENARIO] --to FILE",
		Short: "Write the traffic of a scenario as a trace",
		Long: `Write the requests of a scenario as a trace in Clifftop's own format, compressed if the file name
ends in .gz. A run with the same seed sends the same requests. Where turns wait for outputs, set run.duration
for that: which requests are the first 1,000 depends on the system then. A closed loop cannot be written: its
arrivals depend on the system.`,
		Example: `  clifftop trace generate --to chat.csv.gz --rate 8 --requests 100000
  clifftop trace generate scenario.yaml --to -`,
		Args: console.AtMostOne("scenario"),
		RunE: g.run,
	}
	g.scenario.register(c)
	g.output.register(c)
	return c
}

func (g *generateCommand) run(c *cobra.Command, args []string) error {
	setup, err := g.scenario.resolve(args)
	if err != nil {
		return err
	}
	warnings := warningTexts(setup.Warnings)
	if text := traces.Differs(setup); text != "" {
		warnings = append(warnings, text)
	}
	g.output.Warn(c, warnings)
	return g.output.write(c, func(w io.Writer, zip bool) (int64, error) {
		return traces.Generate(c.Context(), setup, w, zip)
	})
}
