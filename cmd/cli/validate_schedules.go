package cli

import (
	"bytes"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"clifftop/experiments/conformance"
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
