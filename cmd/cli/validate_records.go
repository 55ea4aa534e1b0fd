package cli

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clifftop/experiments/conformance"
	"clifftop/experiments/iterations"
	"clifftop/report/page"
)

// replay replays records of real schedulers, and prints and writes how far the policies agree with them.
func (v *validateCommand) replay(c *cobra.Command, files []string) error {
	if err := onlySchedules(c); err != nil {
		return err
	}
	if v.output.format == "scenario" {
		return errors.New("--format scenario: records of schedulers have no scenarios (want table, json, csv or markdown)")
	}
	var records []*conformance.Record
	for _, name := range files {
		data, err := readFile("--schedules", name)
		if err != nil {
			return err
		}
		r, err := conformance.Read(name, bytes.NewReader(data))
		if err != nil {
			return err
		}
		records = append(records, r)
	}
	dir, err := v.output.directory()
	if err != nil {
		return err
	}
	bar := v.output.newProgress(c, "replaying")
	r, runErr := conformance.Run(c.Context(), records, conformance.Options{
		Check: v.output.check, Jobs: v.output.jobs, Progress: bar.counts()})
	bar.done()
	if r == nil {
		return failed(runErr)
	}
	printErr := v.output.print(c, r)
	if dir != nil {
		if err := dir.writeJSON("schedules.json", r); err != nil {
			return failed(err)
		}
		v.output.say(c, "wrote schedules.json into %s", dir.path)
	}
	switch {
	case runErr != nil:
		return runErr
	case printErr != nil:
		return failed(printErr)
	}
	return failed(r.Err())
}

// onlySchedules rejects flags that have no meaning together with --schedules.
func onlySchedules(c *cobra.Command) (err error) {
	meant := map[string]bool{"schedules": true, "format": true, "out": true, "quiet": true, "progress": true,
		"check": true, "jobs": true}
	c.Flags().Visit(func(f *pflag.Flag) {
		if !meant[f.Name] && err == nil {
			err = errors.New("--" + f.Name + ": it does not go with --schedules (remove one of them)")
		}
	})
	return err
}

// scoreIterations compares measured iterations with the model of step times, and prints and writes the errors.
// Arguments with the extension of a scenario are one, the others are further files.
func (v *validateCommand) scoreIterations(c *cobra.Command, args []string) error {
	switch {
	case v.measured.file != "":
		return errors.New("--iterations and --reference are given together (want one)")
	case v.ablate || v.coverage || v.write != "" || len(v.measured.only) > 0:
		return errors.New("--ablate, --coverage, --write and --only are for measured runs (want --reference, or none of " +
			"them with --iterations)")
	case v.output.format == "scenario":
		return errors.New("--format scenario: iterations have no scenarios (want table, json, csv or markdown)")
	}
	o := iterations.Options{Settings: v.measured.scenario.settings}
	names := slices.Clone(v.iterations)
	for _, name := range args {
		switch ext := filepath.Ext(name); {
		case ext != ".yaml" && ext != ".yml" && name != "-":
			names = append(names, name)
		case o.Scenario != "":
			return errors.New(name + ": a second scenario (want one for all files of iterations)")
		default:
			o.Scenario = name
		}
	}
	var files []*iterations.File
	for _, name := range names {
		list, err := iterations.Open(name)
		if err != nil {
			return err
		}
		files = append(files, list...)
	}
	dir, err := v.output.directory()
	if err != nil {
		return err
	}
	bar := v.output.newProgress(c, "validating")
	o.Progress = bar.counts()
	r, err := iterations.Score(c.Context(), files, o)
	bar.done()
	if err != nil {
		return err
	}
	printErr := v.output.print(c, r)
	if dir != nil {
		if err := writeIterations(c, dir, r); err != nil {
			return failed(err)
		}
		v.output.say(c, "wrote report.html, iterations.csv, iterations.json and residuals.png into %s", dir.path)
	}
	if printErr == nil && r.Scored() == 0 {
		return failed(errors.New("no file could be scored: the result lists the reason for each file"))
	}
	return failed(printErr)
}

// writeIterations writes the files of a comparison with iterations.
func writeIterations(c *cobra.Command, dir *directory, r *iterations.Report) error {
	if err := dir.write("iterations.csv", r.WriteCSV); err != nil {
		return err
	}
	if err := dir.writeJSON("iterations.json", r); err != nil {
		return err
	}
	if err := r.Picture().WriteFiles("residuals", dir.write); err != nil {
		return err
	}
	p, err := page.Validation(r.Clifftop, r.Picture(), r.WriteMarkdown)
	return writePage(c, dir, p, err)
}
