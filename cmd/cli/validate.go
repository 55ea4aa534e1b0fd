package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/validation"
	"clifftop/report/page"
)

// referenceVariable names the environment variable with the default of --reference.
const referenceVariable = "CLIFFTOP_REFERENCE"

type validateCommand struct {
	measured measuredRuns
	output   console.SimulationFlags
	ablate   bool
	coverage bool
	write    string // file of error bars, or of errors of own runs

	schedules  []string // files of records of real schedulers
	iterations []string // files of measured iterations
}

func newValidate() *cobra.Command {
	var v validateCommand
	c := &cobra.Command{
		Use:   "validate [SCENARIO] --reference FILE | --iterations FILE…",
		Short: "Compare with measured runs, iterations or schedulers",
		Long: `Simulate measured runs and report the errors of time to first token, time per output token, end-to-end
latency and throughput, for each run and summarized by model, GPU and load.

FILE is a CSV file with one row per measured run, or per phase of a run. The columns are run_id, engine,
model, gpu and load_mode (open, closed or trace); the load (rate_rps and duration_s, or concurrency and
n_requests); the lengths (input_tokens_mean or input_token_spec, and the same for output); and measured
values such as ttft_mean_ms, tpot_p99_ms or output_tok_per_s. Rows that no scenario can express, or that
contradict themselves, are listed with the reason.

FILE may also be a result of vllm bench serve --save-result. Then the scenario, or flags, add what the
result does not contain, such as the GPU. Model, arrivals and lengths come from the result unless they are
given.

With --iterations, compute the time of each measured iteration (forward pass) and report the errors by kind of
iteration, batch size, context and prompt tokens. FILE is a CSV file with the columns of clifftop calibrate
--iterations, or a folder with runs.csv. The model, the GPU and the parallelism of a file come from its row in
runs.csv beside it (columns run, model, gpu, engine, engine_version, tp, dp, ep, dtype, kv_cache_dtype …), or
from a scenario or flags.

With --schedules, replay records of the schedulers of vLLM and SGLang, and count by profile the cases in which
all iterations are equal to the recorded ones. The first difference of each other case is printed, and the exit
status is then 1.`,
		Example: `  clifftop validate --reference measured.csv
  clifftop validate --reference measured.csv --only gpu=H100 --only load=open --format csv
  clifftop validate --reference measured.csv --out results
  clifftop validate --reference measured.csv --only s2r-exp18-s0 --format scenario
  clifftop validate scenario.yaml --reference vllm-result.json
  clifftop validate --reference my-runs.csv --write my-accuracy.yaml
  clifftop validate --coverage --reference measured.csv measured-2.csv
  clifftop validate --iterations measured/iterations --out results
  clifftop validate --iterations steps.csv --model qwen3-32b --gpu b300-sxm --tp 2
  clifftop validate --schedules records.jsonl.gz`,
		Args: func(c *cobra.Command, args []string) error {
			if len(v.schedules) > 0 || len(v.iterations) > 0 || v.coverage {
				return nil // further files
			}
			return console.AtMostOne("scenario")(c, args)
		},
		RunE: v.run,
	}
	v.measured.register(c)
	v.output.Register(c, "table", "json", "csv", "markdown", "scenario")
	v.output.RegisterJobs(c)
	v.output.RegisterOut(c, "write validate.csv, validate.json, report.html, parity.png, parity.svg, and "+
		"accuracy.yaml, whose errors run and sweep quote, into `DIR`")
	c.Flags().BoolVar(&v.ablate, "ablate", false, "remove parts of the model one by one and compare the errors over "+
		"open-loop rows, or the rows of --only")
	c.Flags().BoolVar(&v.coverage, "coverage", false, "print how often error bars made from other measured runs "+
		"hold a run, by kind of runs; more files of measured runs may follow")
	c.Flags().StringVar(&v.write, "write", "", "write the errors into `FILE`, for the flag --accuracy of run, sweep "+
		"and plan; with --coverage, write the error bars of the catalog")
	c.Flags().StringArrayVar(&v.iterations, "iterations", nil, "compare with `FILE…` of measured iterations, or a "+
		"folder of them; more files may follow")
	c.Flags().StringArrayVar(&v.schedules, "schedules", nil, "replay `FILE…` of recorded scheduler decisions; more "+
		"files may follow")
	return c
}

