package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/experiments/compare"
	"clifftop/experiments/scenario/unit"
	"clifftop/report"
	"clifftop/report/page"
)

// compareFlags are those of compare.
type compareFlags struct {
	scenario     scenarioFlags
	output       outputFlags
	vary, margin string
	options      compare.Options
	shard        shardFlags
}

func newCompare() *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use:                   "compare BASELINE VARIANT... | compare [SCENARIO] --vary KEY=V1,V2,...",
		DisableFlagsInUseLine: true, // it fills the line
		Short:                 "Compare scenarios under the same random numbers",
		Long: `Run scenarios, or one scenario with several values of a key, a few times each under the same random
numbers, and say what differs by more than chance. The first is the baseline.

A variant fails, and with it the command, whose status is then 1, if it lowers throughput or the share of
requests that succeed, lengthens the time in which requests wait though they could run, or has more
retries. What cannot be told from chance is no failure: more replications may tell.`,
		Example: `  clifftop compare --rate 27 --vary engine.policy=vllm,sglang,orca
  clifftop compare --rate 20 --vary engine.max_num_batched_tokens=512,2048,8192
  clifftop compare today.yaml tomorrow.yaml --replications 20`,
		RunE: f.run,
	}
	f.scenario.register(c)
	f.scenario.registerSLO(c, "judge by `LIMITS`, such as ttft_p95<800ms,tpot_p95<80ms")
	f.scenario.registerReplications(c, "n", "`N` runs of each, with random numbers that all share (default 5)")
	f.output.register(c, "table", "json", "csv", "markdown")
	f.output.registerRun(c)
	flags := c.Flags()
	flags.StringVarP(&f.output.out, "out", "o", "", "write verdict.json, verdict.csv and a page, report.html, into `DIR`")
	flags.StringVar(&f.vary, "vary", "", "compare values of a key: `KEY=V1,V2,...`; the first is the baseline")
	flags.StringVar(&f.margin, "margin", "", "the smallest difference that matters, as a `SHARE` of the baseline's value, such as 1%")
	f.output.registerJobs(c, &f.options.Jobs)
	f.shard.register(c)
	return c
}

func (f *compareFlags) run(c *cobra.Command, args []string) error {
	if err := f.output.validate(); err != nil {
		return err
	}
	if f.margin != "" {
		var err error
		if f.options.Margin, err = unit.ParseShare(f.margin); err != nil {
			return fmt.Errorf("--margin: %w", err)
		}
	}
	variants, err := variantsOf(&f.scenario, args, f.vary)
	if err != nil {
		return err
	}
	if f.shard.on() || f.shard.dry {
		return compareGrid(c, variants, &f.output, f.options, &f.shard)
	}
	return compareVariants(c, variants, &f.output, f.options)
}

// compareGrid makes a part of a comparison's runs and keeps each, and judges them when it has all.
func compareGrid(c *cobra.Command, variants []compare.Variant, output *outputFlags, options compare.Options, shard *shardFlags) error {
	g, err := options.Grid(c.Context(), variants)
	if err != nil {
		return err
	}
	return shard.makeGrid(c, g, output, options.Jobs)
}

// variantsOf are the scenarios named, or one scenario varied.
func variantsOf(flags *scenarioFlags, args []string, vary string) ([]compare.Variant, error) {
	if vary != "" {
		if len(args) > 1 {
			return nil, fmt.Errorf("--vary: %d scenarios are given (want one at most: it is varied)", len(args))
		}
		s, err := flags.load(args)
		if err != nil {
			return nil, err
		}
		return compare.Vary(s, vary)
	}
	if len(args) < 2 {
		return nil, fmt.Errorf("want two scenarios or more to compare, found %d\nhint: name two or more files, or vary a key: --vary engine.policy=vllm,orca", len(args))
	}
	var variants []compare.Variant
	for _, path := range args {
		s, err := flags.load([]string{path})
		if err != nil {
			return nil, err
		}
		name := s.Name
		if name == "" {
			name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		}
		variants = append(variants, compare.Variant{Name: name, Scenario: s})
	}
	rename(variants, args)
	return variants, nil
}

// rename gives variants of the same name those of their files, and numbers what is still the same.
func rename(variants []compare.Variant, paths []string) {
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

func compareVariants(c *cobra.Command, variants []compare.Variant, output *outputFlags, options compare.Options) error {
	dir, err := output.directory()
	if err != nil {
		return err
	}
	options.Check = output.check
	bar := newProgress(c.ErrOrStderr(), output, "comparing")
	options.Progress = bar.counts()
	verdict, runErr := compare.Run(c.Context(), variants, options)
	bar.done()
	if verdict == nil {
		return failed(runErr)
	}
	err = showVerdict(c, verdict, dir, output)
	return cmp.Or(runErr, err) // an interrupted comparison has not failed yet
}

// showVerdict prints and writes a verdict, which is an error where a criterion failed.
func showVerdict(c *cobra.Command, verdict *report.Verdict, dir *directory, output *outputFlags) error {
	if output.format == "json" || output.format == "csv" { // the others have the warnings in them
		output.warn(c.ErrOrStderr(), texts(verdict.Warnings))
	}
	printErr := printOnce(c.OutOrStdout(), func(w io.Writer) error { return printResult(w, verdict, output.format) })
	if dir != nil {
		if err := dir.writeJSON("verdict.json", verdict); err != nil {
			return failed(err)
		}
		if err := dir.write("verdict.csv", verdict.WriteCSV); err != nil {
			return failed(err)
		}
		p, err := page.Compare(verdict)
		if err := writePage(c, dir, p, err); err != nil {
			return failed(err)
		}
	}
	if printErr == nil && !verdict.Pass {
		return failed(errors.New("the comparison failed: " + failures(verdict)))
	}
	return failed(printErr)
}

// failures names the variants that fail a criterion.
func failures(v *report.Verdict) string {
	var texts []string
	for _, variant := range v.Variants {
		for _, c := range variant.Criteria {
			if c.Verdict == report.Fail {
				texts = append(texts, fmt.Sprintf("%s: %s", variant.Name, strings.ReplaceAll(c.Name, "_", " ")))
			}
		}
	}
	return strings.Join(texts, "; ")
}
