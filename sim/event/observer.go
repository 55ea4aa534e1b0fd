// Package event defines the events of a simulation and the interfaces of observers.
//
// An observer implements [Observer] and as many of the optional interfaces as it needs: [SpanObserver] for iterations,
// [LevelObserver] for queue lengths, [StepObserver] for single iterations, and so on. A [Fanout] forwards every event
// to all observers of a run. Only Fanout looks for optional interfaces, so that none is lost.
//
// Start with [Observer], [Record] and [Span].
package event

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

// Observer gets the requests that are sent and how they end. The order of calls depends only on the scenario and the
// seed. Arguments are valid only during the call. This holds for the optional interfaces too.
//
// An event may be earlier than one reported before it. Levels come in order of time. Spans and records are reported as
// soon as they are known: those of one replica in order of time, with asynchronous scheduling up to two iterations
// before their last instant; those of another replica may be earlier or later.
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

// LevelObserver gets the numbers of requests by state.
type LevelObserver interface {
	Observer
	// Levels is called when a level has a new value, which holds from the instant at on.
	Levels(at clock.Time, l *Levels)
}

// SpanObserver gets the iterations.
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

// TokenObserver gets what spans leave out: tokens that are late, dropped, or computed again.
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

// StepObserver gets every single iteration, sequence by sequence. The engine then simulates iterations one at a time.
// This changes no result, but takes longer; it is meant for timelines and tests.
type StepObserver interface {
	Observer
	// Step is called when an iteration has been scheduled.
	Step(s *Step)
}

// ChunkObserver gets every chunk of output of every request. The engine then simulates iterations one at a time. This
// changes no result, but takes longer; it is meant for servers that send the output on.
type ChunkObserver interface {
	Observer
	// Chunk is called when an iteration has been scheduled that gives a chunk its last token. The chunk is reported
	// again if a later iteration adds a token to it.
	Chunk(c Chunk)
}

// CacheObserver gets the blocks that enter and leave the prefix caches of replicas. The engine then simulates
// iterations one at a time. This changes no result, but takes longer; it is meant for servers that publish the events.
//
// With KV cache groups it gets the blocks of the first group of full attention. Blocks in the tiers of a connector are
// left out.
type CacheObserver interface {
	Observer
	// CacheChanged is called after each event that changed the cache of a replica, which at that time has exactly the
	// blocks that were reported.
	CacheChanged(c *CacheChange)
}

// FleetObserver has an observer for each replica of a fleet.
type FleetObserver interface {
	Observer
	// OfReplica returns an observer of replica i, or nil. It gets, in addition to this one, the events of that replica
	// as if it were alone. A request has arrived when its client sent it, and is in the system from the instant at
	// which the router sent it.
	OfReplica(i int) Observer
}

// MoveObserver gets the KV blocks that move between the KV pool and the tiers of a connector.
type MoveObserver interface {
	Observer
	// Moved is called when a transfer begins.
	Moved(at clock.Time, m Move)
	// LinkBusy is called when the link of a tier becomes busy or idle at the instant at.
	LinkBusy(at clock.Time, replica, tier int, busy bool)
}

// LifecycleObserver gets starts, failures and stops of replicas.
type LifecycleObserver interface {
	Observer
	// ReplicaState is called when a replica enters a state at the instant at. Before the first call a replica is
	// [Ready].
	ReplicaState(at clock.Time, replica int, s State)
}
