package experiments

import (
	"context"
	"fmt"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario"
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
	// Progress is called, from one goroutine at a time, with the number of finished runs.
	Progress func(done, total int)
	// Detail gives the summary the detail of the first run, for pictures.
	Detail bool
}

const (
	// roundReplications is the number of runs of each further round.
	roundReplications = 5
	// MaxReplications is the largest limit that can be set.
	MaxReplications = 1000
)

// replication is how often to run, and why to stop.
type Replication struct {
	Runs      int     // Default the greatest number
	Precision float64 // 0 for a number of runs
}

// replication is what the options and the scenario ask for.
func (o ReplicateOptions) Plan(s *scenario.Scenario) (Replication, error) {
	r := Replication{Runs: o.Replications, Precision: o.Precision}
	if r.Precision == 0 && s.Run.Precision != nil {
		r.Precision = float64(*s.Run.Precision)
	}
	if r.Runs == 0 {
		if r.Runs = max(s.Run.Replications, 1); r.Runs == 1 && r.Precision > 0 {
			r.Runs = scenario.MostReplications
		}
	}
	switch {
	case r.Runs < 1 || r.Runs > MaxReplications:
		return r, yamldoc.Faults{{Where: "--replications",
			Problem: fmt.Sprintf("%d is not allowed (want 1 to %d)", r.Runs, MaxReplications)}}
	case r.Precision < 0 || r.Precision >= 1:
		return r, yamldoc.Faults{{Where: "--precision",
			Problem: fmt.Sprintf("%v is not allowed (want %s)", r.Precision, yamldoc.WantShare)}}
	case r.Precision > 0 && r.Runs < scenario.LeastReplications:
		return r, yamldoc.Faults{{Where: "--replications",
			Problem: fmt.Sprintf("%d is too few with a precision (want %d or more: the maximum number of runs)", r.Runs,
				scenario.LeastReplications)}}
	}
	return r, nil
}

// More is how many runs to add to those done; 0 ends it.
func (r Replication) More(done int) int {
	switch {
	case r.Precision == 0:
		return r.Runs - done
	case done == 0:
		return min(scenario.LeastReplications, r.Runs)
	}
	return min(roundReplications, r.Runs-done)
}

// Replicate runs a scenario several times, with its seed and those that follow it, and pools the results; see
// [report.Pool]. With a precision it stops as soon as throughput and the means of TTFT, TPOT and E2E are known so
// well, looking after every five runs:
//
//	t(R-1) s/√R ≤ γ/(1+γ) |mean|
//
// A single run is its own result. When ctx is done before the end, the result covers the runs that were complete, is
// marked partial, and comes together with the context's error.
func Replicate(ctx context.Context, s *scenario.Scenario, o ReplicateOptions) (*report.Summary, error) {
	u, err := s.Resolve()
	if err != nil {
		return nil, err
	}
	return replicateSetup(ctx, u, o)
}

// replicateSetup replicates the scenario; see [Replicate].
func replicateSetup(ctx context.Context, u *scenario.Setup, o ReplicateOptions) (*report.Summary, error) {
	r, err := o.Plan(u.Scenario)
	if err != nil {
		return nil, err
	}
	results, err := ReplicateAll(ctx, []*scenario.Setup{u}, r, o)
	if len(results) == 0 {
		return nil, err
	}
	return results[0], err
}

// series are the runs of one setup.
type series struct {
	setup   *scenario.Setup
	runs    []*report.Summary
	pooled  *report.Summary
	stopped bool
}

// ReplicateAll replicates several setups side by side, in rounds that do not depend on the number of jobs. The results
// are in the order of the setups, nil for those of which no run was complete.
func ReplicateAll(ctx context.Context, setups []*scenario.Setup, r Replication, o ReplicateOptions) ([]*report.Summary,
	error) {
	all := make([]series, len(setups))
	for i, u := range setups {
		all[i].setup = u
	}
	var runErr error
	done := 0
	for runErr == nil {
		var round []*scenario.Setup
		var of []int
		for i := range all {
			if all[i].stopped {
				continue
			}
			for k := range r.More(len(all[i].runs)) {
				u, err := all[i].setup.Reseeded(len(all[i].runs) + k)
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
		results, runErr = runAll(ctx, round,
			BatchOptions{Jobs: o.Jobs, Check: o.Check, Progress: progress, Detail: o.Detail})
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
func (x *series) fold(r Replication, runErr error) {
	if len(x.runs) == 0 || x.stopped {
		return
	}
	x.pooled = report.Pool(x.runs)
	x.stopped = r.More(len(x.runs)) == 0
	interrupted := runErr != nil && !x.stopped
	if interrupted {
		partial := *x.pooled
		partial.Partial = true
		partial.Warnings = append([]report.Warning{{Code: "partial",
			Text: fmt.Sprintf("interrupted: only %d runs were complete", len(x.runs))}}, partial.Warnings...)
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
	if r.Precision > 0 {
		x.judge(r, told, interrupted)
	}
}

// judge holds the intervals against the precision that was asked for.
func (x *series) judge(r Replication, told *report.Replications, interrupted bool) {
	told.Precision = optional.Of(r.Precision)
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
	case path != "" && half <= r.Precision/(1+r.Precision):
		told.Stopped, x.stopped = report.StoppedByPrecision, true
	case x.stopped:
		told.Stopped = report.StoppedByCap
	}
}
