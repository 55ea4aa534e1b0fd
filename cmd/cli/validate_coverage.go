package cli

import (
	"bytes"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"clifftop/experiments/validation"
)

// runCoverage prints how often error bars hold measured runs of the reference and of further files.
func (v *validateCommand) runCoverage(c *cobra.Command, files []string) error {
	switch {
	case v.ablate:
		return errors.New("--coverage cannot be combined with --ablate (remove one of them)")
	case len(v.measured.only) > 0:
		return errors.New("--coverage judges all rows (want no --only)")
	case v.output.format == "scenario":
		return errors.New("--format scenario: coverage has no scenarios (want table, json, csv or markdown)")
	}
	var refs []*validation.Reference
	seen := map[string]bool{}
	for _, name := range append([]string{v.measured.file}, files...) {
		if seen[filepath.Clean(name)] {
			return errors.New(name + ": the file is named twice: its runs would count twice (remove one)")
		}
		seen[filepath.Clean(name)] = true
		data, err := readFile("--reference", name)
		if err != nil {
			return err
		}
		if validation.IsBench(data) {
			return errors.New(name + ": a single run has no coverage (want a CSV file of measured runs)")
		}
		ref, err := validation.Read(name, bytes.NewReader(data))
		if err != nil {
			return err
		}
		refs = append(refs, ref)
	}
	dir, err := v.output.directory()
	if err != nil {
		return err
	}
	bar := v.output.newProgress(c, "validating")
	r, err := validation.Cover(c.Context(), refs, v.options(bar))
	bar.done()
	if err != nil {
		return failed(err)
	}
	if v.write != "" {
		if err := writeFile("--write", v.write, r.WritePredictive); err != nil {
			return err
		}
	}
	if err := v.output.print(c, r); err != nil || dir == nil {
		return failed(err)
	}
	if err := dir.write("coverage.csv", r.WriteCSV); err != nil {
		return failed(err)
	}
	return failed(dir.writeJSON("coverage.json", r))
}
