package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"clifftop/experiments"
	"clifftop/report"
)

func newSweep() *cobra.Command {
	var scenario scenarioFlags
	var output outputFlags
	var over string
	var options experiments.SweepOptions
	var shard shardFlags
	c := &cobra.Command{
		Use:   "sweep [SCENARIO]",
		Short: "Vary the load from idle to beyond saturation and find the knee",
		Long: `Run a scenario at many loads and put the results on a curve: throughput and latency, the knee,
the peak, a collapse beyond it, and the signs that warn of it. Without values, the sweep finds out
where the system saturates and takes loads from near idle to beyond that. With an SLO it finds the
highest value that meets it, as an interval.`,
		Example: `  clifftop sweep
  clifftop sweep scenario.yaml --over users
  clifftop sweep scenario.yaml --over rate=1..20:39 --out results
  clifftop sweep --rate 12 --over engine.max_num_seqs=16,32,64,128,256
  clifftop sweep --slo 'ttft_p95<800ms,tpot_p95<80ms'`,
		Args: atMostOne("scenario"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			const maxPoints = 10_000
			if c.Flags().Changed("points") && (options.Points < 1 || options.Points > maxPoints) {
				return fmt.Errorf("--points: %d is not allowed (want 1 to %d)", options.Points, maxPoints)
			}
			if c.Flags().Changed("over") {
				var err error
				if options.Over, options.Values, err = experiments.ParseOver(over); err != nil {
					return err
				}
			}
			if options.Points > 0 && options.Values != nil {
				return fmt.Errorf("--points: %d beside the values of --over (want one of them)", options.Points)
			}
			for _, key := range []string{experiments.RateKey, experiments.UsersKey} {
				if (options.Over == key || options.Over == "") && scenario.given("--"+key) {
					return fmt.Errorf("--%s: the sweep varies this itself\nhint: --over %s=V1,V2,... gives the values, and run --%[1]s simulates one", key, key)
				}
			}
			if options.Over == experiments.UsersKey && scenario.given("--rate") {
				return errors.New("--rate beside --over users (want one of them: the number of users makes a closed loop, which has no rate)")
			}
			if options.Over == experiments.RateKey && scenario.given("--users") {
				return errors.New("--users beside --over rate (want one of them: a closed loop has no rate)")
			}
			s, err := scenario.load(args)
			if err != nil {
				return err
			}
			options.Check = output.check
			if shard.on() || shard.dry {
				return sweepGrid(c, s, &output, options, &shard)
			}
			return sweepScenario(c, s, &output, options)
		},
	}
	scenario.register(c)
	scenario.registerSLO(c, "find the capacity under `LIMITS`, such as ttft_p95<800ms,attainment>=0.95")
	scenario.registerReplications(c, "n", "`N` runs of each load with other random numbers, and confidence intervals")
	output.register(c, "table", "json", "csv", "markdown")
	output.registerRun(c)
	flags := c.Flags()
	flags.StringVarP(&output.out, "out", "o", "clifftop-out", "write curve.csv, curve.json, classes.csv where there are any, a page, report.html, and pictures into `DIR`; empty writes nothing")
	flags.StringVar(&over, "over", "", "what to vary: `KEY[=VALUES]`, where KEY is rate, users or any key, and VALUES are V1,V2,... or LO..HI:N")
	_ = c.RegisterFlagCompletionFunc("over", cobra.FixedCompletions([]string{experiments.RateKey, experiments.UsersKey}, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
	flags.IntVar(&options.Points, "points", 0, "`N` loads where none are given (default 14)")
	output.registerJobs(c, &options.Jobs)
	shard.register(c)
	return c
}

// sweepGrid makes a part of a sweep's runs and keeps each, and joins them when it has all.
func sweepGrid(c *cobra.Command, s *experiments.Scenario, output *outputFlags, options experiments.SweepOptions, shard *shardFlags) error {
	setup, err := options.Trial(s)
	if err != nil {
		return err
	}
	if options.Values == nil && !shard.dry {
		return errors.New("--over: the values are missing, and shards cannot choose loads by what others find\nhint: --dry-run prints the loads to give: --over rate=V1,V2,... or rate=LO..HI:N")
	}
	g, err := options.Grid(c.Context(), s, caption(setup, options.Over), setup.Peak())
	if err != nil {
		return err
	}
	if shard.dry { // and faults have to show before tasks are submitted
		if _, err := g.Manifest(); err != nil {
			return err
		}
	}
	return shard.make(c, g, output, options.Jobs, joins(c, output))
}

// sweepScenario sweeps, and prints and writes the curve, which may be partial.
func sweepScenario(c *cobra.Command, s *experiments.Scenario, output *outputFlags, options experiments.SweepOptions) error {
	setup, err := options.Trial(s)
	if err != nil {
		return err
	}
	dir, err := output.directory()
	if err != nil {
		return err
	}
	options.Detail = dir != nil
	bar := newProgress(c.ErrOrStderr(), output, "sweeping")
	options.Progress = bar.counts()
	curve, runErr := experiments.Sweep(c.Context(), s, options)
	bar.done()
	if curve == nil {
		return failed(runErr)
	}
	var capacityErr error
	if runErr == nil {
		capacityErr = addCapacity(c, s, output, options, curve)
	}
	shown := &shownCurve{Curve: curve, caption: caption(setup, options.Over), machine: machine(setup.Peak())}
	if printErr, err := shown.print(c, output), shown.write(c, dir, output); err != nil || printErr != nil {
		return failed(cmp.Or(printErr, err))
	}
	return failed(cmp.Or(runErr, capacityErr))
}

// addCapacity looks for the capacity under the scenario's SLO, if it has one.
func addCapacity(c *cobra.Command, s *experiments.Scenario, output *outputFlags, options experiments.SweepOptions, curve *report.Curve) error {
	bar := newProgress(c.ErrOrStderr(), output, "looking for the capacity")
	found, err := options.Capacity(c.Context(), s, bar.counts())
	bar.done()
	if errors.Is(err, context.Canceled) {
		curve.Warnings = append(curve.Warnings, report.Warning{Code: "no_capacity", Text: "the search for the capacity was interrupted"})
	}
	curve.SetCapacity(found)
	return err
}

// caption says below a picture's title what was simulated. over is what a sweep varies, if anything does.
func caption(setup *experiments.Setup, over string) string {
	s := setup.Scenario
	text := setup.Serving(over)
	switch {
	case s.Workload.Trace != nil:
		text += ", " + filepath.Base(s.Workload.Trace.File)
	case s.Workload.Preset != nil && !(s.Given("workload.input") && s.Given("workload.output")): // of which nothing is left
		text += ", " + *s.Workload.Preset
	}
	if s.Name != "" {
		text = s.Name + ": " + text
	}
	return text
}
