package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments/grid"
	"clifftop/experiments/merge"
	"clifftop/experiments/planning"
)

// mergeGCPercent is the garbage collector's target during a merge. Most of a merge's memory stays in use, so frequent
// collections cost little time and halve the memory of the process.
const mergeGCPercent = 25

type mergeCommand struct {
	output  console.OutputFlags
	partial bool
}

func newMerge() *cobra.Command {
	var m mergeCommand
	c := &cobra.Command{
		Use:   "merge DIR...",
		Short: "Join the results of shards",
		Long: `Join the results that shards of sweep, compare or plan wrote into one or more directories. The
output equals that of one process that makes all runs, byte for byte, except report.html: shards keep only
summaries, so its distributions are drawn from percentiles, and it has no time series of single runs. Shards of
different scenarios or versions are rejected, and missing runs are listed.`,
		Example: `  clifftop sweep --over rate=1..20:2000 --shard 0/4 --out results # to 3/4
  clifftop merge results
  clifftop merge results --partial     # while shards are running
  clifftop merge here there --out both`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("merge: the directory is missing (want one or more directories that --out named)")
			}
			return nil
		},
		RunE: m.run,
	}
	m.output.RegisterFormat(c, "table", "json", "csv", "markdown")
	m.output.RegisterQuiet(c, "print no warnings")
	m.output.RegisterOut(c,
		"write the files of the command into `DIR` (default the first); an empty DIR writes nothing")
	c.Flags().BoolVar(&m.partial, "partial", false, "join the results that exist and mark the output as partial")
	return c
}

func (m *mergeCommand) run(c *cobra.Command, args []string) error {
	if !c.Flags().Changed("out") {
		m.output.Out = args[0]
	}
	stores, err := storesIn(args)
	if err != nil {
		return err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(mergeGCPercent))
	runs, err := grid.Join(stores)
	if err != nil {
		return err
	}
	if planning.IsPlan(runs.Manifest) {
		return m.mergePlan(c, runs)
	}
	return mergeRuns(c, runs, &m.output, m.partial)
}

// storesIn returns the directories of run results in the named directories.
func storesIn(dirs []string) ([]string, error) {
	var stores []string
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("merge: %s does not exist (want a directory that --out named)", dir)
		case err != nil:
			return nil, fmt.Errorf("merge: %s: %s", dir, console.Cause(err))
		case !info.IsDir():
			return nil, fmt.Errorf("merge: %s is a file (want a directory that --out named)", dir)
		}
		if sub, err := os.Stat(runsIn(dir)); err == nil && sub.IsDir() {
			dir = runsIn(dir)
		}
		stores = append(stores, dir)
	}
	return stores, nil
}

// mergeRuns joins the runs of a sweep or a comparison, and prints and writes the result.
func mergeRuns(c *cobra.Command, runs *grid.Joined, output *console.OutputFlags, partial bool) error {
	merged, err := merge.Results(c.Context(), runs, partial)
	if missing := (*merge.MissingError)(nil); errors.As(err, &missing) {
		return hintAtMissing(err)
	}
	if err != nil {
		return err
	}
	dir, err := output.Directory()
	if err != nil {
		return err
	}
	if merged.Verdict != nil {
		return showVerdict(c, merged.Verdict, dir, output)
	}
	shown := &shownCurve{merged.Curve, merged.Caption, machine(merged.Peak)}
	return console.Failed(shown.show(c, dir, output))
}

// mergePlan computes the plan from the runs that shards kept, and prints and writes it.
func (m *mergeCommand) mergePlan(c *cobra.Command, runs *grid.Joined) error {
	plan, err := planning.Merge(c.Context(), runs, planning.Options{})
	var missing *planning.MissingError
	switch {
	case errors.As(err, &missing) && !m.partial:
		return hintAtMissing(err)
	case err != nil && missing == nil:
		return err
	}
	return showPlan(c, plan, &m.output)
}

// hintAtMissing adds a hint to an error about missing runs.
func hintAtMissing(err error) error {
	return fmt.Errorf("%w\nhint: --resume makes the missing runs, and merge --partial joins those that exist", err)
}
