package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/scenario/yamldoc"
)

func newEstimate() *cobra.Command {
	c := &cobra.Command{
		Use:   "estimate",
		Short: "Estimate capacity, cost, latency and memory by formula",
		Long: `Estimate by formula, and show each formula with its numbers. Where a rule of thumb leaves
something out, a note says what.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newEstimateConcurrency(), newEstimateCost(), newEstimateLatency(), newEstimateKV())
	return c
}

// registerEstimate adds --format with the formats of all estimates.
func registerEstimate(c *cobra.Command, f *console.OutputFlags) {
	f.RegisterFormat(c, "table", "json", "csv", "markdown")
}

func parsed[T any](flag, text string, parse func(string) (T, error)) (T, error) {
	v, err := parse(text)
	if err != nil {
		return v, fmt.Errorf("--%s: %w", flag, err)
	}
	return v, nil
}

// parseSeconds parses a duration with a unit and returns seconds.
func parseSeconds(text string) (float64, error) {
	d, ok := yamldoc.ParseDuration(strings.TrimSpace(text))
	if !ok {
		return 0, fmt.Errorf("%q is not a duration (want one with its unit, such as 30s or 800ms)", text)
	}
	return d.Seconds(), nil
}
