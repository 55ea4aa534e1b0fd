package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"clifftop/experiments"
	"clifftop/report"
	"clifftop/report/export"
)

// saves are what --save writes of a run beside its summary.
var saves = []string{"requests", "timeseries", "replicas", "iterations", "trace", "metrics", "bench"}

// checkSaves refuses names that are not known.
func checkSaves(names []string, given bool) error {
	want := strings.Join(saves, ", ")
	for _, name := range names {
		if !slices.Contains(saves, name) {
			return fmt.Errorf("--save: %q is not known (want %s)", name, want)
		}
	}
	if given && len(names) == 0 {
		return fmt.Errorf("--save: the value is empty (want %s)", want)
	}
	return nil
}

// saving is the files of --save in the making. Those that a run fills while it goes on are opened before it.
type saving struct {
	names    []string
	open     []streamed
	metrics  *export.Metrics
	detailed *export.Detailed
	title    string // of a dashboard
}

// streamed is a file that a run fills, and what is left to write at its end.
type streamed struct {
	*file
	end func() error
}

// newSaving opens the files and tells the run of them.
func newSaving(dir *directory, setup *experiments.Setup, names []string, options *experiments.RunOptions) (*saving, error) {
	s := &saving{names: names, title: setup.DashboardTitle()}
	for _, name := range names {
		if err := s.add(dir, setup, name, options); err != nil {
			s.abandon()
			return nil, err
		}
	}
	return s, nil
}

func (s *saving) add(dir *directory, setup *experiments.Setup, name string, options *experiments.RunOptions) error {
	stream := func(name string, begin func(w io.Writer) (end func() error)) error {
		f, err := dir.create(name)
		if err == nil {
			s.open = append(s.open, streamed{f, begin(f)})
		}
		return err
	}
	switch name {
	case "requests":
		return stream("requests.csv", func(w io.Writer) func() error {
			options.Requests = w
			return nil // the run flushes it
		})
	case "iterations":
		return stream("iterations.csv", func(w io.Writer) func() error {
			table := export.NewIterations(w)
			options.Sinks = append(options.Sinks, table)
			return table.Flush
		})
	case "trace":
		return stream("trace.json", func(w io.Writer) func() error {
			trace := setup.NewTrace(w)
			options.Sinks = append(options.Sinks, trace)
			return trace.Close
		})
	case "metrics":
		s.metrics = setup.NewMetrics()
		options.Sinks = append(options.Sinks, s.metrics)
	case "bench":
		s.detailed = export.NewDetailed(0)
		options.Sinks = append(options.Sinks, s.detailed)
	}
	return nil
}

// abandon removes what was not committed.
func (s *saving) abandon() {
	for _, f := range s.open {
		f.abandon()
	}
}

// warnings are what has to be said of the files.
func (s *saving) warnings() []string {
	if s.detailed == nil || s.detailed.Cut() == 0 {
		return nil
	}
	return []string{fmt.Sprintf("bench.json has no gaps between tokens for %d requests: it keeps %d at most", s.detailed.Cut(), export.DetailedGaps)}
}

// commit ends the files, and writes those that are made of the result.
func (s *saving) commit(dir *directory, res *experiments.Result) error {
	for _, f := range s.open {
		if f.end != nil {
			if err := f.end(); err != nil {
				return err
			}
		}
		if err := f.file.commit(); err != nil {
			return err
		}
	}
	if slices.Contains(s.names, "timeseries") {
		if err := dir.write("timeseries.csv", func(w io.Writer) error { return report.WriteSeries(w, res.Series) }); err != nil {
			return err
		}
	}
	if slices.Contains(s.names, "replicas") {
		if err := dir.write("replicas.csv", func(w io.Writer) error { return report.WriteReplicaSeries(w, res.ReplicaSeries()) }); err != nil {
			return err
		}
	}
	if s.detailed != nil {
		if err := dir.write("bench.json", func(w io.Writer) error { return s.detailed.Write(w, res.VLLMBench()) }); err != nil {
			return err
		}
	}
	if s.metrics == nil {
		return nil
	}
	if err := dir.write("metrics.prom", s.metrics.WriteText); err != nil {
		return err
	}
	if err := dir.write("metrics.openmetrics", s.metrics.WriteOpenMetrics); err != nil {
		return err
	}
	return dir.write("dashboard.json", func(w io.Writer) error { return s.metrics.WriteDashboard(w, s.title) })
}
