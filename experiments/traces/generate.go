package traces

import (
	"context"
	"errors"
	"fmt"
	"io"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// Generate writes the traffic of a scenario in Clifftop's own format, gzipped if asked for, as it meets the system in a
// run with the same seed. A comment before the header names the scenario. It returns the number of requests. Retries
// are not part of the traffic, because they depend on the system. A closed loop has no traffic of its own: it waits for
// outputs.
func Generate(ctx context.Context, u *scenario.Setup, w io.Writer, zip bool) (rows int64, err error) {
	if u.Traffic.Closed {
		return 0, u.Scenario.Fault("workload.arrivals",
			"the traffic of a closed loop depends on the system (want open-loop arrivals)")
	}
	src, err := u.Source()
	if err != nil {
		return 0, err
	}
	var classes []string
	columns := trace.Columns{Waits: u.Traffic.Spec.WaitsForOutputs()}
	columns.Full = u.Scenario.Workload.Prefix != nil || u.Traffic.Spec.Sessions != nil || u.Traffic.Spec.Classes != nil
	columns.LoRA = u.Traffic.UsesAdapters()
	for _, c := range u.Traffic.Spec.Classes {
		classes = append(classes, c.Name)
	}
	comments := []string{fmt.Sprintf("clifftop %s, generated from %s, seed %d", experiments.Version, originOf(u),
		u.Scenario.Run.Seed)}
	if t, ok := src.(*trace.Source); ok {
		if s := t.Stats(); s.Requests > s.Rows {
			return 0, errors.New("workload.trace: requests that wait for responses depend on the system " +
				"(use clifftop trace convert, which keeps the waits)")
		}
		classes, columns = t.Classes(), columnsOf(t.Stats())
		comments = append(comments, t.Applied()...)
	}
	o, err := newTraceOutput(w, comments, columns, classes, zip)
	if err != nil {
		return 0, err
	}
	for n := 1; ; n++ {
		if _, ok := src.Peek(); !ok {
			break
		}
		var r trace.Row
		if whole, ok := src.(workload.ConversationSource); ok {
			r.Request, r.Then = whole.NextConversation()
		} else {
			r.Request = src.Next()
		}
		if err := o.WriteRow(&r); err != nil {
			return rows, err
		}
		rows += r.Requests()
		const every = 1 << 12
		if n%every == 0 && ctx.Err() != nil {
			return rows, ctx.Err()
		}
	}
	if err := src.Err(); err != nil {
		return rows, err
	}
	return rows, o.Close()
}

// Differs says why a run of the scenario sends other requests than the trace that [Generate] writes; it is empty if the
// requests are the same. Turns that wait for outputs are sent when the system answers, so a number of requests ends a
// run in the middle of conversations, while the trace has whole ones.
func Differs(u *scenario.Setup) string {
	if spec := &u.Traffic.Spec; u.Traffic.Recording != nil || spec.Requests == 0 || !spec.WaitsForOutputs() {
		return ""
	}
	return "the trace has whole conversations, and a run of this scenario ends in the middle of some, so their " +
		"requests differ (for the same requests, set run.duration instead of run.requests, here and in the replay)"
}

// originOf names what the traffic comes from.
func originOf(u *scenario.Setup) string {
	w := u.Scenario.Workload
	switch {
	case w.Trace != nil:
		return "a replay of " + w.Trace.File
	case w.Preset != nil:
		return "preset " + *w.Preset
	}
	return "a scenario"
}
