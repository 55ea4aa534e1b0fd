// Package export writes runs in the formats of other tools: a timeline for Perfetto, metrics for Prometheus under
// vLLM's names with a dashboard for Grafana, the detailed result of vLLM's benchmark, and a table of iterations.
//
// An export is a [Sink]: it is told what happens in a run, while it runs, and keeps only what it has to.
package export

import (
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// A Sink is told what happens in a run, in the words of [sim.Observer]. What happens at a replica comes with its number,
// from 0. The arguments are valid only during the call.
type Sink interface {
	// Arrived tells that a client sent a request.
	Arrived(at clock.Time, r *workload.Request)
	// Levels tells that one of the levels of a replica has a new value from the instant at on.
	Levels(replica int, at clock.Time, l *sim.Levels)
	// Span tells that like iterations ran.
	Span(s *sim.Span)
	// Gap tells of n equal inter-token gaps, ended at the instant at, that no span carries.
	Gap(replica int, at clock.Time, gap clock.Duration, n int)
	// Preempted tells that a running sequence lost its KV blocks.
	Preempted(replica int, at clock.Time)
	// Dropped tells that tokens counted by a span that ends at the instant at were not delivered.
	Dropped(replica int, at clock.Time, tokens int)
	// Finished tells how a request ended.
	Finished(rec *sim.Record)
}

// A StepSink is a Sink that wants every iteration sequence by sequence. The engine then steps singly for it, which
// changes no result but costs time.
type StepSink interface {
	Sink
	// Step tells of one iteration when it has been scheduled, in the words of [sim.StepObserver].
	Step(s *sim.Step)
}

// A LifeSink is a Sink of a fleet whose replicas start, fail and end.
type LifeSink interface {
	Sink
	// ReplicaState tells that a replica is in another state from the instant at on. Until it is told for the first time a
	// replica is [sim.Ready].
	ReplicaState(replica int, at clock.Time, s sim.State)
}

// deaf is a Sink that hears nothing; exports embed it for what they need not hear.
type deaf struct{}

func (deaf) Arrived(clock.Time, *workload.Request)    {}
func (deaf) Levels(int, clock.Time, *sim.Levels)      {}
func (deaf) Span(*sim.Span)                           {}
func (deaf) Gap(int, clock.Time, clock.Duration, int) {}
func (deaf) Preempted(int, clock.Time)                {}
func (deaf) Dropped(int, clock.Time, int)             {}
func (deaf) Finished(*sim.Record)                     {}
