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

	"clifftop/experiments/calibration"
	"clifftop/model"
)

// calibrateFlags are those of calibrate.
type calibrateFlags struct {
	scenario                 scenarioFlags
	output                   outputFlags
	reference, steps, record string
	only                     []string
	options                  calibration.Options
}

func newCalibrate() *cobra.Command {
	var f calibrateFlags
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
		RunE: f.run,
	}
	f.scenario.register(c)
	f.output.register(c, "table", "json", "csv")
	f.output.registerRun(c)
	flags := c.Flags()
	flags.StringVar(&f.reference, "reference", "", "the `FILE` of measured runs, of one GPU")
	flags.StringArrayVar(&f.only, "only", nil, "only runs where `KEY=VALUE`, or whose run_id has a part or pattern; may be repeated")
	flags.StringVar(&f.steps, "steps", "", "the `FILE` of measured iterations")
	flags.StringSliceVar(&f.options.Fit, "fit", nil, "fit these `CONSTANTS` only, with commas between: "+strings.Join(parameterNames(), ", "))
	flags.BoolVar(&f.options.ByGPU, "by-gpu", false, "take runs of several GPUs, fit what belongs to the host, and leave a GPU's runs out together")
	flags.StringVar(&f.record, "record", "", "write the GPU's record into `FILE`, for scenarios to name at gpu")
	f.output.registerJobs(c, &f.options.Jobs)
	return c
}

func parameterNames() []string {
	var names []string
	for _, p := range calibration.Parameters() {
		names = append(names, p.Name)
	}
	return names
}

// run fits, and prints and writes the result.
func (f *calibrateFlags) run(c *cobra.Command, args []string) error {
	if err := f.output.validate(); err != nil {
		return err
	}
	if f.reference == "" && f.steps == "" {
		f.reference = defaultReference()
	}
	if err := f.validate(); err != nil {
		return err
	}
	f.options.Check = f.output.check
	bar := newProgress(c.ErrOrStderr(), &f.output, "fitting")
	f.options.Progress = bar.counts()
	fitted, err := f.fit(c, args)
	bar.done()
	if err != nil {
		return err
	}
	printErr := printOnce(c.OutOrStdout(), func(w io.Writer) error { return printResult(w, fitted, f.output.format) })
	if f.record != "" {
		if err := writeRecord(f.record, fitted); err != nil {
			return err
		}
	}
	return failed(printErr)
}

// validate refuses flags that do not go together, and a record that cannot be written, before the work is done.
func (f *calibrateFlags) validate() error {
	if ext := filepath.Ext(f.record); f.record != "" && ext != ".yaml" && ext != ".yml" {
		return fmt.Errorf("--record: %s is not a name that a scenario can give (want one that ends in .yaml)", f.record)
	}
	switch {
	case f.reference == "" && f.steps == "":
		return errors.New("--reference or --steps is missing (want a file of measured runs or iterations)\nhint: clifftop calibrate --help tells their columns")
	case f.reference != "" && f.steps != "":
		return errors.New("--reference and --steps are given together (want one)")
	case f.steps != "" && (len(f.only) > 0 || f.options.ByGPU):
		return errors.New("--only and --by-gpu choose among measured runs, and --steps has iterations")
	case f.options.ByGPU && f.record != "":
		return errors.New("--record is of one GPU, and --by-gpu takes runs of several")
	}
	if f.record != "" {
		if _, err := os.Stat(filepath.Dir(f.record)); err != nil {
			return fmt.Errorf("--record: %s: %s", f.record, cause(err))
		}
	}
	return nil
}

// fit fits to what was measured: iterations, or whole runs.
func (f *calibrateFlags) fit(c *cobra.Command, args []string) (*calibration.Result, error) {
	if f.steps != "" {
		return f.fitSteps(c, args)
	}
	return f.fitRuns(c, args)
}

func (f *calibrateFlags) fitRuns(c *cobra.Command, args []string) (*calibration.Result, error) {
	j, err := newJob(f.reference, f.only, &f.scenario, args)
	if err != nil {
		return nil, err
	}
	r, err := calibration.FitRuns(c.Context(), j.ref, j.cases, j.keep, f.options)
	if err != nil && c.Context().Err() == nil {
		return nil, fmt.Errorf("--reference: %w", err)
	}
	return r, err
}

func (f *calibrateFlags) fitSteps(c *cobra.Command, args []string) (*calibration.Result, error) {
	data, err := readFile("--steps", f.steps)
	if err != nil {
		return nil, err
	}
	steps, err := model.ReadIterations(f.steps, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	s, err := f.scenario.load(args)
	if err != nil {
		return nil, err
	}
	setup, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	return calibration.FitSteps(c.Context(), filepath.Base(f.steps), setup, steps, f.options)
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
