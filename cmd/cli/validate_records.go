package cli

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/conformance"
	"clifftop/experiments/iterations"
	"clifftop/report/page"
)

// replay replays records of real schedulers, and prints and writes how far the policies agree with them.
func (v *validateCommand) replay(c *cobra.Command, files []string) error {
	if err := onlySchedules(c); err != nil {
		return err
	}
	if v.output.Format == "scenario" {
		return errors.New("--format scenario: records of schedulers have no scenarios (want table, json, csv or " +
			"markdown)")
	}
	var records []*conformance.Record
	for _, name := range files {
		data, err := console.ReadFile("--schedules", name)
		if err != nil {
			return err
		}
		r, err := conformance.Read(name, bytes.NewReader(data))
		if err != nil {
			return err
		}
		records = append(records, r)
	}
	dir, err := v.output.Directory()
	if err != nil {
		return err
	}
	bar := v.output.NewProgress(c, "replaying")
	r, runErr := conformance.Run(c.Context(), records, conformance.Options{
		Check: v.output.Check, Jobs: v.output.Jobs, Progress: bar.Counts()})
	bar.Done()
	if r == nil {
		return console.Failed(runErr)
	}
	printErr := v.output.Print(c, r)
	if dir != nil {
		if err := dir.WriteJSON("schedules.json", r); err != nil {
			return console.Failed(err)
		}
		v.output.Say(c, "wrote schedules.json into %s", dir.Path)
	}
	switch {
	case runErr != nil:
		return runErr
	case printErr != nil:
		return console.Failed(printErr)
	}
	return console.Failed(r.Err())
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
	case len(v.measured.files) > 0:
		return errors.New("--iterations and --reference are given together (want one)")
	case v.ablate || v.coverage || v.write != "" || len(v.measured.only) > 0:
		return errors.New("--ablate, --coverage, --write and --only are for measured runs (want --reference, or none " +
			"of them with --iterations)")
	case v.output.Format == "scenario":
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
	dir, err := v.output.Directory()
	if err != nil {
		return err
	}
	bar := v.output.NewProgress(c, "validating")
	o.Progress = bar.Counts()
	r, err := iterations.Score(c.Context(), files, o)
	bar.Done()
	if err != nil {
		return err
	}
	printErr := v.output.Print(c, r)
	if dir != nil {
		if err := writeIterations(c, dir, r); err != nil {
			return console.Failed(err)
		}
		v.output.Say(c, "wrote report.html, iterations.csv, iterations.json and residuals.png into %s", dir.Path)
	}
	if printErr == nil && r.Scored() == 0 {
		return console.Failed(errors.New("no file could be scored: the result lists the reason for each file"))
	}
	return console.Failed(printErr)
}

// writeIterations writes the files of a comparison with iterations.
func writeIterations(c *cobra.Command, dir *console.Directory, r *iterations.Report) error {
	if err := dir.Write("iterations.csv", r.WriteCSV); err != nil {
		return err
	}
	if err := dir.WriteJSON("iterations.json", r); err != nil {
		return err
	}
	if err := r.Picture().WriteFiles("residuals", dir.Write); err != nil {
		return err
	}
	p, err := page.Validation(r.Clifftop, r.Picture(), r.WriteMarkdown)
	return writePage(c, dir, p, err)
}
