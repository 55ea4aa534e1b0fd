package sim

import (
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/workload"
)

// host is a simulation as its engines see it.
type host struct{ e *Simulation }

var _ engine.Host = host{}

// Client implements [engine.Host].
func (h host) Client(request int64) *engine.Client { return h.e.clients.Find(request) }

// Began implements [engine.Host].
func (h host) Began(r *workload.Request, replica int32) {
	h.e.noteBegan(r, replica)
}

// Answered implements [engine.Host].
func (h host) Answered(rec *event.Record) { h.e.answered(rec) }

// Done implements [engine.Host].
func (h host) Done(r *workload.Request, end workload.End) bool {
	if h.e.disaggregated != nil {
		h.e.disaggregated.restore(r)
	}
	return h.e.tell(r, end)
}

// Ended implements [engine.Host].
func (h host) Ended(rec *event.Record) { h.e.ended(rec) }

// Unserved implements [engine.Host].
func (h host) Unserved(c *engine.Client, at clock.Time) { h.e.leftUnserved(c, at) }

// ArrivalDue implements [engine.Host].
func (h host) ArrivalDue() bool { return h.e.dueNow() }

// Passed implements [engine.Host].
func (h host) Passed(replica int, at clock.Time) bool { return h.e.passed(replica, at) }
