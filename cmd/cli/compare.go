package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/compare"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/page"
	"clifftop/report/plot"
	"clifftop/report/verdict"
)

type compareCommand struct {
	scenario       scenarioFlags
	output         console.SimulationFlags
	shard          shardFlags
	margin         string
	vary, criteria []string
	options        compare.Options
}

func newCompare() *cobra.Command {
	var f compareCommand
	c := &cobra.Command{
		Use:                   "compare BASELINE VARIANT... | compare [SCENARIO] --vary KEY=V1,V2,...",
		DisableFlagsInUseLine: true, // the line is full
		Short:                 "Compare scenarios under the same random numbers",
		Long: `Compare several scenarios, or several values of a key in one scenario. All variants are simulated a few
times with the same random numbers, and the verdict lists the differences that are larger than chance. The
first variant is the baseline. Runs that are too short to settle are compared by the median hour. Latencies
of an overloaded variant are not compared, because they grow with the length of the run.

The criteria are yours: --criterion 'e2e_p95<=+2%', as often as needed. By default SLO attainment, goodput
and cost must not be worse. A variant also fails if TTFT, TPOT, E2E, goodput or failures are worse by more
than the margin (1 % if none is given) and by more than chance. Then the exit status is 1. What may be due
to chance is "not distinguishable", which is no failure; more replications can decide it.`,
		Example: `  clifftop compare --rate 27 --vary engine.policy=vllm,sglang,orca
  clifftop compare --rate 20 --vary engine.max_num_batched_tokens=512,2048,8192
  clifftop compare today.yaml tomorrow.yaml --replications 20`,
		RunE: f.run,
	}
	f.scenario.register(c)
	f.scenario.registerSLO(c, "check an SLO, such as ttft_p95<800ms,tpot_p95<80ms")
	f.scenario.registerReplications(c, "make N runs of each variant, all with the same random numbers "+
		"(default 5, or 10 hours)")
	f.output.Register(c, "table", "json", "csv", "markdown")
	f.output.RegisterJobs(c)
	f.output.RegisterOut(c, "write verdict.json, verdict.csv, report.html, compare.png and compare.svg into `DIR`")
	flags := c.Flags()
	flags.StringArrayVar(&f.vary, "vary", nil,
		"compare values of a key: `KEY=V1,V2,...`; the first is the baseline; several make a grid")
	flags.StringVar(&f.margin, "margin", "", "smallest relevant difference, as a `SHARE` of the baseline, such as 1%")
	flags.StringArrayVar(&f.criteria, "criterion", nil,
		"`CONDITION` for taking a variant, such as e2e_p95<=+2% or CLASS:ttft_p95<=+5%; repeat for several")
	flags.StringArrayVar(&f.options.Metrics, "metric", nil,
		"compare a further `METRIC`, such as queue_p95 or a path of docs/metrics.md; repeat for several")
	console.AddCheck(c, f.checkMargin)
	console.AddCheck(c, f.checkCriteria)
	f.shard.register(c)
	return c
}

func (f *compareCommand) checkMargin() (err error) {
	if f.margin != "" {
		if f.options.Margin, err = yamldoc.ParseShare(f.margin); err != nil {
			return fmt.Errorf("--margin: %w", err)
		}
	}
	return nil
}

// checkCriteria parses --criterion and --metric.
func (f *compareCommand) checkCriteria() error {
	for _, text := range f.criteria {
		condition, err := verdict.ParseCondition(text)
		if err != nil {
			return fmt.Errorf("--criterion: %w", err)
		}
		f.options.Criteria = append(f.options.Criteria, condition)
	}
	for _, name := range f.options.Metrics {
		if _, _, err := verdict.ParseMetric(name); err != nil {
			return fmt.Errorf("--metric: %w", err)
		}
	}
	return nil
}

func (f *compareCommand) run(c *cobra.Command, args []string) error {
	variants, err := f.variants(args)
	if err != nil {
		return err
	}
	f.options.Check, f.options.Jobs = f.output.Check, f.output.Jobs
	if f.shard.given() {
		g, err := f.options.Grid(c.Context(), variants)
		if err != nil {
			return err
		}
		return f.shard.runGrid(c, g, &f.output)
	}
	return f.compare(c, variants)
}

