package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"clifftop/experiments/grid"
	"clifftop/experiments/merge"
	"clifftop/experiments/planning"
)

func newMerge() *cobra.Command {
	var output outputFlags
	var partial bool
	c := &cobra.Command{
		Use:   "merge DIR...",
		Short: "Join the results of shards",
		Long: `Join the results that shards have written, in one directory or in several. The output is, byte for byte, that of
one process that makes all runs, but for report.html, whose distributions go through percentiles and which lacks
the course of single runs: shards keep summaries alone. Shards of other scenarios or versions are refused, and
missing runs are named.`,
		Example: `  clifftop sweep --over rate=1..20:2000 --shard 0/4 --out results # to 3/4
  clifftop merge results
  clifftop merge results --partial     # while shards are running
  clifftop merge here there --out both`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("merge: the directory is missing (want that of --out, or several)")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := output.validate(); err != nil {
				return err
			}
			if !c.Flags().Changed("out") {
				output.out = args[0]
			}
			return mergeRuns(c, args, &output, partial)
		},
	}
	output.register(c, "table", "json", "csv", "markdown")
	flags := c.Flags()
	flags.BoolVar(&partial, "partial", false, "take what is there, and mark it as partial")
	flags.BoolVarP(&output.quiet, "quiet", "q", false, "no warnings")
	flags.StringVarP(&output.out, "out", "o", "", "write what the command would have into `DIR` (default the first); empty writes nothing")
	return c
}

// storesOf are the directories of runs in those that are named.
func storesOf(dirs []string) ([]string, error) {
	var stores []string
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("merge: %s does not exist (want the directory of --out)", dir)
		case err != nil:
			return nil, fmt.Errorf("merge: %s: %s", dir, cause(err))
		case !info.IsDir():
			return nil, fmt.Errorf("merge: %s is a file (want the directory of --out)", dir)
		}
		if sub, err := os.Stat(runsIn(dir)); err == nil && sub.IsDir() {
			dir = runsIn(dir)
		}
		stores = append(stores, dir)
	}
	return stores, nil
}

func mergeRuns(c *cobra.Command, dirs []string, output *outputFlags, partial bool) error {
	stores, err := storesOf(dirs)
	if err != nil {
		return err
	}
	// What stays in memory is most of it: collecting early costs little, and halves what the process takes.
	const percent = 25
	defer debug.SetGCPercent(debug.SetGCPercent(percent))
	runs, err := grid.Join(stores)
	if err != nil {
		return err
	}
	if planning.IsPlan(runs.Manifest) {
		return mergePlan(c, runs, output, partial)
	}
	merged, err := merge.Results(c.Context(), runs, partial)
	var missing *merge.MissingError
	if errors.As(err, &missing) {
		return isMissing(err)
	}
	if err != nil {
		return err
	}
	return showMerged(c, merged, output)
}

// isMissing says what to do about missing runs.
func isMissing(err error) error {
	return fmt.Errorf("%w\nhint: --resume makes what is missing, and merge --partial takes what is there", err)
}

// mergePlan makes the plan again of the runs that tasks have kept.
func mergePlan(c *cobra.Command, runs *grid.Joined, output *outputFlags, partial bool) error {
	plan, err := planning.Merge(c.Context(), runs, planning.Options{})
	var missing *planning.MissingError
	switch {
	case errors.As(err, &missing) && !partial:
		return isMissing(err)
	case err != nil && missing == nil:
		return err
	}
	return showPlan(c, plan, output)
}

// joins shows what the results of a whole grid come to.
func joins(c *cobra.Command, output *outputFlags) func(*grid.Joined) error {
	return func(runs *grid.Joined) error {
		merged, err := merge.Results(c.Context(), runs, false)
		if err != nil {
			return failed(err)
		}
		return showMerged(c, merged, output)
	}
}

// showMerged prints and writes what one process would have.
func showMerged(c *cobra.Command, merged *merge.Merged, output *outputFlags) error {
	dir, err := output.directory()
	if err != nil {
		return err
	}
	if merged.Verdict != nil {
		return showVerdict(c, merged.Verdict, dir, output)
	}
	shown := &shownCurve{Curve: merged.Curve, caption: merged.Caption, machine: machine(merged.Peak)}
	printErr, err := shown.print(c, output), shown.write(c, dir, output)
	return failed(cmp.Or(printErr, err))
}
