package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/report/page"
	"clifftop/report/plot"
)

// runFlags are those of run.
type runFlags struct {
	scenario scenarioFlags
	output   outputFlags
	save     []string
	bands    string
	jobs     int
}

func newRun() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [SCENARIO]",
		Short: "Simulate one operating point",
		Long: `Simulate one operating point and print what came of it. SCENARIO is a YAML file, or - for standard
input; without one the defaults hold.`,
		Example: `  clifftop run
  clifftop run scenario.yaml --rate 8 --set engine.max_num_seqs=512
  clifftop run scenario.yaml --precision 2%
  clifftop run --trace trace.csv.gz --out results --save requests,timeseries`,
		Args: atMostOne("scenario"),
		RunE: f.run,
	}
	f.scenario.register(c)
	f.scenario.registerSLO(c, "judge by `LIMITS`, such as ttft_p95<800ms,tpot_p95<80ms")
	f.scenario.registerReplications(c, "n", "`N` runs with other random numbers, and confidence intervals")
	f.output.register(c, "table", "json", "csv", "markdown", "vllm-bench")
	f.output.registerRun(c)
	f.output.registerJobs(c, &f.jobs)
	c.Flags().StringVarP(&f.output.out, "out", "o", "", "write summary.json, a page, report.html, and, of a single run, a picture, run.png and run.svg, into `DIR`")
	c.Flags().StringVar(&f.bands, "bands", report.DefaultProfile().Name, "how to name latencies in words: "+strings.Join(profileNames(), ", "))
	c.Flags().StringSliceVar(&f.save, "save", nil, "write more into --out: `WHAT` is one or more, with commas, of "+strings.Join(saves(), ", "))
	return c
}

func (f *runFlags) run(c *cobra.Command, args []string) error {
	if err := f.output.validate(); err != nil {
		return err
	}
	if err := checkSaves(f.save, c.Flags().Changed("save")); err != nil {
		return err
	}
	if len(f.save) > 0 && f.output.out == "" {
		return fmt.Errorf("--save needs --out DIR")
	}
	profile, err := profileNamed(f.bands)
	if err != nil {
		return err
	}
	s, err := f.scenario.load(args)
	if err != nil {
		return err
	}
	if s.Replicated() {
		return replicateScenario(c, s, &f.output, f.save, profile, f.jobs)
	}
	return runScenario(c, s, &f.output, f.save, profile)
}

func profileNames() []string {
	var names []string
	for _, p := range report.Profiles() {
		names = append(names, p.Name)
	}
	return names
}

func profileNamed(name string) (report.Profile, error) {
	for _, p := range report.Profiles() {
		if p.Name == name {
			return p, nil
		}
	}
	return report.Profile{}, fmt.Errorf("--bands: %q is not known (want %s)", name, strings.Join(profileNames(), ", "))
}

// runScenario runs a scenario, and prints and writes the result, which may be partial.
func runScenario(c *cobra.Command, s *scenario.Scenario, output *outputFlags, save []string, bands report.Profile) error {
	setup, err := s.Resolve()
	if err != nil {
		return err
	}
	dir, err := output.directory()
	if err != nil {
		return err
	}
	options := experiments.RunOptions{Check: output.check, Detail: dir != nil}
	saved, err := newSaving(dir, setup, save, &options)
	if err != nil {
		return failed(err)
	}
	defer saved.abandon()
	bar := newProgress(c.ErrOrStderr(), output, "simulating")
	if bar != nil {
		options.Progress = bar.run
	}
	res, runErr := experiments.RunSetup(c.Context(), setup, options)
	bar.done()
	if res == nil {
		return failed(runErr)
	}
	printErr := printRun(c, res, output, bands) // first: a disk that is full takes no result away
	cancelled := errors.Is(runErr, context.Canceled)
	writeErr := writeRun(dir, setup, res)
	if writeErr == nil && (runErr == nil || cancelled) { // else the requests could not be written
		writeErr = saved.commit(res)
		output.warn(c.ErrOrStderr(), saved.warnings)
	}
	if dir != nil && writeErr == nil {
		writeErr = writeRunPage(c, dir, setup, res.Summary, bands)
	}
	switch {
	case printErr != nil:
		return failed(printErr)
	case cancelled && writeErr == nil:
		return runErr
	case runErr != nil && !cancelled:
		return failed(runErr)
	}
	return failed(writeErr)
}

