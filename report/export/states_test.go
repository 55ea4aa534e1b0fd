package export_test

import (
	"math"
	"strings"
	"testing"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// stateTracks are the slices of the states of each replica, by its number.
func (tl *timeline) stateTracks() map[int][]traceEvent {
	type track struct{ process, thread int }
	names, list := map[track]string{}, map[int][]traceEvent{}
	for _, e := range tl.Events {
		on := track{*e.Process, *e.Thread}
		switch {
		case e.Name == "thread_name":
			names[on] = e.Args["name"].(string)
		case e.Phase == "X" && names[on] == "state":
			list[on.process-2] = append(list[on.process-2], e)
		}
	}
	return list
}

// TestStates compares the slices of states with what was told of them.
func TestStates(t *testing.T) {
	r := one(t, "lives")
	tracks := readTimeline(t, r.trace.Bytes()).stateTracks()
	end := clock.Time(0)
	for i := range r.records {
		end = max(end, r.records[i].Released)
	}
	for _, span := range r.states.spans {
		end = max(end, span.end)
	}
	seen := map[string]int{}
	for i := range r.setup.Report.Replicas {
		k := 0
		check := func(state event.State, from, to clock.Time) {
			if state == event.Off || from == to {
				return
			}
			name := map[event.State]string{event.Ready: "serving", event.Starting: "cold start",
				event.Draining: "draining", event.Down: "down"}[state]
			if k == len(tracks[i]) {
				t.Fatalf("replica %d: %s from %v to %v is missing", i, name, from, to)
			}
			e := tracks[i][k]
			if e.Name != name || math.Abs(*e.At-float64(from)/1e6) > 0.0011 ||
				math.Abs(*e.At+*e.Length-float64(to)/1e6) > 0.0011 {
				t.Fatalf("replica %d: %s at %v us for %v, want %s from %v to %v", i, e.Name, *e.At, *e.Length, name,
					from, to)
			}
			seen[name]++
			k++
		}
		state, since := event.Ready, clock.Time(0)
		for _, e := range r.states.entered {
			if e.replica == i {
				check(state, since, e.at)
				state, since = e.state, e.at
			}
		}
		check(state, since, end)
		if k != len(tracks[i]) {
			t.Errorf("replica %d has %d states, want %d", i, len(tracks[i]), k)
		}
	}
	if len(seen) != 4 {
		t.Errorf("only %v", seen)
	}
}

// TestStatesAddUp compares the slices of states with the numbers of the summary, of a run that is stopped.
func TestStatesAddUp(t *testing.T) {
	r := runAll(t, strings.Replace(scenarios["lives"], "requests: 2500", "duration: 3m", 1))
	sum := map[string]float64{}
	for _, track := range readTimeline(t, r.trace.Bytes()).stateTracks() {
		for _, e := range track {
			sum[e.Name] += *e.Length / 1e6
		}
	}
	n := r.result.Summary.System.Replicas
	for name, want := range map[string]*float64{"serving": n.Ready, "cold start": n.Starting, "draining": n.Draining,
		"down": n.Down} {
		if got := sum[name] / 180; math.Abs(got-*want) > 1e-7 || got == 0 {
			t.Errorf("%s: %v replicas on average, want %v", name, got, *want)
		}
	}
	// Fleets without a lifecycle have no such track.
	if tracks := readTimeline(t, one(t, "fleet").trace.Bytes()).stateTracks(); len(tracks) > 0 {
		t.Errorf("%d replicas that are always there have states", len(tracks))
	}
}
