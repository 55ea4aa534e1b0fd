package measured

import (
	"fmt"
	"io"
	"slices"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// WriteTrace writes the completed requests of the run in Clifftop's own trace format, for a replay. Requests that
// failed are left out. Conversations keep their names for routers, and share no prefix unless the file has it. The
// error is a [yamldoc.Faults] if the run has no requests with times.
func (run *Run) WriteTrace(w io.Writer, file string) (rows int, err error) {
	if len(run.Trace) > 0 {
		return len(run.Trace), run.copyTrace(w)
	}
	out := trace.NewWriter(w, trace.Columns{Full: run.inSessions()}, nil)
	sessions, turns := map[string]int32{}, map[string]int32{}
	for i, q := range run.Requests {
		if !q.Timed {
			return 0, yamldoc.Faults{{Where: file, Key: run.Name, Problem: fmt.Sprintf("request %d has no time, so "+
				"that it cannot "+
				"be replayed (want a result with times of requests)", i+1)}}
		}
		if q.Arrival.Seconds() > clock.MaxRun.Seconds() {
			return 0, yamldoc.Faults{{Where: file, Key: run.Name, Problem: fmt.Sprintf("request %d arrives after "+
				"%.0f s (want at most "+
				"%.0f s)", i+1, q.Arrival.Seconds(), clock.MaxRun.Seconds())}}
		}
		if q.Failed || q.Input < 1 || q.Output < 1 {
			continue
		}
		r := workload.Request{Arrival: clock.Time(q.Arrival.Nanoseconds()) * clock.Time(clock.Nanosecond),
			InputTokens:  int32(q.Input),
			OutputTokens: int32(q.Output)}
		if name := q.Session; name != "" {
			if sessions[name] == 0 {
				sessions[name] = int32(len(sessions)) + 1
			}
			r.Session, r.Turn = sessions[name], turns[name]
			turns[name]++
		}
		if err := out.Write(&r); err != nil {
			return rows, err
		}
		rows++
	}
	if rows == 0 {
		return 0, yamldoc.Faults{{Where: file, Key: run.Name, Problem: "no single request is in the result (want a " +
			"result with the " +
			"lengths and times of requests)"}}
	}
	return rows, out.Flush()
}

// inSessions reports whether requests belong to conversations.
func (run *Run) inSessions() bool {
	return slices.ContainsFunc(run.Requests, func(q Request) bool { return q.Session != "" })
}

// copyTrace writes the requests as the file has them.
func (run *Run) copyTrace(w io.Writer) error {
	out := trace.NewWriter(w, trace.Columns{Cancel: true}, nil)
	for i := range run.Trace {
		if err := out.Write(&run.Trace[i]); err != nil {
			return err
		}
	}
	return out.Flush()
}
