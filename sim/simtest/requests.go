package simtest

import (
	"cmp"
	"slices"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Requests is a source of given requests, in an open or a closed loop, whose clients may try again. It records when
// they were done.
type Requests struct {
	list    []workload.Request // those given, and further attempts
	origin  []int              // which of those given each is an attempt of
	given   int
	users   int   // of a closed loop
	next    []int // indices of the requests that are certain to be sent, by arrival and index
	sent    []int // indices of the requests sent, by ID
	retries Retries
	// Ended are the calls of Done, in their order.
	Ended []Ended
}

// Ended is a call of [workload.Source.Done].
type Ended struct {
	Request int64
	workload.End
	Again bool
}

// Retries says when clients try again after timeouts, rejections and lost connections: how often, and how long after
// the end.
type Retries struct {
	Most  int32
	Delay clock.Duration
	// Scatter draws each delay as a different fraction of Delay.
	Scatter bool
}

// again returns how long after its end a client sends r once more; ok is false if it does not.
func (p *Retries) again(r *workload.Request, how workload.Ending) (delay clock.Duration, ok bool) {
	switch how {
	case workload.TimedOutFirst, workload.TimedOut, workload.RefusedBusy, workload.Disconnected:
	default:
		return 0, false
	}
	if r.Attempt() >= p.Most {
		return 0, false
	}
	if delay = p.Delay; p.Scatter {
		id, _ := r.First()
		parts := hasher{uint64(id)}
		parts.add(int64(r.Attempt()))
		delay = delay * clock.Duration(parts.sum%9) / 8
	}
	return delay, true
}

var _ workload.Source = (*Requests)(nil)

// NewRequests is a source of a copy of the list, in order of arrival. Requests are numbered anew in
// that order.
func NewRequests(list []workload.Request) *Requests { return NewClosedLoop(list, len(list)) }

// NewClosedLoop is a source of a copy of the list for a number of users that take turns. The first request of each user
// is sent at its Arrival. For all others Arrival is the time after the end of the user's previous request. Requests are
// renumbered in the order in which they are sent.
func NewClosedLoop(list []workload.Request, users int) *Requests {
	r := &Requests{list: slices.Clone(list), given: len(list), users: users}
	for i := range list {
		r.origin = append(r.origin, i)
		if i < users {
			r.schedule(i)
		}
	}
	return r
}

// Retry makes clients try again.
func (r *Requests) Retry(p Retries) *Requests {
	r.retries = p
	for i := range r.list {
		if p.Most == 0 {
			break
		}
		persistent := workload.Client{}
		if c := r.list[i].Client; c != nil {
			persistent = *c
		}
		persistent.MayRetry = true
		r.list[i].Client = &persistent
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
func (r *Requests) Done(q *workload.Request, end workload.End) (again bool) {
	origin := r.origin[r.sent[q.ID]]
	if delay, ok := r.retries.again(q, end.How); ok {
		again = true
		r.retry(q, end, delay, origin)
	} else if i := origin + r.users; i < r.given {
		r.list[i].Arrival = end.At.Add(clock.Duration(r.list[i].Arrival))
		r.schedule(i)
	}
	r.Ended = append(r.Ended, Ended{q.ID, end, again})
	return again
}

// retry sends q once more.
func (r *Requests) retry(q *workload.Request, end workload.End, delay clock.Duration, origin int) {
	client, next := *q.Client, *q
	client.First, client.Sent = q.First()
	client.Attempt++
	client.Earlier = client.Earlier.With(end.How)
	next.Client, next.Arrival = &client, end.At.Add(delay)
	r.list, r.origin = append(r.list, next), append(r.origin, origin)
	r.schedule(len(r.list) - 1)
}

// Err implements [workload.Source].
func (r *Requests) Err() error { return nil }
