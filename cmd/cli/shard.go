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

	"clifftop/experiments"
	"clifftop/experiments/grid"
	"clifftop/experiments/scenario/yamldoc"
)

// shardFlags divide a list of runs among tasks.
type shardFlags struct {
	text   string
	resume bool
	dry    bool
}

func (f *shardFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.text, "shard", "", "make the runs of shard `I/N` alone, I from 0; auto asks Slurm or Kubernetes, auto/N for I alone")
	flags.BoolVar(&f.resume, "resume", false, "keep the result of every run, and make those that are not there yet")
	flags.BoolVar(&f.dry, "dry-run", false, "make no runs but a few to time them; print how many there are, how long they take, and shards to suit")
}

// on reports whether the runs are to be kept one by one.
func (f *shardFlags) on() bool { return f.text != "" || f.resume }

// shard is the part asked for.
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

// runsIn is the directory of results of single runs.
func runsIn(dir string) string { return filepath.Join(dir, "runs") }

// divisible is work that tasks divide among them, part by part.
type divisible interface {
	Count() int
	What() string // the word for the parts
	List() string
	Try(ctx context.Context, i int) error
	Run(ctx context.Context, part experiments.Part) (experiments.Tally, error)
}

// make makes a task's part of a grid, and shows what all parts come to where the task has the whole.
func (f *shardFlags) make(c *cobra.Command, g divisible, output *outputFlags, jobs int, show func(*grid.Joined) error) error {
	if f.dry {
		return f.estimate(c, g)
	}
	if output.out == "" {
		return errors.New("--out: the value is missing (want the directory that shards share)")
	}
	whole, err := f.runPart(c, g, output, jobs)
	if err != nil || !whole {
		return err
	}
	runs, err := grid.Join([]string{runsIn(output.out)})
	if err != nil {
		return failed(err)
	}
	return show(runs)
}

// makeGrid is make for a grid of runs, whose faults have to show before tasks are submitted.
func (f *shardFlags) makeGrid(c *cobra.Command, g *experiments.Grid, output *outputFlags, jobs int) error {
	if f.dry {
		if _, err := g.Manifest(); err != nil {
			return err
		}
	}
	return f.make(c, g, output, jobs, joins(c, output))
}

// runPart makes a task's part of a grid. whole says that all results are there now, for the task to join.
func (f *shardFlags) runPart(c *cobra.Command, g divisible, output *outputFlags, jobs int) (whole bool, err error) {
	shard, err := f.shard()
	if err != nil {
		return false, err
	}
	store, err := grid.Open(runsIn(output.out))
	if err != nil {
		return false, fmt.Errorf("--out: %w", err)
	}
	part := experiments.Part{Store: store, Shard: shard, Resume: f.resume, Jobs: jobs, Check: output.check}
	bar := newProgress(c.ErrOrStderr(), output, "simulating")
	part.Progress = bar.counts()
	tally, err := g.Run(c.Context(), part)
	bar.done()
	if yamldoc.BadInput(err) {
		return false, err
	}
	if !output.quiet {
		text := fmt.Sprintf("clifftop: shard %s: %s", shard, tally)
		switch {
		case !tally.Complete || shard.Whole():
		case tally.Candidates > 0:
			text += ", and those of the best, since all are searched now"
		default:
			text += ", and those that look for the capacity, since the others are all there now"
		}
		if !shard.Whole() && err == nil {
			text += fmt.Sprintf("; clifftop merge %s joins the shards", output.out)
		}
		fmt.Fprintln(c.ErrOrStderr(), text)
	}
	return shard.Whole(), failed(err)
}

// estimate times a few of a grid's runs and tells how to divide them.
func (f *shardFlags) estimate(c *cobra.Command, g divisible) error {
	shard, err := f.shard()
	if err != nil {
		return err
	}
	n := g.Count()
	if n == 0 {
		return failed(printOnce(c.OutOrStdout(), func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "0 %s: there is nothing to divide\n", g.What())
			return err
		}))
	}
	seconds, timed, err := timeRuns(c.Context(), g)
	if err != nil {
		return failed(err)
	}
	const least = 30. // seconds of a task: starting one costs a scheduler about a second
	return failed(printOnce(c.OutOrStdout(), func(w io.Writer) error {
		fmt.Fprintf(w, "%d %s: %s\n", n, g.What(), g.List())
		fmt.Fprintf(w, "about %.2g s each (%d of them timed), %s on one core\n", seconds, timed, inWords(seconds*float64(n)))
		if shard.Count > 0 {
			mine := (n + shard.Count - 1) / shard.Count
			fmt.Fprintf(w, "%d shards: up to %d %s, about %s each\n", shard.Count, mine, g.What(), inWords(seconds*float64(mine)))
		}
		most := max(1, int(seconds*float64(n)/least))
		fmt.Fprintf(w, "up to %d shards take %.0f s or more each, so that starting tasks costs little\n", min(most, n), least)
		return nil
	}))
}

// timeRuns takes the mean time of a few runs, first, middle and last among them.
func timeRuns(ctx context.Context, g divisible) (seconds float64, timed int, err error) {
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

// inWords is a length of time to two digits.
func inWords(seconds float64) string {
	switch {
	case seconds >= 2*3600:
		return fmt.Sprintf("%.2g hours", seconds/3600)
	case seconds >= 120:
		return fmt.Sprintf("%.2g minutes", seconds/60)
	}
	return fmt.Sprintf("%.2g s", seconds)
}
