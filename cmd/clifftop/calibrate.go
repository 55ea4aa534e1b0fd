package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/experiments/calibration"
	"clifftop/model"
)

func newCalibrate() *cobra.Command {
	var scenario scenarioFlags
	var output outputFlags
	var reference, steps, record string
	var only []string
	var options calibration.Options
	c := &cobra.Command{
		Use:                   "calibrate --reference FILE | calibrate [SCENARIO] --steps FILE",
		DisableFlagsInUseLine: true,
		Short:                 "Fit a GPU's constants to measurements of your own",
		Long: `Fit a few constants of a GPU and its host to measured runs, in the columns of clifftop validate, or to
measured iterations: how much of the peak and of the bandwidth the kernels reach, what a step and a
sequence in it cost beside, and how long the front end takes. The errors are printed as they were, as
they are, and for runs that were left out of the fit.

Iterations are a CSV file with the columns decode_seqs, sum_context, prefill_tokens and seconds, and
perhaps prefill_cached; the scenario says which model runs on which GPU.`,
		Example: `  clifftop calibrate --reference measured.csv --only gpu=L40S --record my-l40s.yaml
  clifftop calibrate --model llama-3.1-8b --gpu a40 --steps steps.csv --record my-a40.yaml
  clifftop run --gpu my-a40.yaml`,
		Args: atMostOne("scenario"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			if ext := filepath.Ext(record); record != "" && ext != ".yaml" && ext != ".yml" {
				return fmt.Errorf("--record: %s is not a name that a scenario can give (want one that ends in .yaml)", record)
			}
			if reference == "" && steps == "" {
				reference = os.Getenv(referenceVariable)
			}
			switch {
			case reference == "" && steps == "":
				return errors.New("--reference or --steps is missing (want a file of measured runs or iterations)\nhint: clifftop calibrate --help tells their columns")
			case reference != "" && steps != "":
				return errors.New("--reference and --steps are given together (want one)")
			case steps != "" && (len(only) > 0 || options.ByGPU):
				return errors.New("--only and --by-gpu choose among measured runs, and --steps has iterations")
			case options.ByGPU && record != "":
				return errors.New("--record is of one GPU, and --by-gpu takes runs of several")
			}
			if record != "" { // before the work is done
				if _, err := os.Stat(filepath.Dir(record)); err != nil {
					return fmt.Errorf("--record: %s: %s", record, cause(err))
				}
			}
			options.Check = output.check
			bar := newProgress(c.ErrOrStderr(), &output, "fitting")
			options.Progress = bar.counts()
			var fitted *calibration.Result
			var err error
			if steps != "" {
				fitted, err = fitSteps(c, steps, &scenario, args, options)
			} else {
				fitted, err = fitRuns(c, reference, only, &scenario, args, options)
			}
			bar.done()
			if err != nil {
				return err
			}
			printErr := printOnce(c.OutOrStdout(), func(w io.Writer) error { return printResult(w, fitted, output.format) })
			if record != "" {
				if err := writeRecord(record, fitted); err != nil {
					return err
				}
			}
			return failed(printErr)
		},
	}
	scenario.register(c)
	output.register(c, "table", "json", "csv")
	output.registerRun(c)
	flags := c.Flags()
	flags.StringVar(&reference, "reference", "", "the `FILE` of measured runs, of one GPU")
	flags.StringArrayVar(&only, "only", nil, "only runs where `KEY=VALUE`, or whose run_id has a part or pattern; may be repeated")
	flags.StringVar(&steps, "steps", "", "the `FILE` of measured iterations")
	flags.StringSliceVar(&options.Fit, "fit", nil, "fit these `CONSTANTS` only, with commas between: "+strings.Join(parameterNames(), ", "))
	flags.BoolVar(&options.ByGPU, "by-gpu", false, "take runs of several GPUs, fit what belongs to the host, and leave a GPU's runs out together")
	flags.StringVar(&record, "record", "", "write the GPU's record into `FILE`, for scenarios to name at gpu")
	output.registerJobs(c, &options.Jobs)
	return c
}

func parameterNames() []string {
	var names []string
	for _, p := range calibration.Parameters() {
		names = append(names, p.Name)
	}
	return names
}

func fitRuns(c *cobra.Command, reference string, only []string, scenario *scenarioFlags, args []string, options calibration.Options) (*calibration.Result, error) {
	j, err := newJob(reference, only, scenario, args)
	if err != nil {
		return nil, err
	}
	r, err := calibration.FitRuns(c.Context(), j.ref, j.cases, j.keep, options)
	if err != nil && c.Context().Err() == nil {
		return nil, fmt.Errorf("--reference: %w", err)
	}
	return r, err
}

func fitSteps(c *cobra.Command, name string, scenario *scenarioFlags, args []string, options calibration.Options) (*calibration.Result, error) {
	data, err := readFile("--steps", name)
	if err != nil {
		return nil, err
	}
	steps, err := model.ReadIterations(name, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	s, err := scenario.load(args)
	if err != nil {
		return nil, err
	}
	setup, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	return calibration.FitSteps(c.Context(), filepath.Base(name), setup, steps, options)
}

// writeRecord writes the GPU's record, which has the file's name.
func writeRecord(path string, r *calibration.Result) error {
	dir, err := openDirectory(filepath.Dir(path))
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return failed(dir.write(filepath.Base(path), func(w io.Writer) error { return r.WriteRecord(w, name) }))
}
