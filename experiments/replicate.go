package experiments

import (
	"context"
	"fmt"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/unit"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report"
)

// ReplicateOptions says how to replicate. The zero value does as the scenario's run says.
type ReplicateOptions struct {
	// Replications is the number of runs, or the greatest number beside a precision; 0 is run.replications.
	Replications int
	// Precision is the relative half width of intervals wanted, more than 0 and less than 1; 0 is run.precision.
	Precision float64
	// Jobs is the number of runs at a time; 0 is one for each processor. It changes no result.
	Jobs int
	// Check asserts the simulator's invariants throughout, at a cost.
	Check bool
	// Progress is told, from one goroutine at a time, how many of the runs are done.
	Progress func(done, total int)
	// Detail gives the summary the detail of the first run, for pictures.
	Detail bool
}

const (
	// Sequential stopping looks at the intervals after so many runs, and then after each further round.
	leastReplications = 5
	roundReplications = 5
	// mostReplications ends it where nothing else is said.
	mostReplications = 100
	maxReplications  = 1000
)

// replication is how often to run, and why to stop.
type replication struct {
	runs      int     // Default the greatest number
	precision float64 // 0 for a number of runs
}

// replication is what the options and the scenario ask for.
func (o ReplicateOptions) replication(s *Scenario) (replication, error) {
	r := replication{runs: o.Replications, precision: o.Precision}
	if r.precision == 0 && s.Run.Precision != nil {
		r.precision = float64(*s.Run.Precision)
	}
	if r.runs == 0 {
		if r.runs = max(s.Run.Replications, 1); r.runs == 1 && r.precision > 0 {
			r.runs = mostReplications
		}
	}
	switch {
	case r.runs < 1 || r.runs > maxReplications:
		return r, yamldoc.Faults{{Where: "--replications", Problem: fmt.Sprintf("%d is not allowed (want 1 to %d)", r.runs, maxReplications)}}
	case r.precision < 0 || r.precision >= 1:
		return r, yamldoc.Faults{{Where: "--precision", Problem: fmt.Sprintf("%v is not allowed (want %s)", r.precision, unit.WantShare)}}
	case r.precision > 0 && r.runs < leastReplications:
		return r, yamldoc.Faults{{Where: "--replications", Problem: fmt.Sprintf("%d is too few beside a precision (want %d or more: the greatest number of runs)", r.runs, leastReplications)}}
	}
	return r, nil
}

// Replicated reports whether the scenario asks for more than one run of each kind.
func (s *Scenario) Replicated() bool { return s.Run.Replications > 1 || s.Run.Precision != nil }

// more is how many runs to add to those done; 0 ends it.
func (r replication) more(done int) int {
	switch {
	case r.precision == 0:
		return r.runs - done
	case done == 0:
		return min(leastReplications, r.runs)
	}
	return min(roundReplications, r.runs-done)
}

func (r *RunSpec) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	given := n.Get("replications")
	if r.Precision != nil && given != nil && given.Kind != yamldoc.Null && r.Replications >= 1 && r.Replications < leastReplications {
		d.Refuse(given, yamldoc.Join(key, "replications"), fmt.Sprintf("%d or more beside a precision: the greatest number of runs", leastReplications))
	}
}

// Replicate runs a scenario several times, with its seed and those that follow it, and pools the results; see
// [report.Pool]. With a precision it stops as soon as throughput and the means of TTFT, TPOT and E2E are known so
// well, looking after every five runs:
//
//	t(R-1) s/√R ≤ γ/(1+γ) |mean|
//
// A single run is its own result. When ctx is done before the end, the result covers the runs that were complete, is marked
// partial, and comes together with the context's error.
func Replicate(ctx context.Context, s *Scenario, o ReplicateOptions) (*report.Summary, error) {
	u, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	return u.Replicate(ctx, o)
}

