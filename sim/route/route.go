package route

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

// Router chooses endpoints. One router handles one stream of requests; it may keep state.
type Router interface {
	// Route returns the position of the endpoint that serves r, from 0 to v.Len()-1. It is called once for each request
	// that the router sends, if there is an endpoint.
	Route(v View, r *workload.Request) int
}

// View is the set of endpoints that a router may choose from: the replicas that are ready and that can serve the
// request, ordered by number.
type View interface {
	// Now is the instant at which the router decides.
	Now() clock.Time
	// Len is the number of endpoints.
	Len() int
	// Replica is the number of the replica at a position. It does not change when endpoints are added or removed.
	Replica(k int) int
	// Metrics are the metrics of the replica at a position at the last scrape.
	Metrics(k int) Metrics
	// Sent counts what this router has sent to the replica at a position.
	Sent(k int) Sent
	// Cached is the number of leading prompt tokens of r that the prefix cache of the replica at a position holds now,
	// as its KV events report; 0 without a cache.
	Cached(k int, r *workload.Request) int32
	// Generation counts the changes of the set of ready replicas. At one generation, long requests may have fewer
	// endpoints than short ones.
	Generation() int
}

// Metrics are the gauges of a serving engine.
type Metrics struct {
	// At is the instant of the metrics.
	At clock.Time
	// Waiting and Running are numbers of requests, in the engine's queue and in its batch.
	Waiting, Running int
	// UsedBlocks of UsableBlocks KV blocks were referenced.
	UsedBlocks, UsableBlocks int
	// QueuedTokens are prompt tokens of waiting and running requests that were not computed.
	QueuedTokens int64
}

// KVUsage is the fraction of the KV pool in use, 0 where it is unlimited.
func (m *Metrics) KVUsage() float64 {
	const unlimited = 1 << 40
	if m.UsableBlocks <= 0 || m.UsableBlocks >= unlimited {
		return 0
	}
	return float64(m.UsedBlocks) / float64(m.UsableBlocks)
}

// Sent counts what a router has sent to an endpoint.
type Sent struct {
	// Outstanding is the number of requests that have not ended; OutstandingTokens are their prompt and output tokens.
	Outstanding       int
	OutstandingTokens int64
	// SinceScrape is the number of requests sent since the last scrape; 0 if metrics are current.
	SinceScrape int
}
