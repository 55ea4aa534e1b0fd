package route

import "clifftop/workload"

var leastRequestsRule = Rule{
	Name:   "least-requests",
	Does:   "the fewest outstanding requests of this router",
	Source: "nginx least_conn, Envoy least request",
	New:    func() Options { return new(LeastRequests) },
}

// LeastRequests sends a request to the endpoint with the fewest outstanding requests of this router: join the shortest
// queue, as one router sees it. Production-stack falls back to a similar rule; nginx and Envoy call it least
// connections and least request.
type LeastRequests struct {
	ID    Identity
	First bool `json:"ties" one:"random first" doc:"which of equally good replicas is taken"`
	draws draws
	least least
}

var _ Router = (*LeastRequests)(nil)

// Make implements [Options].
func (p *LeastRequests) Make(id Identity) Router { made := *p; made.ID = id; return &made }

// Route implements [Router].
func (p *LeastRequests) Route(v View, _ *workload.Request) int {
	fewest(v, &p.least)
	if p.First {
		return p.least.first()
	}
	return p.least.any(&p.draws, &p.ID)
}

// fewest offers all endpoints by their outstanding requests.
func fewest(v View, l *least) {
	l.begin()
	for k := range v.Len() {
		l.offer(k, float64(v.Sent(k).Outstanding))
	}
}