// variants loads the scenarios named in the arguments, or varies one scenario.
func (f *compareCommand) variants(args []string) ([]compare.Variant, error) {
	if f.vary != nil {
		if len(args) > 1 {
			return nil, fmt.Errorf("--vary: %d scenarios are given (want at most one, which is varied)", len(args))
		}
		s, err := f.scenario.load(args)
		if err != nil {
			return nil, err
		}
		return compare.Vary(s, f.vary...)
	}
	if len(args) < 2 {
		return nil, fmt.Errorf("compare: want two or more scenarios, found %d\n"+
			"hint: name two or more files, or vary a key: --vary engine.policy=vllm,orca", len(args))
	}
	var variants []compare.Variant
	for _, path := range args {
		s, err := f.scenario.load([]string{path})
		if err != nil {
			return nil, err
		}
		name := cmp.Or(s.Name, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
		variants = append(variants, compare.Variant{Name: name, Scenario: s})
	}
	makeNamesUnique(variants, args)
	return variants, nil
}

// makeNamesUnique replaces equal names of variants by the paths of their files, and numbers equal paths.
func makeNamesUnique(variants []compare.Variant, paths []string) {
	count := map[string]int{}
	for _, v := range variants {
		count[v.Name]++
	}
	for i := range variants {
		if v := &variants[i]; count[v.Name] > 1 {
			v.Name = paths[i]
		}
	}
	seen := map[string]int{}
	for i := range variants {
		v := &variants[i]
		if seen[v.Name]++; seen[v.Name] > 1 {
			v.Name = fmt.Sprintf("%s (%d)", v.Name, seen[v.Name])
		}
	}
}

// compare makes all runs in this process, and prints and writes the verdict.
func (f *compareCommand) compare(c *cobra.Command, variants []compare.Variant) error {
	dir, err := f.output.Directory()
	if err != nil {
		return err
	}
	bar := f.output.NewProgress(c, "comparing")
	f.options.Progress = bar.Counts()
	verdict, runErr := compare.Run(c.Context(), variants, f.options)
	bar.Done()
	if verdict == nil {
		return console.Failed(runErr)
	}
	err = showVerdict(c, verdict, dir, &f.output.OutputFlags)
	return cmp.Or(runErr, err) // an interrupted comparison has not failed yet
}

// showVerdict prints and writes a verdict. It returns an error if a variant failed. The directory may be nil.
func showVerdict(c *cobra.Command, verdict *verdict.Result, dir *console.Directory, output *console.OutputFlags) error {
	if !output.HasWarnings() {
		output.Warn(c, warningTexts(verdict.Warnings))
	}
	printErr := output.Print(c, verdict)
	if err := writeVerdict(c, verdict, dir); err != nil {
		return console.Failed(err)
	}
	if printErr == nil && !verdict.Pass {
		return console.Failed(errors.New("the comparison failed: " + failures(verdict)))
	}
	return console.Failed(printErr)
}

// writeVerdict writes the files of a verdict. The directory may be nil.
func writeVerdict(c *cobra.Command, verdict *verdict.Result, dir *console.Directory) error {
	if dir == nil {
		return nil
	}
	if err := dir.WriteJSON("verdict.json", verdict); err != nil {
		return err
	}
	if err := dir.Write("verdict.csv", verdict.WriteCSV); err != nil {
		return err
	}
	if picture := plot.Variants(verdict); picture != nil {
		if err := picture.WriteFiles("compare", dir.Write); err != nil {
			return err
		}
	}
	p, err := page.Compare(verdict)
	return writePage(c, dir, p, err)
}

// failures lists the variants that fail, with the reason.
func failures(v *verdict.Result) string {
	var texts []string
	for i := range v.Variants {
		if x := &v.Variants[i]; x.Verdict == verdict.Fail {
			texts = append(texts, x.Name+": "+x.Because())
		}
	}
	return strings.Join(texts, "; ")
}
