package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/steady"
	"clifftop/report"
	"clifftop/report/page"
	"clifftop/report/plot"
	"clifftop/report/table"
)

type runCommand struct {
	scenario scenarioFlags
	output   console.SimulationFlags
	save     []string
	bands    string
	// saturation finds the saturation rate first, whatever it takes.
	saturation bool
	// effort says how the iterations were composed.
	effort bool
}

func newRun() *cobra.Command {
	r := runCommand{bands: report.DefaultProfile().Name}
	c := &cobra.Command{
		Use:   "run [SCENARIO]",
		Short: "Simulate one load",
		Long: `Simulate a scenario at one load and print a summary. SCENARIO is a YAML file, or - for standard input.
Without it, the default scenario is used.

The run is judged by its own window. If the verdict depends on the saturation rate of the system, the command looks
for that rate with a tenth of the requests of the run at most; --find-saturation lifts this limit.`,
		Example: `  clifftop run
  clifftop run scenario.yaml --rate 8 --set engine.max_num_seqs=512
  clifftop run scenario.yaml --precision 2%
  clifftop run --trace trace.csv.gz --out results --save requests,timeseries`,
		Args: console.AtMostOne("scenario"),
		RunE: r.run,
	}
	r.scenario.register(c)
	r.scenario.registerFrom(c, false)
	r.scenario.registerSLO(c, "check an SLO, such as ttft_p95<800ms,tpot_p95<80ms")
	r.scenario.registerAccuracy(c)
	r.scenario.registerReplications(c, "make N runs with different random numbers; adds confidence intervals")
	r.output.Register(c, "table", "json", "csv", "markdown", "vllm-bench")
	r.output.RegisterJobs(c)
	r.output.RegisterOut(c, "write summary.json and report.html into `DIR`; for a single run also run.png and run.svg")
	console.AddChoice(c, &r.bands, "bands", "names for latencies: "+strings.Join(profileNames(), ", "),
		profileNames()...)
	c.Flags().BoolVar(&r.saturation, "find-saturation", false,
		"find the saturation rate first, however long it takes, and judge the run by it")
	c.Flags().BoolVar(&r.effort, "explain-effort", false,
		"say how many iterations the plain cycle composed, and why others were not plain")
	registerSave(c, &r.save, &r.output.Out)
	return c
}

func (r *runCommand) run(c *cobra.Command, args []string) error {
	s, err := r.scenario.load(args)
	if err != nil {
		return err
	}
	if s.Replicated() {
		return r.replicate(c, s)
	}
	return r.once(c, s)
}

func profileNames() []string {
	var names []string
	for _, p := range report.Profiles() {
		names = append(names, p.Name)
	}
	return names
}

func (r *runCommand) profile() report.Profile {
	for _, p := range report.Profiles() {
		if p.Name == r.bands {
			return p
		}
	}
	return report.DefaultProfile()
}

// search says when to look for the saturation of the system.
func (r *runCommand) search() steady.Search {
	if r.saturation {
		return steady.First
	}
	return steady.Bounded
}

// once makes a single run, and prints and writes the result. The result of an interrupted run is partial.
func (r *runCommand) once(c *cobra.Command, s *scenario.Scenario) error {
	run, err := experiments.NewSettled(c.Context(), s, steady.Options{Search: r.search()})
	if err != nil {
		return err
	}
	dir, err := r.output.Directory()
	if err != nil {
		return err
	}
	options := experiments.RunOptions{Check: r.output.Check, Detail: dir != nil}
	saved, err := newSaving(dir, run.Setup, r.save, &options)
	if err != nil {
		return console.Failed(err)
	}
	defer saved.abandon()
	bar := r.output.NewProgress(c, "simulating")
	if bar != nil {
		options.Progress = bar.Run
	}
	res, runErr := run.Run(c.Context(), options)
	bar.Done()
	if res == nil {
		return console.Failed(runErr)
	}
	if r.effort {
		res.ExplainEffort()
	}
	return r.deliver(c, dir, run.Setup, saved, res, runErr)
}

// deliver prints and writes the result of a run, which may have ended with an error.
func (r *runCommand) deliver(c *cobra.Command, dir *console.Directory, setup *scenario.Setup, saved *saving,
	res *experiments.Result, runErr error) error {
	cancelled := errors.Is(runErr, context.Canceled)
	printErr := r.printRun(c, res) // before files are written: a full disk must not hide the result
	writeErr := writeRun(dir, setup, res)
	if writeErr == nil && (runErr == nil || cancelled) { // otherwise the stream of requests failed
		writeErr = saved.commit(res)
		r.output.Warn(c, saved.warnings)
	}
	if writeErr == nil {
		writeErr = r.writePage(c, dir, setup, res.Summary)
	}
	switch {
	case printErr != nil:
		return console.Failed(printErr)
	case cancelled && writeErr == nil:
		return runErr
	case runErr != nil && !cancelled:
		return console.Failed(runErr)
	}
	return console.Failed(writeErr)
}

