package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/report/export"
)

// saver writes something of a run beside its summary, by a name of --save.
type saver struct {
	name string
	// begin makes the run tell what is wanted, and sees to what is left to do at its end.
	begin func(s *saving, setup *scenario.Setup, run *experiments.RunOptions) error
}

// savers lists what --save can write: add an entry to add one.
func savers() []saver {
	return []saver{
		{"requests", func(s *saving, _ *scenario.Setup, run *experiments.RunOptions) error {
			return s.stream("requests.csv", func(w io.Writer) (end func() error) {
				run.Requests = w
				return nil // the run flushes it
			})
		}},
		{"timeseries", func(s *saving, _ *scenario.Setup, _ *experiments.RunOptions) error {
			s.later("timeseries.csv", func(w io.Writer, res *experiments.Result) error { return report.WriteSeries(w, res.Series) })
			return nil
		}},
		{"replicas", func(s *saving, _ *scenario.Setup, _ *experiments.RunOptions) error {
			s.later("replicas.csv", func(w io.Writer, res *experiments.Result) error {
				return report.WriteReplicaSeries(w, res.ReplicaSeries())
			})
			return nil
		}},
		{"iterations", func(s *saving, _ *scenario.Setup, run *experiments.RunOptions) error {
			return s.stream("iterations.csv", func(w io.Writer) (end func() error) {
				table := export.NewIterations(w)
				run.Observers = append(run.Observers, table)
				return table.Flush
			})
		}},
		{"trace", func(s *saving, setup *scenario.Setup, run *experiments.RunOptions) error {
			return s.stream("trace.json", func(w io.Writer) (end func() error) {
				trace := experiments.NewTrace(setup, w)
				run.Observers = append(run.Observers, trace)
				return trace.Close
			})
		}},
		{"metrics", saveMetrics},
		{"bench", saveBench},
	}
}

// saveMetrics writes the metrics of a run in two formats, and a dashboard that shows them.
func saveMetrics(s *saving, setup *scenario.Setup, run *experiments.RunOptions) error {
	m, title := experiments.NewMetrics(setup), experiments.DashboardTitle(setup)
	run.Observers = append(run.Observers, m)
	s.later("metrics.prom", func(w io.Writer, _ *experiments.Result) error { return m.WriteText(w) })
	s.later("metrics.openmetrics", func(w io.Writer, _ *experiments.Result) error { return m.WriteOpenMetrics(w) })
	s.later("dashboard.json", func(w io.Writer, _ *experiments.Result) error { return m.WriteDashboard(w, title) })
	return nil
}

// saveBench writes what vllm bench serve --save-detailed would.
func saveBench(s *saving, _ *scenario.Setup, run *experiments.RunOptions) error {
	d := export.NewDetailed(0)
	run.Observers = append(run.Observers, d)
	s.later("bench.json", func(w io.Writer, res *experiments.Result) error {
		if d.Cut() > 0 {
			s.warnings = append(s.warnings, fmt.Sprintf("bench.json has no gaps between tokens for %d requests: it keeps %d at most", d.Cut(), export.DetailedGaps))
		}
		return d.Write(w, res.VLLMBench())
	})
	return nil
}

// saves are the names of --save.
func saves() []string {
	var names []string
	for _, k := range savers() {
		names = append(names, k.name)
	}
	return names
}

// checkSaves refuses names that are not known.
func checkSaves(names []string, given bool) error {
	known := saves()
	want := strings.Join(known, ", ")
	for _, name := range names {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--save: %q is not known (want %s)", name, want)
		}
	}
	if given && len(names) == 0 {
		return fmt.Errorf("--save: the value is empty (want %s)", want)
	}
	return nil
}

// saving is the files of --save in the making.
type saving struct {
	dir      *directory
	streams  []stream
	ends     []func(res *experiments.Result) error
	warnings []string // what has to be said of the files, once they are written
}

// stream is a file that a run fills while it goes on, and what is left to write at its end.
type stream struct {
	*file
	end func() error // nil for nothing
}

// newSaving opens the files that the run fills, and tells the run of them.
func newSaving(dir *directory, setup *scenario.Setup, names []string, run *experiments.RunOptions) (*saving, error) {
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

// stream opens a file that the run fills.
func (s *saving) stream(name string, begin func(w io.Writer) (end func() error)) error {
	f, err := s.dir.create(name)
	if err == nil {
		s.streams = append(s.streams, stream{f, begin(f)})
	}
	return err
}

// later writes a file at the end of the run.
func (s *saving) later(name string, write func(w io.Writer, res *experiments.Result) error) {
	s.ends = append(s.ends, func(res *experiments.Result) error {
		return s.dir.write(name, func(w io.Writer) error { return write(w, res) })
	})
}

// abandon removes what was not committed.
func (s *saving) abandon() {
	for _, f := range s.streams {
		f.abandon()
	}
}

// commit ends the files that the run has filled, and writes those that are made of the result.
func (s *saving) commit(res *experiments.Result) error {
	for _, f := range s.streams {
		if f.end != nil {
			if err := f.end(); err != nil {
				return err
			}
		}
		if err := f.commit(); err != nil {
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
