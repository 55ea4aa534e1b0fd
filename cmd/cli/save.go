package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"clifftop/cmd/cli/console"
	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/report/export"
)

// saver writes one kind of file for --save.
type saver struct {
	name string
	// begin prepares a run: it sets run options, opens files that the run fills, and registers files for its end.
	begin func(s *saving, setup *scenario.Setup, run *experiments.RunOptions) error
}

// savers lists what --save can write. To add a kind, add an entry.
func savers() []saver {
	return []saver{
		{"requests", saveRequests},
		{"timeseries", saveTimeSeries},
		{"replicas", saveReplicas},
		{"iterations", saveIterations},
		{"trace", saveTrace},
		{"metrics", saveMetrics},
		{"bench", saveBench},
	}
}

// saveRequests writes a row for each request.
func saveRequests(s *saving, _ *scenario.Setup, run *experiments.RunOptions) error {
	return s.stream("requests.csv", func(w io.Writer) (end func() error) {
		run.Requests = w
		return nil // the run flushes it
	})
}

// saveTimeSeries writes the time series of the whole system.
func saveTimeSeries(s *saving, _ *scenario.Setup, _ *experiments.RunOptions) error {
	s.atEnd("timeseries.csv", func(w io.Writer, res *experiments.Result) error {
		return report.WriteSeries(w, res.Series)
	})
	return nil
}

// saveReplicas writes the time series of each replica.
func saveReplicas(s *saving, _ *scenario.Setup, _ *experiments.RunOptions) error {
	s.atEnd("replicas.csv", func(w io.Writer, res *experiments.Result) error {
		return report.WriteReplicaSeries(w, res.ReplicaSeries())
	})
	return nil
}

// saveIterations writes a row for each iteration.
func saveIterations(s *saving, _ *scenario.Setup, run *experiments.RunOptions) error {
	return s.stream("iterations.csv", func(w io.Writer) (end func() error) {
		table := export.NewIterations(w)
		run.Observers = append(run.Observers, table)
		return table.Flush
	})
}

// saveTrace writes a timeline in the Trace Event format.
func saveTrace(s *saving, setup *scenario.Setup, run *experiments.RunOptions) error {
	return s.stream("trace.json", func(w io.Writer) (end func() error) {
		trace := experiments.NewTrace(setup, w)
		run.Observers = append(run.Observers, trace)
		return trace.Close
	})
}

// saveMetrics writes Prometheus metrics in two formats, and a dashboard for them.
func saveMetrics(s *saving, setup *scenario.Setup, run *experiments.RunOptions) error {
	m, title := experiments.NewMetrics(setup), experiments.DashboardTitle(setup)
	run.Observers = append(run.Observers, m)
	s.atEnd("metrics.prom", func(w io.Writer, _ *experiments.Result) error { return m.WriteText(w) })
	s.atEnd("metrics.openmetrics", func(w io.Writer, _ *experiments.Result) error { return m.WriteOpenMetrics(w) })
	s.atEnd("dashboard.json", func(w io.Writer, _ *experiments.Result) error { return m.WriteDashboard(w, title) })
	return nil
}

// saveBench writes the file that vllm bench serve --save-detailed writes.
func saveBench(s *saving, _ *scenario.Setup, run *experiments.RunOptions) error {
	d := export.NewDetailed(0)
	run.Observers = append(run.Observers, d)
	s.atEnd("bench.json", func(w io.Writer, res *experiments.Result) error {
		if d.Cut() > 0 {
			s.warnings = append(s.warnings, fmt.Sprintf(
				"bench.json has no inter-token latencies for %d requests: it keeps at most %d",
				d.Cut(), export.DetailedGaps))
		}
		return d.Write(w, res.VLLMBench())
	})
	return nil
}

func saverNames() []string {
	var names []string
	for _, k := range savers() {
		names = append(names, k.name)
	}
	return names
}

func registerSave(c *cobra.Command, names *[]string, out *string) {
	known := saverNames()
	want := strings.Join(known, ", ")
	c.Flags().StringSliceVar(names, "save", nil, "write more files into --out; `KINDS` are "+want)
	console.AddCheck(c, func() error {
		for _, name := range *names {
			if !slices.Contains(known, name) {
				return console.UnknownName("--save", name, known)
			}
		}
		switch {
		case c.Flags().Changed("save") && len(*names) == 0:
			return fmt.Errorf("--save: the value is empty (want %s)", want)
		case len(*names) > 0 && *out == "":
			return errors.New("--save needs --out DIR")
		}
		return nil
	})
}

// saving holds the files of --save during a run.
type saving struct {
	dir      *console.Directory
	streams  []stream
	ends     []func(res *experiments.Result) error
	warnings []string // about the files, complete after commit
}

// stream is a file that is filled during the run.
type stream struct {
	*console.File
	end func() error // writes the rest at the end; may be nil
}

// newSaving opens the files that are filled during the run and sets the run options that fill them.
func newSaving(dir *console.Directory, setup *scenario.Setup, names []string, run *experiments.RunOptions) (*saving,
	error) {
	s := &saving{dir: dir}
	for _, name := range names {
		for _, k := range savers() {
			if k.name != name {
				continue
			}
			if err := k.begin(s, setup, run); err != nil {
				s.abandon()
				return nil, err
			}
		}
	}
	return s, nil
}

// stream opens a file that is filled during the run.
func (s *saving) stream(name string, begin func(w io.Writer) (end func() error)) error {
	f, err := s.dir.Create(name)
	if err == nil {
		s.streams = append(s.streams, stream{f, begin(f)})
	}
	return err
}

// atEnd registers a file that is written from the result.
func (s *saving) atEnd(name string, write func(w io.Writer, res *experiments.Result) error) {
	s.ends = append(s.ends, func(res *experiments.Result) error {
		return s.dir.Write(name, func(w io.Writer) error { return write(w, res) })
	})
}

// abandon removes files that were not committed.
func (s *saving) abandon() {
	for _, f := range s.streams {
		f.Abandon()
	}
}

// commit completes the files that the run filled, and writes those made from the result.
func (s *saving) commit(res *experiments.Result) error {
	for _, f := range s.streams {
		if f.end != nil {
			if err := f.end(); err != nil {
				return err
			}
		}
		if err := f.Commit(); err != nil {
			return err
		}
	}
	for _, end := range s.ends {
		if err := end(res); err != nil {
			return err
		}
	}
	return nil
}
