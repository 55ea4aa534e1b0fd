package report

import (
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Detail has the data of a run that pictures need beyond its [Summary]. It belongs to one run, also if several are
// pooled.
type Detail struct {
	// Distributions over the window, in milliseconds: what the summary's latencies are of.
	TTFT, TPOT, E2E, ITL stats.Shape
	// Series is the run in buckets of time.
	Series []SeriesPoint
	// Gantt is how the run began; nil where it was not recorded.
	Gantt *Gantt
}

// Gantt holds the first iterations and the first requests of a run. A [collect.Collector] fills an empty one.
type Gantt struct {
	Iterations []Iteration
	Requests   []Phases // in order of arrival
}

// Iteration is one iteration of a replica's batch.
type Iteration struct {
	Start, End    clock.Time
	Replica       int
	Decodes       int // sequences that decoded
	PrefillTokens int // of prompts, those computed again after a preemption among them
}

// Phases are the instants of a request, [clock.Never] where it did not come so far.
type Phases struct {
	ID                                          int64
	Arrival, Queued, Scheduled, FirstToken, End clock.Time
	InputTokens, OutputTokens                   int32
	Outcome                                     event.Outcome
}
