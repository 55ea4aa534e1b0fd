package live

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

// source is the source of requests that come from outside. While none is pending it announces one at [clock.Never], as
// [clifftop/sim.Simulation.Advance] wants it.
type source struct {
	pending []workload.Request
}

var _ workload.Source = (*source)(nil)

// push adds a request, which arrives not before those that are pending.
func (s *source) push(r *workload.Request) { s.pending = append(s.pending, *r) }

// Peek implements [workload.Source].
func (s *source) Peek() (at clock.Time, ok bool) {
	if len(s.pending) == 0 {
		return clock.Never, true
	}
	return s.pending[0].Arrival, true
}

// Next implements [workload.Source].
func (s *source) Next() workload.Request {
	r := s.pending[0]
	n := copy(s.pending, s.pending[1:])
	s.pending[n] = workload.Request{}
	s.pending = s.pending[:n]
	return r
}

// Done implements [workload.Source]. A client that sends a request again submits a new one.
func (s *source) Done(*workload.Request, workload.End) bool { return false }

// Err implements [workload.Source].
func (s *source) Err() error { return nil }
