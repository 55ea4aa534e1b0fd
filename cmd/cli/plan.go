package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/grid"
	"clifftop/experiments/launch/export"
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

type planCommand struct {
	scenario scenarioFlags
	output   console.SimulationFlags
	shard    shardFlags
	options  planning.Options
	save     []int  // candidates to save as scenarios
	emit     string // directory for the deployment of the first candidate
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
  clifftop plan --price h100-sxm=2.10,h200-sxm=2.80 --on-prem 32000
  clifftop plan scenario.yaml --save 2 --emit deploy`,
		Args: console.AtMostOne("scenario"),
		RunE: p.run,
	}
	p.scenario.registerKeys(c, planKeys...)
	p.scenario.registerFrom(c, true)
	p.scenario.registerAccuracy(c)
	p.output.Register(c, "table", "json", "csv", "markdown")
	p.output.RegisterJobs(c)
	p.output.RegisterOut(c, "write plan.json, plan.md, candidates.csv, report.html and pictures into `DIR`")
	c.Flags().IntSliceVar(&p.save, "save", nil, "write candidate `N` as candidate-N.yaml into the directory of "+
		"--out, or here; repeatable")
	c.Flags().StringVar(&p.emit, "emit", "", "write the scenario of the first candidate, its launch lines and "+
		"manifests into `DIR`")
	console.AddCheck(c, p.checkSaved)
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
		return p.show(c, s, plan)
	})
}

// checkSaved rejects numbers of candidates that cannot be, and a directory that cannot be written to.
func (p *planCommand) checkSaved() error {
	for _, n := range p.save {
		if n < 1 {
			return fmt.Errorf("--save: %d is not allowed (want a number of a candidate, 1 or more)", n)
		}
	}
	if p.emit == "" {
		return nil
	}
	_, err := console.OpenDirectory("--emit", p.emit)
	return err
}

// show prints and writes a plan, with the candidates that --save and --emit ask for.
func (p *planCommand) show(c *cobra.Command, s *scenario.Scenario, plan *plan.Result) error {
	err := showPlan(c, plan, &p.output.OutputFlags)
	if len(plan.Candidates) == 0 {
		return err
	}
	for _, n := range p.save {
		if n > len(plan.Candidates) {
			return fmt.Errorf("--save: there is no candidate %d (want 1 to %d)", n, len(plan.Candidates))
		}
		one, e := candidateScenario(s, &plan.Candidates[n-1])
		if e != nil {
			return e
		}
		if e = p.saveCandidate(c, n, one); e != nil {
			return e
		}
	}
	if p.emit != "" {
		if e := p.emitFirst(c, s, &plan.Candidates[0]); e != nil {
			return e
		}
	}
	return err
}

func candidateScenario(s *scenario.Scenario, x *plan.Candidate) (*scenario.Scenario, error) {
	var sets []scenario.Setting
	for _, text := range x.Settings {
		one, err := scenario.ParseSetting(text)
		if err != nil {
			return nil, err
		}
		sets = append(sets, one)
	}
	sets = append(sets, scenario.Setting{Key: "deployment.replicas", Value: strconv.Itoa(x.Replicas)})
	if !s.Given("model") {
		sets = append(sets, scenario.Setting{Key: "model", Value: s.Model})
	}
	if !s.Given("slo") {
		sets = append(sets, scenario.Setting{Key: "slo", Value: planning.DefaultSLO})
	}
	return s.With(sets...)
}

func (p *planCommand) saveCandidate(c *cobra.Command, n int, s *scenario.Scenario) error {
	dir, err := console.OpenDirectory("--save", cmp.Or(p.output.Out, "."))
	if err != nil {
		return err
	}
	name := fmt.Sprintf("candidate-%d.yaml", n)
	if err := dir.WriteBytes(name, s.YAML()); err != nil {
		return console.Failed(err)
	}
	p.output.Say(c, "wrote %s", filepath.Join(dir.Path, name))
	return nil
}

// emitFirst writes the deployment of the first candidate in every format that can carry it.
func (p *planCommand) emitFirst(c *cobra.Command, s *scenario.Scenario, x *plan.Candidate) error {
	dir, err := console.OpenDirectory("--emit", p.emit)
	if err != nil {
		return err
	}
	one, err := candidateScenario(s, x)
	if err != nil {
		return err
	}
	u, err := one.Resolve()
	if err != nil {
		return err
	}
	if err := dir.WriteBytes("scenario.yaml", one.YAML()); err != nil {
		return console.Failed(err)
	}
	target, err := scalingTarget(c.Context(), one, p.output.Jobs, nil)
	if err != nil {
		return err
	}
	var left, written []string
	for _, f := range export.Formats() {
		files, err := export.Write(f.Name, u, target)
		if err != nil {
			left = append(left, f.Name+": "+err.Error())
			continue
		}
		for i := range files {
			if files[i].Name == "values.yaml" { // two charts have a file of this name
				files[i].Name = f.Name + "-values.yaml"
			}
		}
		for _, x := range files {
			if err := dir.WriteBytes(x.Name, x.Data); err != nil {
				return console.Failed(err)
			}
		}
		written = append(written, f.Name)
	}
	p.output.Warn(c, left)
	p.output.Say(c, "wrote scenario.yaml, verify.sh and the deployment for %s into %s", strings.Join(written, ", "),
		dir.Path)
	return nil
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
	err := p.show(c, s, plan)
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
