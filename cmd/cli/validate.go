package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"clifftop/experiments/validation"
	"clifftop/report/page"
)

// referenceVariable names the folder of reference data, or the file of measured runs, where no flag does.
const referenceVariable = "CLIFFTOP_REFERENCE"

// defaultReference returns the file of measured runs that the environment names, or "".
func defaultReference() string {
	path := os.Getenv(referenceVariable)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, "measured.csv")
	}
	return path
}

// validateFlags are those of validate.
type validateFlags struct {
	scenario  scenarioFlags
	output    outputFlags
	reference string
	only      []string
	ablate    bool
	options   validation.Options
}

func newValidate() *cobra.Command {
	var f validateFlags
	c := &cobra.Command{
		Use:   "validate [SCENARIO] --reference FILE",
		Short: "Hold simulated runs against measured ones",
		Long: `Simulate measured runs and compare: time to first token, time per output token, end-to-end latency
and throughput, each with its error, and the errors summed up by model, GPU and load.

FILE is a CSV file with a row for each measured run, or for each stage of one. Columns: run_id,
engine, model, gpu, load_mode (open, closed or trace); the load (rate_rps and duration_s, or
concurrency and n_requests), the lengths (input_tokens_mean or input_token_spec, and the same for
output), and what was measured, such as ttft_mean_ms, tpot_p99_ms or output_tok_per_s. Rows that no
scenario expresses, or that contradict themselves, are listed with the reason.

Or FILE is what vllm bench serve --save-result wrote. The scenario, or flags, then say what that
does not know, such as the GPU; model, arrivals and lengths are the result's unless they are given.`,
		Example: `  clifftop validate --reference measured.csv
  clifftop validate --reference measured.csv --only gpu=H100 --only load=open --format csv
  clifftop validate --reference measured.csv --out results
  clifftop validate --reference measured.csv --only s2r-exp18-s0 --format scenario
  clifftop validate scenario.yaml --reference vllm-result.json`,
		Args: atMostOne("scenario"),
		RunE: f.run,
	}
	f.scenario.register(c)
	f.output.register(c, "table", "json", "csv", "markdown", "scenario")
	f.output.registerRun(c)
	flags := c.Flags()
	flags.StringVar(&f.reference, "reference", "", "the `FILE` of measured runs")
	flags.StringArrayVar(&f.only, "only", nil, "only rows where `KEY=VALUE`, or whose run_id has a part or pattern; may be repeated")
	flags.BoolVar(&f.ablate, "ablate", false, "take the parts of the model away one by one, and compare the errors over open-loop rows, or those of --only")
	flags.StringVarP(&f.output.out, "out", "o", "", "write validate.csv, validate.json, accuracy.yaml, which is what run and sweep quote, a page, report.html, and a picture, parity.png and parity.svg, into `DIR`")
	f.output.registerJobs(c, &f.options.Jobs)
	return c
}

func (f *validateFlags) run(c *cobra.Command, args []string) error {
	if err := f.output.validate(); err != nil {
		return err
	}
	if f.reference == "" {
		f.reference = defaultReference()
	}
	if f.reference == "" {
		return fmt.Errorf("--reference is missing (want a CSV file of measured runs; %s may name it, or the folder of measured.csv)\nhint: clifftop validate --help tells its columns", referenceVariable)
	}
	f.options.Check = f.output.check
	j, err := newJob(f.reference, f.only, &f.scenario, args)
	if err != nil {
		return err
	}
	switch {
	case f.output.format == "scenario":
		return failed(printOnce(c.OutOrStdout(), func(w io.Writer) error { return validation.WriteScenarios(w, j.cases) }))
	case f.ablate:
		return j.ablate(c, &f.output, f.options)
	}
	return j.run(c, &f.output, f.options)
}

// job is what is validated.
type job struct {
	ref    *validation.Reference
	cases  []*validation.Case
	keep   func(*validation.Row) bool
	chosen bool // not all rows
}