// printRun prints the result of a run, and its warnings where the format does not hold them.
func printRun(c *cobra.Command, res *experiments.Result, output *outputFlags, bands report.Profile) error {
	if output.format != "table" && output.format != "markdown" {
		output.warn(c.ErrOrStderr(), warningTexts(res.Summary))
	}
	return printOnce(c.OutOrStdout(), func(w io.Writer) error {
		if output.format == "vllm-bench" {
			return printJSON(w, res.VLLMBench())
		}
		return printResult(w, banded{res.Summary, bands, res.Series}, output.format)
	})
}

// replicateScenario replicates a scenario, and prints and writes the pooled result, which may be partial.
func replicateScenario(c *cobra.Command, s *scenario.Scenario, output *outputFlags, save []string, bands report.Profile, jobs int) error {
	if len(save) > 0 || output.format == "vllm-bench" {
		return fmt.Errorf("run.replications, run.precision: --save and --format vllm-bench are of one run (want neither beside replications)")
	}
	setup, err := s.Resolve()
	if err != nil {
		return err
	}
	dir, err := output.directory()
	if err != nil {
		return err
	}
	options := experiments.ReplicateOptions{Check: output.check, Jobs: jobs, Detail: dir != nil}
	bar := newProgress(c.ErrOrStderr(), output, "replicating")
	options.Progress = bar.counts()
	pooled, runErr := experiments.ReplicateSetup(c.Context(), setup, options)
	bar.done()
	if pooled == nil {
		return failed(runErr)
	}
	if output.format != "table" && output.format != "markdown" {
		output.warn(c.ErrOrStderr(), warningTexts(pooled))
	}
	err = printOnce(c.OutOrStdout(), func(w io.Writer) error { return printResult(w, banded{pooled, bands, nil}, output.format) })
	if dir != nil && err == nil {
		if err = dir.writeJSON("summary.json", pooled); err == nil {
			err = writeRunPage(c, dir, setup, pooled, bands)
		}
	}
	if errors.Is(runErr, context.Canceled) && err == nil {
		return runErr
	}
	return failed(cmp.Or(err, runErr))
}

// writeRunPage writes one operating point as a page.
func writeRunPage(c *cobra.Command, dir *directory, setup *scenario.Setup, s *report.Summary, bands report.Profile) error {
	p, err := page.Run(s, bands, machine(experiments.PeakOf(setup)))
	if err == nil {
		p.Caption = caption(setup, "")
		p.Origin.Scenarios = []page.Scenario{{Value: s.Scenario}}
	}
	return writePage(c, dir, p, err)
}

func writeRun(dir *directory, setup *scenario.Setup, res *experiments.Result) error {
	if dir == nil {
		return nil
	}
	if err := dir.writeJSON("summary.json", res.Summary); err != nil {
		return err
	}
	if list := res.Summary.Classes; len(list) > 0 {
		if err := dir.write("classes.csv", func(w io.Writer) error { return report.WriteClasses(w, list) }); err != nil {
			return err
		}
	}
	picture := plot.Run(res.Summary, res.Series)
	picture.Caption = caption(setup, "")
	return picture.WriteFiles("run", dir.write)
}

func warningTexts(s *report.Summary) []string { return texts(s.Warnings) }

// texts are what warnings say.
func texts(warnings []report.Warning) []string {
	var texts []string
	for _, w := range warnings {
		if w.Code == "few_samples" {
			continue // tables say it where it matters
		}
		texts = append(texts, strings.TrimSuffix(w.Text, "."))
	}
	return texts
}
