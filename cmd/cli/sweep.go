package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/sweep"
	"clifftop/report"
	"clifftop/report/curve"
)

// maxPoints is the largest number of loads of a sweep.
const maxPoints = 10_000

type sweepCommand struct {
	scenario scenarioFlags
	output   console.SimulationFlags
	shard    shardFlags
	over     []string
	options  sweep.Options
}

func newSweep() *cobra.Command {
	var s sweepCommand
	c := &cobra.Command{
		Use:   "sweep [SCENARIO]",
		Short: "Vary the load from idle to beyond saturation and find the knee",
		Long: `Simulate a scenario at many loads. The curve shows throughput and latency, the knee, the peak, a
collapse beyond the peak, and its warning signs. By default, the sweep first finds the load at which the system
saturates, and then takes loads from near idle to beyond it. With an SLO, it also finds the highest load
at which 90 % of hours meet the SLO, with an interval.`,
		Example: `  clifftop sweep
  clifftop sweep scenario.yaml --over users
  clifftop sweep scenario.yaml --over rate=1..20:39 --out results
  clifftop sweep --rate 12 --over engine.max_num_seqs=16,32,64,128,256
  clifftop sweep --slo 'ttft_p95<800ms,tpot_p95<80ms'`,
		Args: console.AtMostOne("scenario"),
		RunE: s.run,
	}
	s.scenario.register(c)
	s.scenario.registerFrom(c, false)
	s.scenario.registerSLO(c, "find the capacity under an SLO, such as ttft_p95<800ms,attainment>=0.95")
	s.scenario.registerAccuracy(c)
	s.scenario.registerReplications(c, "make N runs of each load with different random numbers; adds intervals")
	s.output.Register(c, "table", "json", "csv", "markdown")
	s.output.RegisterJobs(c)
	s.output.Out = "clifftop-out"
	s.output.RegisterOut(c, "write curve.csv, curve.json, classes.csv (if the traffic has classes), report.html and "+
		"pictures into `DIR`; an empty DIR writes nothing")
	flags := c.Flags()
	flags.StringArrayVar(&s.over, "over", nil, "what to vary: `KEY[=VALUES]`; KEY is rate, users or any key, "+
		"VALUES are V1,V2,... or LO..HI:N")
	keys := []string{scenario.RateKey, scenario.UsersKey}
	_ = c.RegisterFlagCompletionFunc("over",
		cobra.FixedCompletions(keys, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
	flags.IntVar(&s.options.Points, "points", 0, "choose `N` loads (default 14)")
	console.AddCheck(c, func() error { return s.checkLoads(c) })
	s.shard.register(c)
	return c
}

func (s *sweepCommand) run(c *cobra.Command, args []string) error {
	scenario, err := s.scenario.load(args)
	if err != nil {
		return err
	}
	s.options.Check, s.options.Jobs = s.output.Check, s.output.Jobs
	if s.shard.given() {
		return s.runShard(c, scenario)
	}
	return s.sweep(c, scenario)
}

// checkLoads parses --over and rejects flags that conflict with it.
func (s *sweepCommand) checkLoads(c *cobra.Command) error {
	o := &s.options
	if c.Flags().Changed("points") && (o.Points < 1 || o.Points > maxPoints) {
		return fmt.Errorf("--points: %d is not allowed (want 1 to %d)", o.Points, maxPoints)
	}
	if c.Flags().Changed("over") {
		if n := len(s.over); n > 1 {
			return fmt.Errorf("--over: it is given %d times (want one; compare with two --vary simulates a grid)", n)
		}
		var err error
		if o.Over, o.Values, err = sweep.ParseOver(s.over[0]); err != nil {
			return err
		}
	}
	if o.Points > 0 && o.Values != nil {
		return fmt.Errorf("--points: %d is given together with values in --over (want one of them)", o.Points)
	}
	for _, key := range []string{scenario.RateKey, scenario.UsersKey} {
		if (o.Over == key || o.Over == "") && s.scenario.given(key) {
			return fmt.Errorf("--%s: the sweep varies this value itself\n"+
				"hint: --over %s=V1,V2,... sets the values, and run --%[1]s simulates one of them", key, key)
		}
	}
	if o.Over == scenario.UsersKey && s.scenario.given("rate") {
		return errors.New("--rate and --over users are given together (want one: a closed loop of users has no rate)")
	}
	if o.Over == scenario.RateKey && s.scenario.given("users") {
		return errors.New("--users and --over rate are given together (want one: a closed loop of users has no rate)")
	}
	return nil
}

// runShard runs one shard of the sweep, or a dry run. The results are joined when all runs are done.
func (s *sweepCommand) runShard(c *cobra.Command, scenario *scenario.Scenario) error {
	setup, err := s.options.Trial(scenario)
	if err != nil {
		return err
	}
	if s.options.Values == nil && !s.shard.dryRun {
		return errors.New("--over: the values are missing: shards cannot choose loads from each other's results\n" +
			"hint: --dry-run prints the loads for --over rate=V1,V2,... or rate=LO..HI:N")
	}
	g, err := s.options.Grid(c.Context(), scenario, caption(setup, s.options.Over), experiments.PeakOf(setup))
	if err != nil {
		return err
	}
	return s.shard.runGrid(c, g, &s.output)
}

// sweep makes all runs in this process, and prints and writes the curve. The curve of an interrupted sweep is partial.
func (s *sweepCommand) sweep(c *cobra.Command, scenario *scenario.Scenario) error {
	setup, err := s.options.Trial(scenario)
	if err != nil {
		return err
	}
	dir, err := s.output.Directory()
	if err != nil {
		return err
	}
	s.options.Detail = dir != nil
	bar := s.output.NewProgress(c, "sweeping")
	s.options.Progress = bar.Counts()
	curve, runErr := sweep.Run(c.Context(), scenario, s.options)
	bar.Done()
	if curve == nil {
		return console.Failed(runErr)
	}
	var capacityErr error
	if runErr == nil {
		capacityErr = s.addCapacity(c, scenario, curve)
	}
	shown := &shownCurve{curve, caption(setup, s.options.Over), machine(experiments.PeakOf(setup))}
	return console.Failed(cmp.Or(shown.show(c, dir, &s.output.OutputFlags), runErr, capacityErr))
}

// addCapacity searches the capacity under the scenario's SLO, if it has one, and adds it to the curve.
func (s *sweepCommand) addCapacity(c *cobra.Command, scenario *scenario.Scenario, curve *curve.Curve) error {
	bar := s.output.NewProgress(c, "searching the capacity")
	found, err := s.options.Capacity(c.Context(), scenario, bar.Counts())
	bar.Done()
	if errors.Is(err, context.Canceled) {
		curve.Warnings = append(curve.Warnings,
			report.Warning{Code: "no_capacity", Text: "the search for the capacity was interrupted"})
	}
	curve.SetCapacity(found)
	return err
}

// caption returns the line below the title of a picture, which says what was simulated. over is the swept key; it may
// be empty.
func caption(setup *scenario.Setup, over string) string {
	s := setup.Scenario
	text := setup.Serving(over)
	switch {
	case s.Workload.Trace != nil:
		text += ", " + filepath.Base(s.Workload.Trace.File)
	case s.Given("workload.input") && s.Given("workload.output"): // nothing of a preset is left
	case s.Workload.Preset != nil:
		text += ", " + *s.Workload.Preset
	}
	if s.Name != "" {
		text = s.Name + ": " + text
	}
	return text
}
