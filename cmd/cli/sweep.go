package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/sweep"
	"clifftop/report"
)

// sweepFlags are those of sweep.
type sweepFlags struct {
	scenario scenarioFlags
	output   outputFlags
	over     string
	options  sweep.Options
	shard    shardFlags
}

func newSweep() *cobra.Command {
	var f sweepFlags
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
		RunE: f.run,
	}
	f.scenario.register(c)
	f.scenario.registerSLO(c, "find the capacity under `LIMITS`, such as ttft_p95<800ms,attainment>=0.95")
	f.scenario.registerReplications(c, "n", "`N` runs of each load with other random numbers, and confidence intervals")
	f.output.register(c, "table", "json", "csv", "markdown")
	f.output.registerRun(c)
	flags := c.Flags()
	flags.StringVarP(&f.output.out, "out", "o", "clifftop-out", "write curve.csv, curve.json, classes.csv where there are any, a page, report.html, and pictures into `DIR`; empty writes nothing")
	flags.StringVar(&f.over, "over", "", "what to vary: `KEY[=VALUES]`, where KEY is rate, users or any key, and VALUES are V1,V2,... or LO..HI:N")
	_ = c.RegisterFlagCompletionFunc("over", cobra.FixedCompletions([]string{scenario.RateKey, scenario.UsersKey}, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp))
	flags.IntVar(&f.options.Points, "points", 0, "`N` loads where none are given (default 14)")
	f.output.registerJobs(c, &f.options.Jobs)
	f.shard.register(c)
	return c
}

func (f *sweepFlags) run(c *cobra.Command, args []string) error {
	if err := f.output.validate(); err != nil {
		return err
	}
	if err := f.setLoads(c); err != nil {
		return err
	}
	if err := f.checkFixed(); err != nil {
		return err
	}
	s, err := f.scenario.load(args)
	if err != nil {
		return err
	}
	f.options.Check = f.output.check
	if f.shard.on() || f.shard.dry {
		return sweepGrid(c, s, &f.output, f.options, &f.shard)
	}
	return sweepScenario(c, s, &f.output, f.options)
}

// setLoads reads what varies, and its values or their number.
func (f *sweepFlags) setLoads(c *cobra.Command) error {
	const maxPoints = 10_000
	o := &f.options
	if c.Flags().Changed("points") && (o.Points < 1 || o.Points > maxPoints) {
		return fmt.Errorf("--points: %d is not allowed (want 1 to %d)", o.Points, maxPoints)
	}
	if c.Flags().Changed("over") {
		var err error
		if o.Over, o.Values, err = sweep.ParseOver(f.over); err != nil {
			return err
		}
	}
	if o.Points > 0 && o.Values != nil {
		return fmt.Errorf("--points: %d beside the values of --over (want one of them)", o.Points)
	}
	return nil
}

// checkFixed refuses flags that set what the sweep varies, or what makes no sense beside it.
func (f *sweepFlags) checkFixed() error {
	for _, key := range []string{scenario.RateKey, scenario.UsersKey} {
		if (f.options.Over == key || f.options.Over == "") && f.scenario.given("--"+key) {
			return fmt.Errorf("--%s: the sweep varies this itself\nhint: --over %s=V1,V2,... gives the values, and run --%[1]s simulates one", key, key)
		}
	}
	if f.options.Over == scenario.UsersKey && f.scenario.given("--rate") {
		return errors.New("--rate beside --over users (want one of them: the number of users makes a closed loop, which has no rate)")
	}
	if f.options.Over == scenario.RateKey && f.scenario.given("--users") {
		return errors.New("--users beside --over rate (want one of them: a closed loop has no rate)")
	}
	return nil
}

// sweepGrid makes a part of a sweep's runs and keeps each, and joins them when it has all.
func sweepGrid(c *cobra.Command, s *scenario.Scenario, output *outputFlags, options sweep.Options, shard *shardFlags) error {
	setup, err := options.Trial(s)
	if err != nil {
		return err
	}
	if options.Values == nil && !shard.dry {
		return errors.New("--over: the values are missing, and shards cannot choose loads by what others find\nhint: --dry-run prints the loads to give: --over rate=V1,V2,... or rate=LO..HI:N")
	}
	g, err := options.Grid(c.Context(), s, caption(setup, options.Over), experiments.PeakOf(setup))
	if err != nil {
		return err
	}
	return shard.makeGrid(c, g, output, options.Jobs)
}

// sweepScenario sweeps, and prints and writes the curve, which may be partial.
func sweepScenario(c *cobra.Command, s *scenario.Scenario, output *outputFlags, options sweep.Options) error {
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
	curve, runErr := sweep.Run(c.Context(), s, options)
	bar.done()
	if curve == nil {
		return failed(runErr)
	}
	var capacityErr error
	if runErr == nil {
		capacityErr = addCapacity(c, s, output, options, curve)
	}
	shown := &shownCurve{Curve: curve, caption: caption(setup, options.Over), machine: machine(experiments.PeakOf(setup))}
	if printErr, err := shown.print(c, output), shown.write(c, dir, output); err != nil || printErr != nil {
		return failed(cmp.Or(printErr, err))
	}
	return failed(cmp.Or(runErr, capacityErr))
}

// addCapacity looks for the capacity under the scenario's SLO, if it has one.
func addCapacity(c *cobra.Command, s *scenario.Scenario, output *outputFlags, options sweep.Options, curve *report.Curve) error {
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
func caption(setup *scenario.Setup, over string) string {
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
