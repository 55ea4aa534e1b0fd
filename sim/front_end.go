package sim

import (
	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// frontEnd keeps the requests in flight to the router or to the queue of a replica, and those that wait at
// the router.
type frontEnd struct {
	due      pq.Queue[int32] // numbers of the requests in flight, by the instant of arrival and ID
	requests []pendingRequest
	vacant   []int32 // numbers that are free
	// surelyFits is the length up to which all replicas serve prompts, see [engine.Config.SurelyFits].
	surelyFits int32
}

// pendingRequest is a request that has not reached the queue of a replica.
type pendingRequest struct {
	workload.Request
	to int32 // the replica, or noReplica before the router has chosen it
}

// place returns a free number.
func (f *frontEnd) place() int32 {
	if n := len(f.vacant); n > 0 {
		i := f.vacant[n-1]
		f.vacant = f.vacant[:n-1]
		return i
	}
	f.requests = append(f.requests, pendingRequest{})
	return int32(len(f.requests) - 1)
}

// remove frees the number of a request.
func (f *frontEnd) remove(i int32) { f.vacant = append(f.vacant, i) }

// push plans the arrival of request i, whose ID is given.
func (f *frontEnd) push(at clock.Time, id int64, i int32) {
	f.due.Push(pq.Item[int32]{Key: int64(at), Tie: id, Value: i})
}

// next is the instant of the next arrival, or Never.
func (f *frontEnd) next() clock.Time {
	if f.due.Len() == 0 {
		return clock.Never
	}
	return clock.Time(f.due.Top().Key)
}
