package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/estimate"
)

// costCommand is the command estimate cost.
type costCommand struct {
	output                          console.OutputFlags
	throughput, utilisation, demand string
	price                           estimate.Price
}

func newEstimateCost() *cobra.Command {
	var f costCommand
	c := &cobra.Command{
		Use:   "cost",
		Short: "What tokens cost",
		Long: `Estimate the price of tokens from the price of the GPUs and their total throughput, at capacity
and at the actual utilisation.`,
		Example: `  clifftop estimate cost --gpu-hour 3 --throughput 4000tok/s
  clifftop estimate cost --gpu-hour 3 --gpus 4 --throughput 9000tok/s --utilisation 30%
  clifftop estimate cost --gpu-hour 3 --throughput 4000tok/s --demand 1200tok/s`,
		Args: cobra.NoArgs,
		RunE: f.run,
	}
	registerEstimate(c, &f.output)
	flags := c.Flags()
	flags.Float64Var(&f.price.USDPerGPUHour, "gpu-hour", 3, "price of a GPU in `USD` per hour")
	flags.Float64Var(&f.price.GPUs, "gpus", 1, "`N` GPUs")
	flags.StringVar(&f.throughput, "throughput", "", "`RATE` of all GPUs together at full load, such as 4000tok/s")
	flags.StringVar(&f.utilisation, "utilisation", "", "`SHARE` of the throughput that is used, such as 30%")
	flags.StringVar(&f.demand, "demand", "", "`RATE` that is used, instead of --utilisation")
	return c
}

func (f *costCommand) run(c *cobra.Command, _ []string) error {
	if err := f.setPrice(); err != nil {
		return err
	}
	r, err := estimate.Cost(f.price)
	if err != nil {
		return err
	}
	return console.Failed(f.output.Print(c, r))
}

// setPrice parses the flags with units. The use may be given as a rate or as a share of the throughput.
func (f *costCommand) setPrice() (err error) {
	p := &f.price
	if f.throughput == "" {
		return errors.New("--throughput is missing (want the throughput of all GPUs, such as 4000tok/s)")
	}
	if p.TokensPerSecond, err = parsed("throughput", f.throughput, estimate.ParseRate); err != nil {
		return err
	}
	switch {
	case f.demand != "" && f.utilisation != "":
		return errors.New("--demand and --utilisation are given together (want one of them)")
	case f.demand != "":
		used, err := parsed("demand", f.demand, estimate.ParseRate)
		if err != nil {
			return err
		}
		if used > p.TokensPerSecond {
			return fmt.Errorf("--demand: %s is more than the throughput of %s", f.demand, f.throughput)
		}
		p.Utilisation = used / p.TokensPerSecond
	case f.utilisation != "":
		p.Utilisation, err = parsed("utilisation", f.utilisation, estimate.ParseShare)
	}
	return err
}