// Replicate replicates the scenario; see [Replicate].
func (u *Setup) Replicate(ctx context.Context, o ReplicateOptions) (*report.Summary, error) {
	r, err := o.replication(u.Scenario)
	if err != nil {
		return nil, err
	}
	results, err := replicateAll(ctx, []*Setup{u}, r, o)
	if len(results) == 0 {
		return nil, err
	}
	return results[0], err
}

// reseeded is the setup with other random numbers, those of a later seed.
func (u *Setup) reseeded(k int) (*Setup, error) {
	if k == 0 {
		return u, nil
	}
	s := *u.from
	s.Run.Seed += uint64(k)
	return s.resolve(u.oneRank)
}

// series are the runs of one setup.
type series struct {
	setup   *Setup
	runs    []*report.Summary
	pooled  *report.Summary
	stopped bool
}

// replicateAll replicates several setups side by side, in rounds that do not depend on the number of jobs. The results are
// in the order of the setups, nil for those of which no run was complete.
func replicateAll(ctx context.Context, setups []*Setup, r replication, o ReplicateOptions) ([]*report.Summary, error) {
	all := make([]series, len(setups))
	for i, u := range setups {
		all[i].setup = u
	}
	var runErr error
	done := 0
	for runErr == nil {
		var round []*Setup
		var of []int
		for i := range all {
			if all[i].stopped {
				continue
			}
			for k := range r.more(len(all[i].runs)) {
				u, err := all[i].setup.reseeded(len(all[i].runs) + k)
				if err != nil {
					return nil, err
				}
				round, of = append(round, u), append(of, i)
			}
		}
		if len(round) == 0 {
			break
		}
		var progress func(int, int)
		if o.Progress != nil {
			progress = func(n, total int) { o.Progress(done+n, done+total) }
		}
		var results []*report.Summary
		results, runErr = runAll(ctx, round, SweepOptions{Jobs: o.Jobs, Check: o.Check, Progress: progress, Detail: o.Detail})
		done += len(round)
		for k, s := range results {
			if s != nil {
				all[of[k]].runs = append(all[of[k]].runs, s)
			}
		}
		for i := range all {
			all[i].fold(r, runErr)
		}
	}
	if runErr != nil && ctx.Err() == nil {
		return nil, runErr
	}
	results := make([]*report.Summary, len(all))
	for i := range all {
		results[i] = all[i].pooled
	}
	return results, runErr
}

// fold pools what there is, and decides whether it is enough.
func (x *series) fold(r replication, runErr error) {
	if len(x.runs) == 0 || x.stopped {
		return
	}
	x.pooled = report.Pool(x.runs)
	x.stopped = r.more(len(x.runs)) == 0
	interrupted := runErr != nil && !x.stopped
	if interrupted {
		partial := *x.pooled
		partial.Partial = true
		partial.Warnings = append([]report.Warning{{Code: "partial", Text: fmt.Sprintf("interrupted: only %d runs were complete", len(x.runs))}}, partial.Warnings...)
		x.pooled = &partial
	}
	told := x.pooled.Replications
	if told == nil {
		return
	}
	told.Stopped = report.StoppedByCount
	if interrupted {
		told.Stopped = report.StoppedByInterrupt
	}
	if r.precision > 0 {
		x.judge(r, told, interrupted)
	}
}

// judge holds the intervals against the precision that was asked for.
func (x *series) judge(r replication, told *report.Replications, interrupted bool) {
	told.Precision = optional.Of(r.precision)
	path, half := x.pooled.Widest(report.PrecisionPaths())
	if path != "" {
		told.Widest, told.HalfWidth = path, optional.Of(half)
	}
	steady := x.pooled.Window.Stationary
	switch {
	case interrupted:
	case x.pooled.CI95Method == "":
		told.Stopped, x.stopped = report.StoppedByAlike, true
	case steady != nil && !*steady:
		told.Stopped, x.stopped = report.StoppedByOverload, true
	case path != "" && half <= r.precision/(1+r.precision):
		told.Stopped, x.stopped = report.StoppedByPrecision, true
	case x.stopped:
		told.Stopped = report.StoppedByCap
	}
}
