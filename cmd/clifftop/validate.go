package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"clifftop/experiments/validation"
)

// referenceVariable names the file of measured runs where no flag does.
const referenceVariable = "CLIFFTOP_REFERENCE"

func newValidate() *cobra.Command {
	var output outputFlags
	var reference string
	var only []string
	var options validation.Options
	c := &cobra.Command{
		Use:   "validate --reference FILE",
		Short: "Hold simulated runs against measured ones",
		Long: `Simulate measured runs and compare: time to first token, time per output token, end-to-end latency
and throughput, each with its error, and the errors summed up by model, GPU and load.

FILE is a CSV file with a row for each measured run, or for each stage of one. Columns: run_id,
engine, model, gpu, load_mode (open, closed or trace); the load (rate_rps and duration_s, or
concurrency and n_requests), the lengths (input_tokens_mean or input_token_spec, and the same for
output), and what was measured, such as ttft_mean_ms, tpot_p99_ms or output_tok_per_s. Rows that no
scenario expresses, or that contradict themselves, are listed with the reason.`,
		Example: `  clifftop validate --reference measured.csv
  clifftop validate --reference measured.csv --only gpu=H100 --only load=open --format csv
  clifftop validate --reference measured.csv --out results`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			if options.Jobs < 0 {
				return fmt.Errorf("--jobs: %d is not allowed (want 1 or more, or 0 for one for each processor)", options.Jobs)
			}
			if reference == "" {
				reference = os.Getenv(referenceVariable)
			}
			if reference == "" {
				return fmt.Errorf("--reference is missing (want a CSV file of measured runs; %s may name it too)\nhint: clifftop validate --help tells its columns", referenceVariable)
			}
			filter, err := validation.ParseFilter(only)
			if err != nil {
				return err
			}
			options.Check = output.check
			return validate(c, reference, filter, &output, options)
		},
	}
	output.register(c, "table", "json", "csv", "markdown")
	output.registerRun(c)
	flags := c.Flags()
	flags.StringVar(&reference, "reference", "", "the `FILE` of measured runs")
	flags.StringArrayVar(&only, "only", nil, "only rows where `KEY=VALUE`, or whose run_id has a part or pattern; may be repeated")
	flags.StringVarP(&output.out, "out", "o", "", "write validate.csv and validate.json into `DIR`")
	flags.IntVarP(&options.Jobs, "jobs", "j", 0, "`N` runs at a time (default one for each processor); changes no result")
	return c
}

// validate simulates the chosen rows, and prints and writes the comparison.
func validate(c *cobra.Command, reference string, filter *validation.Filter, output *outputFlags, options validation.Options) error {
	ref, err := validation.Open(reference)
	if err != nil {
		return err
	}
	cases := validation.Choose(validation.Plan(ref), filter)
	if len(cases) == 0 {
		return fmt.Errorf("--only: no row of %s is left", reference)
	}
	var dir *directory
	if output.out != "" {
		if dir, err = openDirectory(output.out); err != nil {
			return err
		}
	}
	bar := newProgress(c.ErrOrStderr(), output, "validating")
	if bar != nil {
		options.Progress = func(done, total int) { bar.set(float64(done) / float64(total)) }
	}
	result, err := validation.Run(c.Context(), ref, cases, filter.Keeps, options)
	bar.done()
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		return failed(err)
	}
	printErr := printOnce(c.OutOrStdout(), func(w io.Writer) error { return printValidation(w, result, output.format) })
	if dir != nil {
		if err := writeValidation(dir, result); err != nil {
			return failed(err)
		}
		if !output.quiet {
			fmt.Fprintf(c.ErrOrStderr(), "clifftop: wrote validate.csv and validate.json into %s\n", dir.path)
		}
	}
	return failed(printErr)
}

func printValidation(w io.Writer, r *validation.Report, format string) error {
	switch format {
	case "json":
		return printJSON(w, r)
	case "csv":
		return r.WriteCSV(w)
	case "markdown":
		return r.WriteMarkdown(w)
	}
	return r.WriteTable(w)
}

func writeValidation(dir *directory, r *validation.Report) error {
	if err := dir.write("validate.csv", r.WriteCSV); err != nil {
		return err
	}
	return dir.writeJSON("validate.json", r)
}
