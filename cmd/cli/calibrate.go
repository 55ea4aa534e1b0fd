package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/calibration"
	"clifftop/model"
)

type calibrateCommand struct {
	measured   measuredRuns
	output     console.SimulationFlags
	iterations string
	record     string
	options    calibration.Options
}

func newCalibrate() *cobra.Command {
	var f calibrateCommand
	c := &cobra.Command{
		Use:                   "calibrate --reference FILE | calibrate [SCENARIO] --iterations FILE",
		DisableFlagsInUseLine: true,
		Short:                 "Fit the constants of a GPU to your own measurements",
		Long: `Fit a few constants of a GPU and its host to measurements: the fraction of peak compute and of memory
bandwidth that kernels reach, the overhead per step and per sequence, and the time of the API server. The
output has the errors before the fit, after the fit, and for runs that were left out of the fit.

A constant that the measurements do not determine is not identified: it keeps the catalog's value. At most one
constant is fitted for each two measured numbers. A record of three or more runs counts as calibrated, and run,
sweep and plan say so.

Measurements are runs, in the columns of clifftop validate, or iterations. Iterations are a CSV file with
the columns decode_seqs, sum_context, prefill_tokens and seconds, and optionally prefill_cached (KV tokens of
the prompts that earlier iterations computed), prefill_requests, context_sd (standard deviation of the KV
lengths of the decoding sequences), kind and segment. It may be compressed with gzip. The scenario sets the model
and the GPU.`,
		Example: `  clifftop calibrate --reference measured.csv --only gpu=L40S --record my-l40s.yaml
  clifftop calibrate --gpu l40s --reference load1.json --reference load2.json --record my-l40s.yaml
  clifftop calibrate --model llama-3.1-8b --gpu a40 --iterations steps.csv --record my-a40.yaml
  clifftop run --gpu my-a40.yaml`,
		Args: console.AtMostOne("scenario"),
		RunE: f.run,
	}
	f.measured.register(c)
	f.output.Register(c, "table", "json", "csv")
	f.output.RegisterJobs(c)
	flags := c.Flags()
	flags.StringVar(&f.iterations, "iterations", "", "`FILE` of measured iterations")
	flags.StringVar(&f.iterations, "steps", "", "old name of --iterations")
	_ = flags.MarkHidden("steps")
	flags.StringSliceVar(&f.options.Fit, "fit", nil, "fit only these `CONSTANTS`, separated by commas: "+
		strings.Join(parameterNames(), ", "))
	flags.BoolVar(&f.options.ByGPU, "by-gpu", false, "use runs of several GPUs: fit the constants of the host, and "+
		"leave out the runs of one GPU at a time")
	flags.StringVar(&f.record, "record", "", "write the GPU's record into `FILE`, for the key gpu of scenarios")
	console.AddCheck(c, f.checkSource)
	console.AddCheck(c, f.checkRecord)
	return c
}

func parameterNames() []string {
	var names []string
	for _, p := range calibration.Parameters() {
		names = append(names, p.Name)
	}
	return names
}

// checkSource rejects missing or conflicting measurements.
func (f *calibrateCommand) checkSource() error {
	if f.iterations == "" {
		f.measured.useEnvironment()
	}
	switch {
	case len(f.measured.files) == 0 && f.iterations == "":
		return errors.New("--reference or --iterations is missing (want a file of measured runs or iterations)\n" +
			"hint: clifftop calibrate --help lists their columns")
	case len(f.measured.files) > 0 && f.iterations != "":
		return errors.New("--reference and --iterations are given together (want one)")
	case f.iterations != "" && (len(f.measured.only) > 0 || f.options.ByGPU):
		return errors.New("--only and --by-gpu select measured runs, but --iterations has iterations (want " +
			"--reference)")
	}
	return nil
}

// checkRecord rejects a record that could not be written after the fit.
func (f *calibrateCommand) checkRecord() error {
	if f.record == "" {
		return nil
	}
	if ext := filepath.Ext(f.record); ext != ".yaml" && ext != ".yml" {
		return fmt.Errorf("--record: %s is not allowed (want a name that ends in .yaml)", f.record)
	}
	if f.options.ByGPU {
		return errors.New("--record is for one GPU, but --by-gpu uses runs of several (want one of them)")
	}
	if _, err := os.Stat(filepath.Dir(f.record)); err != nil {
		return fmt.Errorf("--record: %s: %s", f.record, console.Cause(err))
	}
	return nil
}

// run fits the constants, and prints and writes the result.
func (f *calibrateCommand) run(c *cobra.Command, args []string) error {
	f.options.Check, f.options.Jobs = f.output.Check, f.output.Jobs
	bar := f.output.NewProgress(c, "fitting")
	f.options.Progress = bar.Counts()
	fit := f.fitRuns
	if f.iterations != "" {
		fit = f.fitIterations
	}
	fitted, err := fit(c, args)
	bar.Done()
	if err != nil {
		return err
	}
	printErr := f.output.Print(c, fitted)
	if f.record != "" {
		if err := writeRecord(f.record, fitted); err != nil {
			return err
		}
	}
	return console.Failed(printErr)
}

// fitRuns fits the constants to measured runs.
func (f *calibrateCommand) fitRuns(c *cobra.Command, args []string) (*calibration.Result, error) {
	r, err := f.measured.read(args)
	if err != nil {
		return nil, err
	}
	result, err := calibration.FitRuns(c.Context(), r.Reference, r.cases, r.keep, f.options)
	if err != nil && c.Context().Err() == nil {
		return nil, fmt.Errorf("--reference: %w", err)
	}
	return result, err
}

// fitIterations fits the constants to measured iterations.
func (f *calibrateCommand) fitIterations(c *cobra.Command, args []string) (*calibration.Result, error) {
	data, err := console.ReadFile("--iterations", f.iterations)
	if err != nil {
		return nil, err
	}
	all, err := model.ReadIterations(f.iterations, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	setup, err := f.measured.scenario.resolve(args)
	if err != nil {
		return nil, err
	}
	return calibration.FitIterations(c.Context(), filepath.Base(f.iterations), setup, all, f.options)
}

// writeRecord writes the GPU's record. The record has the name of the file.
func writeRecord(path string, r *calibration.Result) error {
	file := filepath.Base(path)
	name := strings.TrimSuffix(file, filepath.Ext(file))
	return writeFile("--record", path, func(w io.Writer) error { return r.WriteRecord(w, name) })
}

func writeFile(flag, path string, fill func(io.Writer) error) error {
	dir, err := console.OpenDirectory(flag, filepath.Dir(path))
	if err != nil {
		return err
	}
	return console.Failed(dir.Write(filepath.Base(path), fill))
}
