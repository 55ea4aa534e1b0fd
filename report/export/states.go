package export

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// stateNames are the names of the slices of a replica's states; a replica that is off has no slice.
var stateNames = [event.States]string{event.Ready: "serving", event.Starting: "cold start", event.Draining: "draining",
	event.Down: "down"}

// ReplicaState draws the state that a replica leaves.
func (t *Trace) ReplicaState(at clock.Time, replica int, s event.State) {
	r := t.replica(replica)
	t.last = max(t.last, at)
	t.state(replica, at)
	r.state = s
	if s == event.Down || s == event.Off { // all that it had is gone, once its last iteration has ended
		over := max(at, r.end)
		t.counter(firstReplica+replica, over, "batch", "decoding", 0, "prefill tokens", 0)
		t.counter(firstReplica+replica, over, "KV blocks", "used", 0, "", 0)
	}
}

// state draws a slice for the state that a replica has had up to an instant.
func (t *Trace) state(replica int, to clock.Time) {
	r := t.replicas[replica]
	name := stateNames[r.state]
	if t.info.Lifecycle && name != "" && nanos(r.since) < nanos(to) {
		t.out.begin('X', track{firstReplica + replica, stateThread}, name)
		t.out.during(r.since, to)
		t.out.end()
	}
	r.since = to
}
