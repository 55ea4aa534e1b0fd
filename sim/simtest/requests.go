package simtest

import (
	"cmp"
	"slices"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Requests is a source of given requests. It notes when clients were done.
type Requests struct {
	list []workload.Request
	next int
	// Ended are the calls of Done, in their order.
	Ended []Ended
}

// Ended is a call of [workload.Source.Done].
type Ended struct {
	Request int64
	At      clock.Time
}

var _ workload.Source = (*Requests)(nil)

// NewRequests is a source of a copy of the list, in order of arrival. Requests are numbered anew in
// that order.
func NewRequests(list []workload.Request) *Requests {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b workload.Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
	for i := range list {
		list[i].ID = int64(i)
	}
	return &Requests{list: list}
}

// Peek implements [workload.Source].
func (r *Requests) Peek() (at clock.Time, ok bool) {
	if r.next == len(r.list) {
		return clock.Never, false
	}
	return r.list[r.next].Arrival, true
}

// Next implements [workload.Source].
func (r *Requests) Next() workload.Request {
	r.next++
	return r.list[r.next-1]
}

// Done implements [workload.Source].
func (r *Requests) Done(q *workload.Request, at clock.Time) {
	r.Ended = append(r.Ended, Ended{q.ID, at})
}

// Err implements [workload.Source].
func (r *Requests) Err() error { return nil }
