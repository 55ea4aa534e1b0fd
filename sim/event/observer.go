// Package event says what observers of a simulation are told, and by which methods.
//
// An observer implements [Observer] and as many of the optional interfaces as it needs: [SpanObserver] for iterations,
// [LevelObserver] for queue lengths, [StepObserver] for single iterations, and so on. A [Fanout] forwards every event
// to all observers of a run. It is the only place that looks for optional interfaces, so that none gets lost on the
// way.
//
// Start with [Observer], [Record] and [Span].
package event

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

// Observer is told which requests are sent and how they end. Calls come in an order that depends on the scenario and
// the seed only. Arguments are valid only during the call. That holds for the optional interfaces too.
//
// An instant of an event may lie before that of an event reported earlier. Levels come in order of time. Spans and
// records are reported as soon as they are known: those of one replica in order of time, under asynchronous scheduling
// up to two iterations before their last instant; those of another replica may come after later ones.
type Observer interface {
	// Arrived is called when a client sends a request.
	Arrived(at clock.Time, r *workload.Request)
	// Finished is called once for every request that arrived, when it ends, unless the run stops first.
	Finished(rec *Record)
}

// Ignore implements [Observer] and does nothing. Embed it in an observer that needs other events only.
type Ignore struct{}

// Arrived implements [Observer].
func (Ignore) Arrived(clock.Time, *workload.Request) {}

// Finished implements [Observer].
func (Ignore) Finished(*Record) {}

// LevelObserver is told the numbers of requests by state.
type LevelObserver interface {
	Observer
	// Levels is called when a level has a new value, which holds from the instant at on.
	Levels(at clock.Time, l *Levels)
}

// SpanObserver is told about iterations.
type SpanObserver interface {
	Observer
	// Span is called for a run of like iterations.
	Span(s *Span)
}

// EdgeObserver cuts spans at instants of its choice, for example at the edges of its time buckets.
type EdgeObserver interface {
	Observer
	// Edge returns the first instant after past at which spans are cut: no span of more than one iteration is reported
	// across it. [clock.Never] means that there is none.
	Edge(past clock.Time) clock.Time
}

// TokenObserver is told what spans leave out: tokens that come late, get lost, or are computed again.
type TokenObserver interface {
	Observer
	// Gap reports n equal inter-token gaps that end at the instant at and are in no span, because their sequences were
	// preempted or held back between two tokens.
	Gap(at clock.Time, gap clock.Duration, n int)
	// Preempted is called when a running sequence loses its KV blocks.
	Preempted(at clock.Time)
	// Dropped reports tokens that are counted by a span which ends at the instant at, and are not delivered because
	// their client left.
	Dropped(at clock.Time, tokens int)
}

// StepObserver is told about every single iteration, sequence by sequence. The engine then simulates iterations one at
// a time. This changes no result and costs time; it is meant for timelines and tests.
type StepObserver interface {
	Observer
	// Step is called when an iteration has been scheduled.
	Step(s *Step)
}

// FleetObserver tells the replicas of a fleet apart.
type FleetObserver interface {
	Observer
	// OfReplica returns an observer of replica i, or nil. It is told, in addition to this one, what happens at that
	// replica, as if the replica were alone: requests that the router sends there have arrived when their clients sent
	// them, and are in the system from the instant at which the router sent them.
	OfReplica(i int) Observer
}

// MoveObserver is told which KV blocks move between the KV pool and the tiers of a connector.
type MoveObserver interface {
	Observer
	// Moved is called when a transfer begins.
	Moved(at clock.Time, m Move)
	// LinkBusy reports whether the link of a tier has something to carry, from the instant at on.
	LinkBusy(at clock.Time, replica, tier int, busy bool)
}

// LifecycleObserver is told when replicas start, fail and end.
type LifecycleObserver interface {
	Observer
	// ReplicaState is called when a replica enters a state at the instant at. Before the first call a replica is
	// [Ready].
	ReplicaState(at clock.Time, replica int, s State)
}
