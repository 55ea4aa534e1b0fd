package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/grid"
	"clifftop/experiments/planning"
	"clifftop/experiments/scenario"
	"clifftop/report/page"
	"clifftop/report/plan"
	"clifftop/report/plot"
)

// errNoPlan is returned when a search finds no candidate. The printed plan has the reasons.
var errNoPlan = errors.New("no candidate meets the SLO")

// planKeys are the flags of plan that set keys of the scenario.
var planKeys = []keyFlag{
	modelFlag,
	unknownFlag,
	{"gpu", "NAMES", "GPUs to try, separated by commas (default all)", listKey("plan.gpus"), "gpus"},
	{"dtype", "NAMES", "weight formats to try (default auto,fp8,int4)", listKey("plan.dtypes"), ""},
	{"tp", "NUMBERS", "tensor-parallel sizes to try (default 1,2,4,8)", listKey("plan.tensor_parallel_sizes"), ""},
	{"pp", "NUMBERS", "pipeline-parallel sizes to try (default 1)", listKey("plan.pipeline_parallel_sizes"), ""},
	{"max-gpus", "N", "largest total number of GPUs (default 64)", key("plan.max_gpus"), ""},
	{"rate", "R", "mean requests per second", key(scenario.RateKey), ""},
	{"peak", "R", "mean requests per second in the busiest hour (default from the traffic)", key("plan.peak_rate"), ""},
	{"growth", "X", "growth of the traffic to plan for, such as 0.3 or 30%", fractionKey("plan.growth"), ""},
	traceFlag,
	{"slo", "LIMITS", "such as ttft_p95=800ms,tpot_p95=80ms,attainment=0.95", mapKeys("slo"), ""},
	{"price", "PRICES", "US dollars per GPU and hour, such as h100-sxm=2.5,l40s=0.9", mapKeys("plan.prices"), ""},
	{"on-prem", "USD", "compare with buying, at this price per GPU including its share of the server",
		key("plan.on_prem.usd_per_gpu"), ""},
	{"budget", "N", "requests that may be simulated to verify plans by hours, such as 3e8", key("plan.budget"), ""},
	{"unmeasured", "HOW", "candidates without measured runs: apart (default) or ranked", key("plan.unmeasured"), ""},
	seedFlag,
}

// planCommand is the command plan.
type planCommand struct {
	scenario scenarioFlags
	output   console.SimulationFlags
	shard    shardFlags
	options  planning.Options
}

func newPlan() *cobra.Command {
	var p planCommand
	c := &cobra.Command{
		Use:   "plan [SCENARIO]",
		Short: "Find the GPUs, their number and the cost for a traffic and an SLO",
		Long: `Find the deployments that meet the SLO in the busiest hour of the traffic: GPU type, number of
GPUs, weight format and parallelism, ranked by cost. The default scenario is the chat traffic on any GPU of the
catalog. The keys below plan: in the scenario set candidates and prices; the flags are shortcuts for them.`,
		Example: `  clifftop plan --rate 20
  clifftop plan scenario.yaml --gpu h100,l40s --max-gpus 16 --out results
  clifftop plan --model llama-3.1-70b --rate 5 --slo ttft_p95=1s,tpot_p95=50ms --growth 0.5
  clifftop plan --price h100-sxm=2.10,h200-sxm=2.80 --on-prem 32000`,
		Args: console.AtMostOne("scenario"),
		RunE: p.run,
	}
	p.scenario.registerKeys(c, planKeys...)
	p.scenario.registerFrom(c, true)
	p.scenario.registerAccuracy(c)
	p.output.Register(c, "table", "json", "csv", "markdown")
	p.output.RegisterJobs(c)
	p.output.RegisterOut(c, "write plan.json, plan.md, candidates.csv, report.html and pictures into `DIR`")
	p.shard.register(c)
	return c
}

func (p *planCommand) run(c *cobra.Command, args []string) error {
	s, err := p.scenario.load(args)
	if err != nil {
		return err
	}
	p.options.Check, p.options.Jobs = p.output.Check, p.output.Jobs
	if p.shard.given() {
		return p.runShard(c, s)
	}
	return p.plan(c, s)
}

// runShard searches one shard of the candidates, or makes a dry run. A task with all candidates shows the plan.
func (p *planCommand) runShard(c *cobra.Command, s *scenario.Scenario) error {
	g, err := planning.Divide(c.Context(), s, p.options)
	if err != nil {
		return console.Failed(err)
	}
	return p.shard.run(c, g, &p.output, func(runs *grid.Joined) error {
		plan, err := g.Plan(c.Context(), runs)
		if err != nil {
			return console.Failed(err)
		}
		return showPlan(c, plan, &p.output.OutputFlags)
	})
}

// plan searches all candidates in this process, and prints and writes the plan. It is partial after an interrupt.
func (p *planCommand) plan(c *cobra.Command, s *scenario.Scenario) error {
	if _, err := p.output.Directory(); err != nil {
		return err
	}
	bar := p.output.NewProgress(c, "planning")
	if bar != nil {
		p.options.Progress = bar.Set
	}
	plan, runErr := planning.New(c.Context(), s, p.options)
	bar.Done()
	if plan == nil {
		return console.Failed(runErr)
	}
	err := showPlan(c, plan, &p.output.OutputFlags)
	switch {
	case errors.Is(runErr, context.Canceled):
		return runErr
	case runErr != nil:
		return console.Failed(runErr)
	}
	return err
}

// showPlan prints and writes a plan. It returns an error if the plan has no candidates.
func showPlan(c *cobra.Command, plan *plan.Result, output *console.OutputFlags) error {
	dir, err := output.Directory()
	if err != nil {
		return err
	}
	printErr := output.Print(c, plan)
	if dir != nil {
		if err := writePlan(c, dir, plan); err != nil {
			return console.Failed(cmp.Or(printErr, err))
		}
		output.Say(c, "wrote report.html, plan.json, plan.md, candidates.csv and pictures into %s", dir.Path)
	}
	if printErr == nil && len(plan.Candidates) == 0 {
		printErr = errNoPlan
	}
	return console.Failed(printErr)
}

// writePlan writes the files of a plan.
func writePlan(c *cobra.Command, dir *console.Directory, plan *plan.Result) error {
	if err := dir.WriteJSON("plan.json", plan); err != nil {
		return err
	}
	if err := dir.Write("candidates.csv", plan.WriteCSV); err != nil {
		return err
	}
	pictures, err := plot.WritePlan(plan, dir.Write)
	if err != nil {
		return err
	}
	if err := dir.Write("plan.md", func(w io.Writer) error {
		return writePlanMarkdown(w, plan, pictures)
	}); err != nil {
		return err
	}
	p, err := page.Plan(plan)
	if err == nil && plan.Scenario != nil {
		p.Origin.Scenarios = []page.Scenario{{Name: "of the first candidate", Value: plan.Scenario}}
	}
	return writePage(c, dir, p, err)
}

// writePlanMarkdown writes a plan as Markdown, followed by its pictures.
func writePlanMarkdown(w io.Writer, plan *plan.Result, pictures []string) error {
	if err := plan.WriteMarkdown(w); err != nil {
		return err
	}
	for _, name := range pictures {
		if _, err := fmt.Fprintf(w, "\n![%[1]s](%[1]s.png)\n", name); err != nil {
			return err
		}
	}
	return nil
}
