package cli

import (
	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/estimate"
)

// kvCommand is the command estimate kv.
type kvCommand struct {
	scenario scenarioFlags
	output   console.OutputFlags
	lengths  []int
}

func newEstimateKV() *cobra.Command {
	var k kvCommand
	c := &cobra.Command{
		Use:   "kv [SCENARIO]",
		Short: "Whether a model fits, and how many requests its KV cache holds",
		Long: `Report whether a model fits its GPUs, how much memory is missing otherwise, and how many requests
the KV cache holds at once. The lengths of requests come from the scenario's traffic or from --length.`,
		Example: `  clifftop estimate kv --model llama-3.1-70b --gpu h200 --set deployment.dtype=fp16
  clifftop estimate kv --model llama-3.1-70b --gpu h100 --tp 4 --length 4096,32768`,
		Args: console.AtMostOne("scenario"),
		RunE: k.run,
	}
	k.scenario.register(c)
	registerEstimate(c, &k.output)
	c.Flags().IntSliceVar(&k.lengths, "length", nil, "`N` tokens per request, input and output; repeatable")
	return c
}

func (k *kvCommand) run(c *cobra.Command, args []string) error {
	s, err := k.scenario.load(args)
	if err != nil {
		return err
	}
	r, err := estimate.KV(s, k.lengths)
	if err != nil {
		return err
	}
	return console.Failed(k.output.Print(c, r))
}
