package route

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

// Router chooses endpoints. One router serves one stream of requests; it may keep state.
type Router interface {
	// Route returns the position of the endpoint that serves r, from 0 to v.Len()-1. It is called once for each
	// request that the router sends, and only where there is an endpoint.
	Route(v View, r *workload.Request) int
}

// View shows a router the endpoints among which it may choose: the replicas that are ready and for which the
// request is not too long, in order of their numbers.
type View interface {
	// Now is the instant at which the router decides.
	Now() clock.Time
	// Len is the number of endpoints.
	Len() int
	// Replica is the number of the replica at a position. It stays the same while endpoints come and go.
	Replica(k int) int
	// Metrics are what the replica at a position said of itself at the last scrape.
	Metrics(k int) Metrics
	// Sent is what this router has sent to the replica at a position.
	Sent(k int) Sent
	// Cached is the number of leading prompt tokens of r that the prefix cache of the replica at a position holds now,
	// as its KV events tell; 0 where it has none.
	Cached(k int, r *workload.Request) int32
	// Generation counts the changes of which replicas are ready. Among them, long requests may have fewer endpoints
	// than short ones.
	Generation() int
}

// Metrics are the gauges of a serving engine.
type Metrics struct {
	// At is when they were true.
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

// Sent is what a router knows of an endpoint from its own doing.
type Sent struct {
	// Outstanding requests were sent there and have not ended; OutstandingTokens are their tokens, of prompts and
	// answers.
	Outstanding       int
	OutstandingTokens int64
	// SinceScrape is the number of requests sent there since the last scrape; 0 where metrics are those of now.
	SinceScrape int
}
