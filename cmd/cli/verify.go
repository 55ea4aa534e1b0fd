package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/measured"
	"clifftop/experiments/scenario"
	"clifftop/experiments/verify"
	"clifftop/model/catalog"
	"clifftop/report/page"
)

type verifyCommand struct {
	scenario scenarioFlags
	output   console.SimulationFlags
	measured []string
	accuracy string // file of errors of own runs, to create or to extend
	noCauses bool
}

func newVerify() *cobra.Command {
	var v verifyCommand
	c := &cobra.Command{
		Use:   "verify [SCENARIO] --measured RESULT…",
		Short: "Hold a simulation against a measured run of the deployment",
		Long: `Simulate a scenario with the traffic of a measured run, and print the promise beside the ` +
			`measurement: each
metric with the bar that holds 90 % of measured runs of its kind, and a verdict. Where a metric is outside,
knobs and constants are changed one at a time to find what would explain it. The exit status is 1 if a metric
is outside.

RESULT is a result of vllm bench, GuideLLM, AIPerf, SGLang's benchmark or another tool, a snapshot or a range
of Prometheus, or a log of an engine (clifftop catalog formats). The scenario says what was deployed, such as
the GPU; model, arrivals and lengths come from the result unless the scenario has them. A log has no traffic:
it takes that of the other result, or of the scenario. Its states over time stand beside the simulated ones.`,
		Example: `  clifftop verify scenario.yaml --measured result.json
  clifftop verify --from serve.sh --gpu h100 --measured result.json --out verified
  clifftop verify scenario.yaml --measured result.json engine.log --out verified
  clifftop verify scenario.yaml --measured users-8.json users-64.json --accuracy my-accuracy.yaml
  clifftop run scenario.yaml --accuracy my-accuracy.yaml`,
		RunE: v.run,
	}
	v.scenario.register(c)
	v.scenario.registerFrom(c, false)
	v.output.Register(c, "table", "json", "markdown")
	v.output.RegisterJobs(c)
	v.output.RegisterOut(c, "write verify.json, report.html, verify.png and verify.svg into `DIR`")
	c.Flags().StringArrayVarP(&v.measured, "measured", "m", nil, "`RESULT` of a measured run; repeatable, and more "+
		"files may follow")
	c.Flags().StringVar(&v.accuracy, "accuracy", "", "add the errors to `FILE`, for the flag --accuracy of run, sweep "+
		"and plan")
	c.Flags().BoolVar(&v.noCauses, "no-causes", false, "do not look for causes")
	return c
}

// split divides the arguments into the scenario and further results: with --measured, arguments that are results belong
// to it.
func (v *verifyCommand) split(args []string) (scenarios, results []string) {
	results = v.measured
	for _, name := range args {
		data, err := os.ReadFile(name)
		if _, ok := measured.Recognise(name, data); err == nil && ok {
			results = append(results, name)
			continue
		}
		scenarios = append(scenarios, name)
	}
	return scenarios, results
}

func (v *verifyCommand) run(c *cobra.Command, args []string) error {
	scenarios, names := v.split(args)
	switch {
	case len(names) == 0:
		return errors.New("--measured is missing (want a result of a load generator, metrics or a log)\n" +
			"hint: clifftop catalog formats lists what is read")
	case len(scenarios) > 1:
		return fmt.Errorf("verify: %d scenarios (want at most one)", len(scenarios))
	}
	s, err := v.scenario.load(scenarios)
	if err != nil {
		return err
	}
	results, err := v.read(names)
	if err != nil {
		return err
	}
	before, err := v.before()
	if err != nil {
		return err
	}
	dir, err := v.output.Directory()
	if err != nil {
		return err
	}
	bar := v.output.NewProgress(c, "verifying")
	r, err := verify.New(c.Context(), s, results, verify.Options{Jobs: v.output.Jobs, Check: v.output.Check,
		NoCauses: v.noCauses, Progress: bar.Counts()})
	bar.Done()
	if err != nil {
		return err
	}
	printErr := v.output.Print(c, r)
	if err := v.write(c, dir, r, before); err != nil {
		return err
	}
	if printErr == nil && r.Verdict == verify.Outside {
		printErr = errors.New("the measured run is outside the error bars")
	}
	return console.Failed(printErr)
}

func (v *verifyCommand) read(names []string) ([]*measured.Result, error) {
	var files []measured.Named
	for _, name := range names {
		data, err := console.ReadFile("--measured", name)
		if err != nil {
			return nil, err
		}
		files = append(files, measured.Named{Name: name, Data: data})
	}
	return measured.ReadAll(files)
}

// before reads the record of earlier runs; nil if there is none yet.
func (v *verifyCommand) before() (*catalog.OwnAccuracy, error) {
	if v.accuracy == "" {
		return nil, nil
	}
	data, err := os.ReadFile(v.accuracy)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--accuracy: %s: %s", v.accuracy, console.Cause(err))
	}
	own, err := catalog.ReadOwnAccuracy(v.accuracy, data, scenario.Release)
	if err != nil {
		return nil, fmt.Errorf("--accuracy: %w", err)
	}
	return own, nil
}

// write writes the files of a verification.
func (v *verifyCommand) write(c *cobra.Command, dir *console.Directory, r *verify.Result,
	before *catalog.OwnAccuracy) error {
	if v.accuracy != "" {
		own, err := r.Own(before)
		if err != nil {
			return console.Failed(err)
		}
		if err := writeFile("--accuracy", v.accuracy, own.Write); err != nil {
			return err
		}
		v.output.Say(c, "wrote %s: use it with --accuracy %s, or as accuracy: in a scenario", v.accuracy, v.accuracy)
	}
	if dir == nil {
		return nil
	}
	if err := dir.WriteJSON("verify.json", r); err != nil {
		return console.Failed(err)
	}
	if err := r.Picture().WriteFiles("verify", dir.Write); err != nil {
		return console.Failed(err)
	}
	p, err := page.Validation(r.Clifftop, r.Picture(), r.WriteMarkdown)
	if p != nil {
		p.Kind = "verify"
	}
	if err := writePage(c, dir, p, err); err != nil {
		return console.Failed(err)
	}
	v.output.Say(c, "wrote verify.json, report.html, verify.png and verify.svg into %s", dir.Path)
	return nil
}
