package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/experiments/grid"
	"clifftop/experiments/planning"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/report/page"
	"clifftop/report/plot"
)

// errNoPlan is the end of a search that found nothing; what stands against it was printed.
var errNoPlan = errors.New("no candidate meets the SLO")

func newPlan() *cobra.Command {
	var scenario scenarioFlags
	var output outputFlags
	var options planning.Options
	var shard shardFlags
	c := &cobra.Command{
		Use:   "plan [SCENARIO]",
		Short: "Find the GPUs, their number and cost for a traffic and an SLO",
		Long: `Find which GPUs, how many, in which format and parallelism meet the SLO in the busiest hour of the traffic,
ranked by cost. Without a scenario the default chat traffic is planned for, on all GPUs of the catalogue. The keys
below plan: in the scenario say what to choose from and at which prices; the flags are short for them.`,
		Example: `  clifftop plan --rate 20
  clifftop plan scenario.yaml --gpu h100,l40s --max-gpus 16 --out results
  clifftop plan --model llama-3.1-70b --rate 5 --slo ttft_p95=1s,tpot_p95=50ms --growth 0.5
  clifftop plan --price h100-sxm=2.10,h200-sxm=2.80 --on-prem 32000`,
		Args: atMostOne("scenario"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			s, err := scenario.load(args)
			if err != nil {
				return err
			}
			options.Check = output.check
			if shard.on() || shard.dry {
				return planGrid(c, s, &output, options, &shard)
			}
			return planScenario(c, s, &output, options)
		},
	}
	registerPlan(c, &scenario)
	output.register(c, "table", "json", "csv", "markdown")
	output.registerRun(c)
	c.Flags().StringVarP(&output.out, "out", "o", "", "write plan.json, plan.md, candidates.csv, a page, report.html, and pictures into `DIR`")
	output.registerJobs(c, &options.Jobs)
	shard.register(c)
	return c
}

// planGrid searches a part of the candidates and keeps each run, and plans when it has all.
func planGrid(c *cobra.Command, s *scenario.Scenario, output *outputFlags, options planning.Options, shard *shardFlags) error {
	g, err := planning.Divide(c.Context(), s, options)
	if err != nil {
		return failed(err)
	}
	return shard.make(c, g, output, options.Jobs, func(runs *grid.Joined) error {
		plan, err := g.Plan(c.Context(), runs)
		if err != nil {
			return failed(err)
		}
		return showPlan(c, plan, output)
	})
}

// planFlag is a flag that sets keys of the scenario from a text of its own syntax.
type planFlag struct {
	to       *scenarioFlags
	flag     string
	kind     string
	settings func(text string) ([]scenario.Setting, error)
}

// Set implements [pflag.Value].
func (p *planFlag) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("want %s", p.kind)
	}
	sets, err := p.settings(text)
	if err != nil {
		return err
	}
	for _, s := range sets {
		s.Flag = p.flag
		p.to.settings = append(p.to.settings, s)
	}
	return nil
}

// String implements [pflag.Value]; there is no default.
func (p *planFlag) String() string { return "" }

// Type implements [pflag.Value].
func (p *planFlag) Type() string { return p.kind }

// one sets a key to the text.
func one(key string) func(string) ([]scenario.Setting, error) {
	return func(text string) ([]scenario.Setting, error) {
		return []scenario.Setting{{Key: key, Value: text}}, nil
	}
}

// fraction sets a key to a number, which may be given in percent.
func fraction(key string) func(string) ([]scenario.Setting, error) {
	return func(text string) ([]scenario.Setting, error) {
		if percent, ok := strings.CutSuffix(text, "%"); ok {
			if v, err := strconv.ParseFloat(strings.TrimSpace(percent), 64); err == nil {
				text = strconv.FormatFloat(v/100, 'g', -1, 64)
			}
		}
		return []scenario.Setting{{Key: key, Value: text}}, nil
	}
}

// listOf sets a key to a list of names or numbers.
func listOf(key string) func(string) ([]scenario.Setting, error) {
	return func(text string) ([]scenario.Setting, error) {
		var items []string
		for _, item := range strings.Split(text, ",") {
			item = strings.TrimSpace(item)
			if item == "" {
				return nil, fmt.Errorf("want values with commas between, none of them empty")
			}
			if _, err := strconv.ParseFloat(item, 64); err != nil {
				item = strconv.Quote(item)
			}
			items = append(items, item)
		}
		return []scenario.Setting{{Key: key, Value: "[" + strings.Join(items, ", ") + "]"}}, nil
	}
}

// each sets a key below prefix for every NAME=VALUE.
func each(prefix string) func(string) ([]scenario.Setting, error) {
	return func(text string) ([]scenario.Setting, error) {
		var sets []scenario.Setting
		for _, item := range strings.Split(text, ",") {
			name, value, ok := strings.Cut(strings.TrimSpace(item), "=")
			if !ok || name == "" || value == "" || strings.Contains(name, ".") {
				return nil, fmt.Errorf("want NAME=VALUE, with commas between several")
			}
			sets = append(sets, scenario.Setting{Key: prefix + "." + name, Value: value})
		}
		return sets, nil
	}
}