func (r *runCommand) printRun(c *cobra.Command, res *experiments.Result) error {
	if r.output.Format != "vllm-bench" {
		return r.print(c, res.Summary, res.Series)
	}
	r.output.Warn(c, warningTexts(res.Summary.Warnings))
	return console.PrintOnce(c.OutOrStdout(), func(w io.Writer) error { return console.PrintJSON(w, res.VLLMBench()) })
}

// print prints a summary, and its warnings if the format has no place for them.
func (r *runCommand) print(c *cobra.Command, s *report.Summary, series []report.SeriesPoint) error {
	if !r.output.HasWarnings() {
		r.output.Warn(c, warningTexts(s.Warnings))
	}
	return r.output.Print(c, summaryTable{s, r.profile(), series})
}

// replicate makes several runs, and prints and writes the pooled result. It is partial after an interrupt.
func (r *runCommand) replicate(c *cobra.Command, s *scenario.Scenario) error {
	if len(r.save) > 0 || r.output.Format == "vllm-bench" || r.effort {
		return errors.New("run.replications, run.precision: --save, --explain-effort and --format vllm-bench need a " +
			"single run (want none of them with replications)")
	}
	runs, err := experiments.ReplicateOptions{}.Plan(s)
	if err != nil {
		return err
	}
	run, err := experiments.NewSettled(c.Context(), s, steady.Options{Search: r.search(), Runs: runs.More(0)})
	if err != nil {
		return err
	}
	dir, err := r.output.Directory()
	if err != nil {
		return err
	}
	options := experiments.ReplicateOptions{Check: r.output.Check, Jobs: r.output.Jobs, Detail: dir != nil}
	bar := r.output.NewProgress(c, "replicating")
	options.Progress = bar.Counts()
	pooled, runErr := run.Replicate(c.Context(), options)
	bar.Done()
	if pooled == nil {
		return console.Failed(runErr)
	}
	err = r.print(c, pooled, nil)
	if dir != nil && err == nil {
		err = dir.WriteJSON("summary.json", pooled)
	}
	if err == nil {
		err = r.writePage(c, dir, run.Setup, pooled)
	}
	if errors.Is(runErr, context.Canceled) && err == nil {
		return runErr
	}
	return console.Failed(cmp.Or(err, runErr))
}

// writePage writes a summary as a web page. The directory may be nil.
func (r *runCommand) writePage(c *cobra.Command, dir *console.Directory, setup *scenario.Setup,
	s *report.Summary) error {
	if dir == nil {
		return nil
	}
	p, err := page.Run(s, r.profile(), machine(experiments.PeakOf(setup)))
	if err == nil {
		p.Caption = caption(setup, "")
		p.Origin.Scenarios = []page.Scenario{{Value: s.Scenario}}
	}
	return writePage(c, dir, p, err)
}

// writeRun writes the summary and the pictures of a single run. The directory may be nil.
func writeRun(dir *console.Directory, setup *scenario.Setup, res *experiments.Result) error {
	if dir == nil {
		return nil
	}
	if err := dir.WriteJSON("summary.json", res.Summary); err != nil {
		return err
	}
	if list := res.Summary.Classes; len(list) > 0 {
		if err := dir.Write("classes.csv", func(w io.Writer) error {
			return report.WriteClasses(w, list)
		}); err != nil {
			return err
		}
	}
	picture := plot.Run(res.Summary, res.Series)
	picture.Caption = caption(setup, "")
	return picture.WriteFiles("run", dir.Write)
}

// summaryTable is a summary with the further data of its table: the latency bands and, for a single run, the time
// series.
type summaryTable struct {
	*report.Summary
	bands  report.Profile
	series []report.SeriesPoint
}

// WriteTable writes the summary as a table, followed by the time series.
func (t summaryTable) WriteTable(w io.Writer) error {
	if err := table.Write(t.Summary, w, t.bands); err != nil {
		return err
	}
	return table.WriteSparklines(w, t.series)
}

// WriteMarkdown writes the summary as Markdown.
func (t summaryTable) WriteMarkdown(w io.Writer) error {
	return table.WriteMarkdown(t.Summary, w, t.bands)
}

// warningTexts returns the texts of warnings, except few_samples, which tables show next to the number.
func warningTexts(warnings []report.Warning) []string {
	var texts []string
	for _, w := range warnings {
		if w.Code != "few_samples" {
			texts = append(texts, strings.TrimSuffix(w.Text, "."))
		}
	}
	return texts
}
