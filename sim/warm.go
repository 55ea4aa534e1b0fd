package sim

import "clifftop/workload"

// Warm puts into the prefix cache, before the run, what an earlier request left there: its prompt and all of its answer
// but the last token, as if it had been served alone. It costs no time and is in no count. The cache has the room that
// it has: what was used least recently goes. Without a prefix cache, or a replica that is ready, nothing happens. The
// request's ID is none of the run's.
func (e *Simulation) Warm(q *workload.Request) {
	if !e.fits(q) {
		return
	}
	to := e.route(q)
	if to == noReplica {
		return
	}
	if e.routers != nil {
		t := e.routerTo(q, to)
		t.rule.Ended(t, int(to), q) // otherwise a router that counts requests itself would take it for outstanding
	}
	e.replicas[to].Warm(q)
}