func (v *validateCommand) run(c *cobra.Command, args []string) error {
	if len(v.schedules) > 0 {
		return v.replay(c, append(v.schedules, args...))
	}
	if len(v.iterations) > 0 {
		return v.scoreIterations(c, args)
	}
	if v.write != "" && (v.ablate || v.output.Format == "scenario") {
		return errors.New("--write needs errors of runs (want no --ablate and no --format scenario)")
	}
	v.measured.useEnvironment()
	if len(v.measured.files) == 0 {
		return fmt.Errorf("--reference is missing (want a CSV file of measured runs; %s can name it, or its folder)\n"+
			"hint: clifftop validate --help lists its columns", referenceVariable)
	}
	if v.coverage {
		return v.runCoverage(c, args)
	}
	r, err := v.measured.read(args)
	if err != nil {
		return err
	}
	switch {
	case v.output.Format == "scenario":
		return console.Failed(console.PrintOnce(c.OutOrStdout(), func(w io.Writer) error {
			return validation.WriteScenarios(w, r.cases)
		}))
	case v.ablate:
		return v.runAblation(c, r)
	}
	return v.validate(c, r)
}

// options returns the options of a simulation that reports to the progress display.
func (v *validateCommand) options(bar *console.Progress) validation.Options {
	return validation.Options{Check: v.output.Check, Jobs: v.output.Jobs, Progress: bar.Counts()}
}

// runAblation prints and writes the errors with parts of the model removed.
func (v *validateCommand) runAblation(c *cobra.Command, r *reference) error {
	dir, err := v.output.Directory()
	if err != nil {
		return err
	}
	cases, keep := r.cases, r.keep
	if !r.selected {
		cases, keep = validation.Choose(cases, validation.OpenLoop), validation.OpenLoop
	}
	bar := v.output.NewProgress(c, "ablating")
	a, err := validation.Ablate(c.Context(), r.Reference, cases, keep, v.options(bar))
	bar.Done()
	if err != nil {
		return console.Failed(err)
	}
	err = v.output.Print(c, a)
	if dir != nil && err == nil {
		err = dir.Write("ablation.csv", a.WriteCSV)
	}
	return console.Failed(err)
}

// validate simulates the measured runs, and prints and writes the errors.
func (v *validateCommand) validate(c *cobra.Command, r *reference) error {
	dir, err := v.output.Directory()
	if err != nil {
		return err
	}
	bar := v.output.NewProgress(c, "validating")
	result, runErr := validation.Run(c.Context(), r.Reference, r.cases, r.keep, v.options(bar))
	bar.Done()
	if result == nil {
		return console.Failed(runErr)
	}
	printErr := v.output.Print(c, result)
	if v.write != "" && runErr == nil {
		own, err := result.Own()
		if err != nil {
			return console.Failed(err)
		}
		if err := writeFile("--write", v.write, own.Write); err != nil {
			return err
		}
		v.output.Say(c, "wrote %s: use it with --accuracy %s", v.write, v.write)
	}
	if dir != nil {
		if err := writeValidation(c, dir, result); err != nil {
			return console.Failed(err)
		}
		v.output.Say(c, "wrote report.html, validate.csv, validate.json and parity.png into %s", dir.Path)
	}
	if runErr != nil {
		return runErr
	}
	scored := func(r validation.Result) bool { return r.Status == validation.Scored }
	if printErr == nil && !slices.ContainsFunc(result.Rows, scored) {
		return console.Failed(errors.New("no row could be scored: the result lists the reason for each row"))
	}
	return console.Failed(printErr)
}

func writeValidation(c *cobra.Command, dir *console.Directory, r *validation.Report) error {
	if err := dir.Write("validate.csv", r.WriteCSV); err != nil {
		return err
	}
	if err := dir.WriteJSON("validate.json", r); err != nil {
		return err
	}
	if !r.Partial { // run and sweep must not quote errors of a part of the rows
		if err := dir.Write("accuracy.yaml", r.WriteRecords); err != nil {
			return err
		}
	}
	if err := r.Picture().WriteFiles("parity", dir.Write); err != nil {
		return err
	}
	p, err := page.Validation(r.Clifftop, r.Picture(), r.WriteMarkdown)
	if p != nil {
		p.Partial = r.Missing()
	}
	return writePage(c, dir, p, err)
}

