package api

import (
	"sync/atomic"

	"clifftop/experiments/scenario"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Replicas is an observer that knows which replicas are ready. Its methods are safe for concurrent use.
type Replicas struct {
	event.Ignore
	states []atomic.Uint32
}

var _ event.LifecycleObserver = (*Replicas)(nil)

// NewReplicas returns the observer of the replicas of a scenario.
func NewReplicas(u *scenario.Setup) *Replicas {
	n := 0
	for i := range u.Pools {
		n += u.Pools[i].Engines()
	}
	return &Replicas{states: make([]atomic.Uint32, n)}
}

// ReplicaState implements [event.LifecycleObserver].
func (r *Replicas) ReplicaState(_ clock.Time, replica int, s event.State) {
	if replica < len(r.states) {
		r.states[replica].Store(uint32(s))
	}
}

// Ready reports whether a replica takes requests, by its number from 1; 0 asks for any replica. A nil Replicas is
// ready.
func (r *Replicas) Ready(number int32) bool {
	if r == nil {
		return true
	}
	for i := range r.states {
		if (number == 0 || int(number) == i+1) && event.State(r.states[i].Load()) == event.Ready {
			return true
		}
	}
	return false
}
