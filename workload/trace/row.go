package trace

import "clifftop/workload"

// Row is a row of a trace: a request, and what its client asks for once that is answered.
type Row struct {
	workload.Request
	// Then are requests of the same session. Each is sent when the one before it has been answered and
	// its wait is over, whenever that is.
	Then []Turn
}

// Turn is a request that waits for the answer to the one before.
type Turn = workload.FollowUp

// Requests is the number of requests of the row.
func (r *Row) Requests() int64 { return int64(1 + len(r.Then)) }
