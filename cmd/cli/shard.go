package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments"
	"clifftop/experiments/grid"
	"clifftop/experiments/scenario/yamldoc"
)

// minShardSeconds is the shortest time of a shard that a dry run suggests. Starting a task costs a scheduler about a
// second.
const minShardSeconds = 30.

// shardFlags are the flags that divide the runs of a command among tasks.
type shardFlags struct {
	text   string
	resume bool
	dryRun bool
}

func (f *shardFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.text, "shard", "", "make only the runs of shard `I/N`, I from 0; auto takes I and N from "+
		"Slurm or Kubernetes, auto/N only I")
	flags.BoolVar(&f.resume, "resume", false,
		"keep the result of every run, and make only runs that have no result yet")
	flags.BoolVar(&f.dryRun, "dry-run", false, "time a few runs, and print the number of runs, their time, and "+
		"suitable shards")
}

func (f *shardFlags) given() bool { return f.text != "" || f.resume || f.dryRun }

func (f *shardFlags) shard() (grid.Shard, error) {
	if f.text == "" {
		return grid.Shard{}, nil
	}
	s, err := grid.Parse(f.text, os.LookupEnv)
	if err != nil {
		return s, fmt.Errorf("--shard: %w", err)
	}
	return s, nil
}

// runsIn returns the directory of the results of single runs.
func runsIn(dir string) string { return filepath.Join(dir, "runs") }

// divisible is work that consists of parts which several tasks share.
type divisible interface {
	Count() int
	What() string // plural noun for the parts
	List() string
	Try(ctx context.Context, i int) error
	Run(ctx context.Context, part experiments.Part) (experiments.Tally, error)
}

// runGrid runs a shard of a sweep or a comparison, or a dry run. A task with the whole grid joins the results.
func (f *shardFlags) runGrid(c *cobra.Command, g *experiments.Grid, output *console.SimulationFlags) error {
	if f.dryRun { // report faults before tasks are submitted
		if _, err := g.Manifest(); err != nil {
			return err
		}
	}
	return f.run(c, g, output, func(runs *grid.Joined) error {
		return console.Failed(mergeRuns(c, runs, &output.OutputFlags, false))
	})
}

// run runs a shard, or a dry run. A task with the whole work then calls show with all results.
func (f *shardFlags) run(c *cobra.Command, g divisible, output *console.SimulationFlags,
	show func(*grid.Joined) error) error {
	if f.dryRun {
		return f.estimate(c, g)
	}
	if output.Out == "" {
		return errors.New("--out: the value is missing (want the directory that all shards share)")
	}
	whole, err := f.runPart(c, g, output)
	if err != nil || !whole {
		return err
	}
	runs, err := grid.Join([]string{runsIn(output.Out)})
	if err != nil {
		return console.Failed(err)
	}
	return show(runs)
}

// runPart runs this task's part. The result whole reports that the part is the whole work.
func (f *shardFlags) runPart(c *cobra.Command, g divisible, output *console.SimulationFlags) (whole bool, err error) {
	shard, err := f.shard()
	if err != nil {
		return false, err
	}
	store, err := grid.Open(runsIn(output.Out))
	if err != nil {
		return false, fmt.Errorf("--out: %w", err)
	}
	part := experiments.Part{Store: store, Shard: shard, Resume: f.resume, Jobs: output.Jobs, Check: output.Check}
	bar := output.NewProgress(c, "simulating")
	part.Progress = bar.Counts()
	tally, err := g.Run(c.Context(), part)
	tally.Damaged = store.Replaced()
	bar.Done()
	if yamldoc.BadInput(err) {
		return false, err
	}
	text := describeShard(shard, tally)
	if !shard.Whole() && err == nil {
		text += fmt.Sprintf("; clifftop merge %s joins the shards", output.Out)
	}
	output.Say(c, "%s", text)
	return shard.Whole(), console.Failed(err)
}

// describeShard describes the runs that a task made.
func describeShard(shard grid.Shard, tally experiments.Tally) string {
	text := fmt.Sprintf("shard %s: %s", shard, tally)
	switch {
	case !tally.Complete || shard.Whole():
	case tally.Candidates > 0:
		text += ", and the runs of the best candidates, because all are searched now"
	default:
		text += ", and the search for the capacity, because all other runs are done"
	}
	return text
}

// estimate times a few parts and prints how to divide the work.
func (f *shardFlags) estimate(c *cobra.Command, g divisible) error {
	shard, err := f.shard()
	if err != nil {
		return err
	}
	n := g.Count()
	if n == 0 {
		return console.Failed(console.PrintOnce(c.OutOrStdout(), func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "0 %s: nothing to divide\n", g.What())
			return err
		}))
	}
	seconds, timed, err := timeParts(c.Context(), g)
	if err != nil {
		return console.Failed(err)
	}
	return console.Failed(console.PrintOnce(c.OutOrStdout(), func(w io.Writer) error {
		fmt.Fprintf(w, "%d %s: %s\n", n, g.What(), g.List())
		fmt.Fprintf(w, "about %.2g s each (%d of them timed), %s on one core\n", seconds, timed,
			inWords(seconds*float64(n)))
		if shard.Count > 0 {
			mine := (n + shard.Count - 1) / shard.Count
			took := inWords(seconds * float64(mine))
			fmt.Fprintf(w, "%d shards: up to %d %s, about %s each\n", shard.Count, mine, g.What(), took)
		}
		most := min(max(1, int(seconds*float64(n)/minShardSeconds)), n)
		fmt.Fprintf(w, "with up to %d shards each takes %.0f s or more, so that starting tasks costs little\n",
			most, minShardSeconds)
		return nil
	}))
}

// timeParts returns the mean time of a few parts, which include the first, the middle and the last.
func timeParts(ctx context.Context, g divisible) (seconds float64, timed int, err error) {
	n := g.Count()
	last := -1
	for _, i := range []int{0, n / 4, n / 2, 3 * n / 4, n - 1} {
		if i == last {
			continue
		}
		last = i
		start := time.Now()
		if err := g.Try(ctx, i); err != nil {
			return 0, 0, err
		}
		seconds += time.Since(start).Seconds()
		timed++
	}
	return seconds / float64(timed), timed, nil
}

// inWords formats a time with two digits.
func inWords(seconds float64) string {
	switch {
	case seconds >= 2*3600:
		return fmt.Sprintf("%.2g hours", seconds/3600)
	case seconds >= 120:
		return fmt.Sprintf("%.2g minutes", seconds/60)
	}
	return fmt.Sprintf("%.2g s", seconds)
}
