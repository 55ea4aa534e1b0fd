package trace

import "clifftop/workload"

// Row is a row of a trace: a request and its follow-ups.
type Row struct {
	workload.Request
	// Then are requests of the same session. Each is sent when the previous one is complete and its wait is
	// over.
	Then []Turn
}

// Turn is a request that waits for the output of the previous one.
type Turn = workload.FollowUp

// Requests returns the number of requests of the row.
func (r *Row) Requests() int64 { return int64(1 + len(r.Then)) }