// registerPlan adds the flags that set keys of the scenario.
func registerPlan(c *cobra.Command, f *scenarioFlags) {
	flags := c.Flags()
	flags.Var(&settingFlag{to: f}, "set", "set a scenario's `KEY=VALUE`; may be repeated")
	for _, x := range []struct {
		flag, kind, usage string
		settings          func(string) ([]scenario.Setting, error)
	}{
		{"model", "NAME", "what is served", one("model")},
		{"gpu", "NAMES", "GPUs to choose from, with commas between (default all)", listOf("plan.gpus")},
		{"dtype", "NAMES", "formats of the weights to try (default auto,fp8,int4)", listOf("plan.dtypes")},
		{"tp", "NUMBERS", "tensor-parallel sizes to try (default 1,2,4,8)", listOf("plan.tensor_parallel_sizes")},
		{"pp", "NUMBERS", "pipeline-parallel sizes to try (default 1)", listOf("plan.pipeline_parallel_sizes")},
		{"max-gpus", "N", "the most GPUs in all (default 64)", one("plan.max_gpus")},
		{"rate", "R", "mean requests per second; keeps the process", one(scenario.RateKey)},
		{"peak", "R", "mean requests per second of the busiest hour (default that of the traffic)", one("plan.peak_rate")},
		{"growth", "X", "plan for so much more traffic, such as 0.3 or 30%", fraction("plan.growth")},
		{"trace", "FILE", "plan for recorded requests", one("workload.trace.file")},
		{"slo", "LIMITS", "such as ttft_p95=800ms,tpot_p95=80ms,attainment=0.95", each("slo")},
		{"price", "PRICES", "US dollars per GPU and hour, such as h100-sxm=2.5,l40s=0.9", each("plan.prices")},
		{"on-prem", "USD", "compare with buying, at so much for a GPU with its share of the server", one("plan.on_prem.usd_per_gpu")},
		{"seed", "N", "make other random numbers", one("run.seed")},
	} {
		flags.Var(&planFlag{f, "--" + x.flag, x.kind, x.settings}, x.flag, x.usage)
	}
	_ = c.RegisterFlagCompletionFunc("model", completeNames("models"))
	_ = c.RegisterFlagCompletionFunc("gpu", completeNames("gpus"))
}

// planScenario plans, and prints and writes the plan, which may be partial.
func planScenario(c *cobra.Command, s *scenario.Scenario, output *outputFlags, options planning.Options) error {
	if _, err := output.directory(); err != nil {
		return err
	}
	bar := newProgress(c.ErrOrStderr(), output, "planning")
	if bar != nil {
		options.Progress = bar.set
	}
	plan, runErr := planning.New(c.Context(), s, options)
	bar.done()
	if plan == nil {
		return failed(runErr)
	}
	err := showPlan(c, plan, output)
	switch {
	case errors.Is(runErr, context.Canceled):
		return runErr
	case runErr != nil:
		return failed(runErr)
	}
	return err
}

// showPlan prints and writes a plan. One without candidates is an error, after it was shown.
func showPlan(c *cobra.Command, plan *report.Plan, output *outputFlags) error {
	dir, err := output.directory()
	if err != nil {
		return err
	}
	printErr := printOnce(c.OutOrStdout(), func(w io.Writer) error { return printResult(w, plan, output.format) })
	if dir != nil {
		err := writePlan(dir, plan)
		if err == nil {
			p, pageErr := page.Plan(plan)
			if pageErr == nil && plan.Scenario != nil {
				p.Origin.Scenarios = []page.Scenario{{Name: "of the first candidate", Value: plan.Scenario}}
			}
			err = writePage(c, dir, p, pageErr)
		}
		if err != nil {
			return failed(cmp.Or(printErr, err))
		}
		if !output.quiet {
			fmt.Fprintf(c.ErrOrStderr(), "clifftop: wrote report.html, plan.json, plan.md, candidates.csv and pictures into %s\n", dir.path)
		}
	}
	if printErr == nil && len(plan.Candidates) == 0 {
		printErr = errNoPlan
	}
	return failed(printErr)
}

// writePlan writes the files of a plan.
func writePlan(dir *directory, plan *report.Plan) error {
	if err := dir.writeJSON("plan.json", plan); err != nil {
		return err
	}
	if err := dir.write("candidates.csv", plan.WriteCSV); err != nil {
		return err
	}
	names, err := plot.WritePlan(plan, dir.write)
	if err != nil {
		return err
	}
	return dir.write("plan.md", func(w io.Writer) error {
		if err := plan.WriteMarkdown(w); err != nil {
			return err
		}
		for _, name := range names {
			if _, err := fmt.Fprintf(w, "\n![%[1]s](%[1]s.png)\n", name); err != nil {
				return err
			}
		}
		return nil
	})
}
