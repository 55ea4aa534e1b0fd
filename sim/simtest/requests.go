package simtest

import (
	"cmp"
	"slices"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Requests is a source of given requests, in an open or a closed loop. It notes when clients were done.
type Requests struct {
	list  []workload.Request
	users int   // of a closed loop
	next  []int // indices of the requests that will be sent for sure, by arrival and index
	sent  []int // indices of the requests sent, by ID
	// Ended are the calls of Done, in their order.
	Ended []Ended
}

// Ended is a call of [workload.Source.Done].
type Ended struct {
	Request int64
	workload.End
}

var _ workload.Source = (*Requests)(nil)

// NewRequests is a source of a copy of the list, in order of arrival. Requests are numbered anew in
// that order.
func NewRequests(list []workload.Request) *Requests { return NewClosedLoop(list, len(list)) }

// NewClosedLoop is a source of a copy of the list for so many users, who take turns. The first request of
// each user is sent at its Arrival, every other so long as its Arrival says after the user's
// previous request was done. Requests are numbered anew in the order in which they are sent.
func NewClosedLoop(list []workload.Request, users int) *Requests {
	r := &Requests{list: slices.Clone(list), users: users}
	for i := range min(users, len(list)) {
		r.schedule(i)
	}
	return r
}

func (r *Requests) schedule(i int) {
	at, _ := slices.BinarySearchFunc(r.next, i, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.list[a].Arrival, r.list[b].Arrival), cmp.Compare(a, b))
	})
	r.next = slices.Insert(r.next, at, i)
}

// Peek implements [workload.Source].
func (r *Requests) Peek() (at clock.Time, ok bool) {
	if len(r.next) == 0 {
		return clock.Never, false
	}
	return r.list[r.next[0]].Arrival, true
}

// Next implements [workload.Source].
func (r *Requests) Next() workload.Request {
	i := r.next[0]
	r.next = r.next[1:]
	r.list[i].ID = int64(len(r.sent))
	r.sent = append(r.sent, i)
	return r.list[i]
}

// Done implements [workload.Source].
func (r *Requests) Done(q *workload.Request, end workload.End) bool {
	r.Ended = append(r.Ended, Ended{q.ID, end})
	if i := r.sent[q.ID] + r.users; i < len(r.list) {
		r.list[i].Arrival = end.At.Add(clock.Duration(r.list[i].Arrival))
		r.schedule(i)
	}
	return false
}

// Err implements [workload.Source].
func (r *Requests) Err() error { return nil }
