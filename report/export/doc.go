// Package export writes runs in the formats of other tools: a timeline for Perfetto, metrics for Prometheus under
// vLLM's names with a dashboard for Grafana, the detailed result of vLLM's benchmark, and a table of iterations.
//
// An export is an [event.Observer]: it receives the events of a run while the run goes on, and keeps only the state
// that it needs.
package export

import "clifftop/sim/event"

// atReplica observes one replica for an export.
type atReplica[E any] struct {
	event.Ignore
	export  E
	replica int
}