// measuredRuns are the flags that select measured runs, for validate and calibrate.
type measuredRuns struct {
	scenario scenarioFlags
	files    []string
	only     []string
}

func (m *measuredRuns) register(c *cobra.Command) {
	m.scenario.register(c)
	flags := c.Flags()
	flags.StringArrayVar(&m.files, "reference", nil, "`FILE` of measured runs; repeatable")
	flags.StringArrayVar(&m.only, "only", nil, "use only rows with `KEY=VALUE`, or whose run_id contains or matches "+
		"the text; repeatable")
}

// useEnvironment takes the default of --reference from the environment: a file of measured runs, or the folder of
// measured.csv.
func (m *measuredRuns) useEnvironment() {
	file := os.Getenv(referenceVariable)
	if len(m.files) > 0 || file == "" {
		return
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		file = filepath.Join(file, "measured.csv")
	}
	m.files = []string{file}
}

// reference is a set of measured runs and the scenarios that simulate them.
type reference struct {
	*validation.Reference
	cases    []*validation.Case
	keep     func(*validation.Row) bool
	selected bool // not all rows of a table
}

// read reads the files and joins their runs. A run must be in one of them only.
func (m *measuredRuns) read(args []string) (*reference, error) {
	var all *reference
	files := map[string]string{} // by run
	for i, file := range m.files {
		if slices.Contains(m.files[:i], file) {
			return nil, fmt.Errorf("--reference: %s is named twice (want each file once)", file)
		}
		r, err := m.readOne(file, args)
		if err != nil {
			return nil, err
		}
		for _, row := range r.Rows {
			if first, twice := files[row.ID]; twice && first != file {
				return nil, fmt.Errorf("--reference: the run %s is in %s and in %s (want each run once)",
					row.ID, first, file)
			}
			files[row.ID] = file
		}
		if all == nil {
			all = r
			continue
		}
		keep, further := all.keep, r.keep
		all.keep = func(row *validation.Row) bool {
			return (keep == nil || keep(row)) && (further == nil || further(row))
		}
		all.Name += ", " + r.Name
		all.Rows, all.Notes = append(all.Rows, r.Rows...), append(all.Notes, r.Notes...)
		all.cases, all.selected = append(all.cases, r.cases...), all.selected || r.selected
	}
	if len(all.cases) == 0 {
		return nil, fmt.Errorf("--only: no row of %s matches", strings.Join(m.files, ", "))
	}
	return all, nil
}

// readOne reads a file: a table of measured runs, or a result of a load generator.
func (m *measuredRuns) readOne(file string, args []string) (*reference, error) {
	data, err := console.ReadFile("--reference", file)
	if err != nil {
		return nil, err
	}
	if validation.IsResult(file, data) {
		return m.readBench(file, data, args)
	}
	if len(args) > 0 || len(m.scenario.settings) > 0 {
		return nil, errors.New("--reference is a table whose rows define the scenarios " +
			"(want no scenario and no flags that change one)")
	}
	filter, err := validation.ParseFilter(m.only)
	if err != nil {
		return nil, err
	}
	ref, err := validation.Read(file, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	cases := validation.Choose(validation.Plan(ref), filter.Keeps)
	return &reference{ref, cases, filter.Keeps, len(m.only) > 0}, nil
}

// readBench reads a result of a load generator.
func (m *measuredRuns) readBench(file string, data []byte, args []string) (*reference, error) {
	if len(m.only) > 0 {
		return nil, errors.New("--only selects rows of a table, but the reference is a single result (want no --only)")
	}
	s, err := m.scenario.load(args)
	if err != nil {
		return nil, err
	}
	ref, cases, err := validation.ReadResult(file, data, s)
	if err != nil {
		return nil, err
	}
	return &reference{Reference: ref, cases: cases, selected: true}, nil
}
