package cli

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/validation"
)

// runCoverage prints how often error bars hold measured runs of the reference and of further files.
func (v *validateCommand) runCoverage(c *cobra.Command, files []string) error {
	switch {
	case v.ablate:
		return errors.New("--coverage cannot be combined with --ablate (remove one of them)")
	case len(v.measured.only) > 0:
		return errors.New("--coverage judges all rows (want no --only)")
	case v.output.Format == "scenario":
		return errors.New("--format scenario: coverage has no scenarios (want table, json, csv or markdown)")
	}
	var refs []*validation.Reference
	seen := map[string]bool{}
	for _, name := range slices.Concat(v.measured.files, files) {
		if seen[filepath.Clean(name)] {
			return errors.New(name + ": the file is named twice: its runs would count twice (remove one)")
		}
		seen[filepath.Clean(name)] = true
		data, err := console.ReadFile("--reference", name)
		if err != nil {
			return err
		}
		if validation.IsResult(name, data) {
			return errors.New(name + ": a single run has no coverage (want a CSV file of measured runs)")
		}
		ref, err := validation.Read(name, bytes.NewReader(data))
		if err != nil {
			return err
		}
		refs = append(refs, ref)
	}
	dir, err := v.output.Directory()
	if err != nil {
		return err
	}
	bar := v.output.NewProgress(c, "validating")
	r, err := validation.Cover(c.Context(), refs, v.options(bar))
	bar.Done()
	if err != nil {
		return console.Failed(err)
	}
	if v.write != "" {
		if err := writeFile("--write", v.write, r.WritePredictive); err != nil {
			return err
		}
	}
	if err := v.output.Print(c, r); err != nil || dir == nil {
		return console.Failed(err)
	}
	if err := dir.Write("coverage.csv", r.WriteCSV); err != nil {
		return console.Failed(err)
	}
	return console.Failed(dir.WriteJSON("coverage.json", r))
}