// newJob reads the reference, of either kind.
func newJob(reference string, only []string, scenario *scenarioFlags, args []string) (*job, error) {
	data, err := readFile("--reference", reference)
	if err != nil {
		return nil, err
	}
	if validation.IsBench(data) {
		if len(only) > 0 {
			return nil, errors.New("--only chooses rows of a table, and the reference is a single result")
		}
		s, err := scenario.load(args)
		if err != nil {
			return nil, err
		}
		ref, c, err := validation.ReadBench(reference, data, s)
		if err != nil {
			return nil, err
		}
		return &job{ref: ref, cases: []*validation.Case{c}, chosen: true}, nil
	}
	if len(args) > 0 || len(scenario.settings) > 0 {
		return nil, errors.New("a scenario goes with a result of vllm bench serve, and so do flags that change one; the rows of a table say themselves what ran")
	}
	filter, err := validation.ParseFilter(only)
	if err != nil {
		return nil, err
	}
	ref, err := validation.Read(reference, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	cases := validation.Choose(validation.Plan(ref), filter.Keeps)
	if len(cases) == 0 {
		return nil, fmt.Errorf("--only: no row of %s is left", reference)
	}
	return &job{ref, cases, filter.Keeps, len(only) > 0}, nil
}

// ablate prints what the parts of the model are worth.
func (j *job) ablate(c *cobra.Command, output *outputFlags, options validation.Options) error {
	dir, err := output.directory()
	if err != nil {
		return err
	}
	bar := newProgress(c.ErrOrStderr(), output, "ablating")
	options.Progress = bar.counts()
	cases, keep := j.cases, j.keep
	if !j.chosen {
		cases, keep = validation.Choose(cases, validation.OpenLoop), validation.OpenLoop
	}
	a, err := validation.Ablate(c.Context(), j.ref, cases, keep, options)
	bar.done()
	if err != nil {
		return failed(err)
	}
	err = printOnce(c.OutOrStdout(), func(w io.Writer) error { return printResult(w, a, output.format) })
	if dir != nil && err == nil {
		err = dir.write("ablation.csv", a.WriteCSV)
	}
	return failed(err)
}

// run simulates, and prints and writes the comparison.
func (j *job) run(c *cobra.Command, output *outputFlags, options validation.Options) error {
	dir, err := output.directory()
	if err != nil {
		return err
	}
	bar := newProgress(c.ErrOrStderr(), output, "validating")
	options.Progress = bar.counts()
	result, runErr := validation.Run(c.Context(), j.ref, j.cases, j.keep, options)
	bar.done()
	if result == nil {
		return failed(runErr)
	}
	printErr := printOnce(c.OutOrStdout(), func(w io.Writer) error { return printResult(w, result, output.format) })
	if dir != nil {
		err := writeValidation(dir, result)
		if err == nil {
			p, pageErr := page.Validation(result.Clifftop, result.Picture(), result.WriteMarkdown)
			if p != nil {
				p.Partial = result.Missing()
			}
			err = writePage(c, dir, p, pageErr)
		}
		if err != nil {
			return failed(err)
		}
		if !output.quiet {
			fmt.Fprintf(c.ErrOrStderr(), "clifftop: wrote report.html, validate.csv, validate.json and parity.png into %s\n", dir.path)
		}
	}
	if runErr != nil {
		return runErr
	}
	if printErr == nil && !slices.ContainsFunc(result.Rows, func(r validation.Result) bool { return r.Status == validation.Scored }) {
		return failed(errors.New("no row could be scored: the reasons stand with the rows"))
	}
	return failed(printErr)
}

func writeValidation(dir *directory, r *validation.Report) error {
	if err := dir.write("validate.csv", r.WriteCSV); err != nil {
		return err
	}
	if err := dir.writeJSON("validate.json", r); err != nil {
		return err
	}
	if !r.Partial { // runs would quote it
		if err := dir.write("accuracy.yaml", r.WriteRecords); err != nil {
			return err
		}
	}
	return r.Picture().WriteFiles("parity", dir.write)
}
