package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/launch/export"
	"clifftop/experiments/scenario"
	"clifftop/experiments/sweep"
	"clifftop/report/layout"
)

type exportCommand struct {
	scenario scenarioFlags
	output   console.SimulationFlags
}

func newExport() *cobra.Command {
	var f exportCommand
	names := exportNames()
	long := &strings.Builder{}
	long.WriteString(`Write the deployment that a scenario describes, ready to run, and the benchmark that verifies it.

`)
	for _, x := range export.Formats() {
		fmt.Fprintf(long, "  %-11s %s\n", x.Name, x.Does)
	}
	long.WriteString(`
Without --out, the file is written to standard output. With it, verify.sh is written too: the commands of
vllm bench serve and GuideLLM that send the scenario's traffic. What an engine cannot be told is named in
comments.

An autoscaler of kubernetes and keda has the target of lifecycle.autoscale. Without one, and with an SLO, the
target is found by simulation: the mean number of running requests of a replica at the highest load that meets
the SLO, less a margin of 20 %.`)
	c := &cobra.Command{
		Use:   "export " + strings.Join(names, "|") + " [SCENARIO]",
		Short: "Write launch lines and manifests of a deployment",
		Long:  long.String(),
		Example: `  clifftop export command scenario.yaml > serve.sh
  clifftop export kubernetes scenario.yaml --out deploy
  clifftop export keda scenario.yaml --slo ttft_p95<800ms
  clifftop export helm --from serve.sh --gpu h100`,
		DisableFlagsInUseLine: true,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return fmt.Errorf("export: the format is missing (want %s)", strings.Join(names, ", "))
			case !slices.Contains(names, args[0]):
				return console.UnknownName("export", args[0], names)
			case len(args) > 2:
				return fmt.Errorf("export: %d arguments (want a format and at most one scenario)", len(args))
			}
			return nil
		},
		ValidArgs: names,
		RunE:      f.run,
	}
	f.scenario.register(c)
	f.scenario.registerFrom(c, false)
	f.scenario.registerSLO(c, "limits that an autoscaler's target must meet, such as ttft_p95<800ms")
	f.output.RegisterQuiet(c, "print no progress and no warnings")
	f.output.RegisterJobs(c)
	f.output.RegisterOut(c, "write the files into `DIR`")
	return c
}

func exportNames() (names []string) {
	for _, x := range export.Formats() {
		names = append(names, x.Name)
	}
	return names
}

func (f *exportCommand) run(c *cobra.Command, args []string) error {
	s, err := f.scenario.load(args[1:])
	if err != nil {
		return err
	}
	u, err := s.Resolve()
	if err != nil {
		return err
	}
	dir, err := f.output.Directory()
	if err != nil {
		return err
	}
	target, err := f.target(c, args[0], s)
	if err != nil {
		return err
	}
	files, err := export.Write(args[0], u, target)
	if err != nil {
		return err
	}
	if dir == nil {
		return console.Failed(console.PrintOnce(c.OutOrStdout(), func(w io.Writer) error {
			_, err := w.Write(files[0].Data)
			return err
		}))
	}
	return writeDeployment(c, &f.output.OutputFlags, dir, files)
}

// target finds the target of an autoscaler where the format has one, the scenario has none, and there is an SLO.
func (f *exportCommand) target(c *cobra.Command, format string, s *scenario.Scenario) (*export.Target, error) {
	if format != "kubernetes" && format != "keda" || s.Lifecycle != nil && s.Lifecycle.Autoscale != nil {
		return nil, nil
	}
	bar := f.output.NewProgress(c, "finding the capacity")
	defer bar.Done()
	return scalingTarget(c.Context(), s, f.output.Jobs, func(done, expected int) {
		if bar != nil {
			bar.Set(float64(done) / float64(max(expected, 1)))
		}
	})
}

// scalingMargin is the share of the running requests at capacity that an autoscaler aims at: replicas start before the
// capacity is reached.
const scalingMargin = 0.8

// scalingTarget simulates one replica of a scenario at the highest load that meets its SLO. It is nil without an SLO,
// or if no load meets it.
func scalingTarget(ctx context.Context, s *scenario.Scenario, jobs int,
	progress func(done, expected int)) (*export.Target, error) {
	one := s
	if s.Deployment.Replicas > 1 {
		var err error
		if one, err = s.With(scenario.Setting{Key: "deployment.replicas", Value: "1"}); err != nil {
			return nil, err
		}
	}
	found, err := sweep.Options{Jobs: jobs}.Capacity(ctx, one, progress)
	if err != nil || found == nil || found.Passes == nil || found.AtPasses == nil {
		return nil, console.Failed(err)
	}
	running := found.AtPasses.Concurrency.Running.Mean
	if running == nil || *running <= 0 {
		return nil, nil
	}
	target := math.Max(1, math.Floor(scalingMargin**running))
	unit := map[string]string{"rate": " requests/s", "users": " users"}[found.Over]
	return &export.Target{Running: target, Why: fmt.Sprintf("simulated: at %s%s, the highest load of a replica that "+
		"meets the SLO, %s requests run; %.0f %% of them", layout.Digits(*found.Passes), unit, layout.Digits(*running),
		100*scalingMargin)}, nil
}

func writeDeployment(c *cobra.Command, output *console.OutputFlags, dir *console.Directory, files []export.File) error {
	var names []string
	for _, x := range files {
		if err := dir.WriteBytes(x.Name, x.Data); err != nil {
			return console.Failed(err)
		}
		names = append(names, filepath.Join(dir.Path, x.Name))
	}
	output.Say(c, "wrote %s", strings.Join(names, ", "))
	return nil
}
