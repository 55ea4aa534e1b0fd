package sim

import "clifftop/workload"

// Warm fills the prefix cache before the run with what an earlier request left there: its prompt and all of its output
// but the last token, as if it had been served alone. It takes no time and is not counted. If the cache is full, the
// least recently used blocks are evicted. Without a prefix cache, or a ready replica, it does nothing. The request's ID
// must not occur in the run.
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
		t.rule.Ended(t, int(to), q) // a router that counts requests itself must not count it as outstanding
	}
	e.replicas[to].Warm(q)
	if e.caches.observed {
		e.reportCaches(e.now)
	}
}
