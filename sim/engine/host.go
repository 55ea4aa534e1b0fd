package engine

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Host is the simulation around an engine: its clients, the fleet, and the clock loop.
type Host interface {
	// Client returns the client of a request if it may leave, and nil if it may not, or if the request has ended.
	Client(request int64) *Client
	// Began is called when the first token of a request has been delivered at a replica.
	Began(r *workload.Request, replica int32)
	// Answered is called when the last token has been delivered to the client. The instants are in the record.
	Answered(rec *event.Record)
	// Done is called when a request ends for its client without being answered. It reports whether the client sends it
	// again.
	Done(r *workload.Request, end workload.End) bool
	// Ended is called when the engine has finished with a request, after Answered, Done or the client's departure.
	Ended(rec *event.Record)
	// Unserved is called when a request whose client has left is removed from the queue before its admission.
	Unserved(c *Client, at clock.Time)
	// ArrivalDue reports whether a request arrives, or reaches a queue, at the current instant.
	ArrivalDue() bool
	// Passed reports whether the turn of a replica at the instant at is over: at one instant, boundaries are handled in
	// the order of the replicas.
	Passed(replica int, at clock.Time) bool
}

// Setup is the environment of a new engine.
type Setup struct {
	Index     int // the number of its replica
	Host      Host
	Observers *event.Fanout
	Connector KVConnector // with [Config.Connector]; else nil
	// Before is the engine that had this place before, or nil. The new engine takes its place, and inherits the numbers
	// of requests by state, and the iterations that the GPU has not finished.
	Before *Engine
}

// env is the environment of an engine: its simulation and its place in the fleet.
type env struct {
	cfg   Config
	host  Host
	obs   *event.Fanout
	index int // its number in the fleet
}

// Index returns the number of the replica.
func (v *env) Index() int { return v.index }

// Config returns the configuration, which must not be changed.
func (v *env) Config() *Config { return &v.cfg }

// Observers returns the observers of the engine.
func (v *env) Observers() *event.Fanout { return v.obs }

// Methods for the fleet.

// Warm adds the KV of an earlier request to the prefix cache and the tiers. See [sim.Simulation.Warm].
func (e *Engine) Warm(q *workload.Request) {
	e.keepNames()
	blocks := e.space.warm(q)
	if c := e.remote.connector; c != nil {
		c.Warm(q, blocks)
	}
}

// UsedAt returns the number of blocks referenced just before an instant that is not past the next boundary.
func (e *Engine) UsedAt(at clock.Time) int {
	used := e.space.Used()
	if p := &e.ahead; p.N > 1 {
		composed := min(max(p.FirstEndAtOrAfter(at)+e.depth-1, 1), p.N)
		used += e.cohort.takes.over(e.cohort.steps, composed-1)
	}
	return used
}
