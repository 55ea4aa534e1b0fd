package route

import "clifftop/workload"

var roundRobinRule = Rule{
	Name:   "round-robin",
	Does:   "the replicas in turn; begins anew when their set changes",
	Source: "nginx, Kubernetes services",
	New:    func() Options { return new(RoundRobin) },
}

// RoundRobin sends requests to the endpoints in turn. It starts again from the first when the set of endpoints changes.
type RoundRobin struct {
	next, generation int
}

var _ Router = (*RoundRobin)(nil)

// Make implements [Options].
func (p *RoundRobin) Make(Identity) Router { made := *p; return &made }

// Route implements [Router].
func (p *RoundRobin) Route(v View, _ *workload.Request) int {
	if g := v.Generation(); g != p.generation {
		p.next, p.generation = 0, g
	}
	if p.next >= v.Len() {
		p.next = 0
	}
	k := p.next
	p.next++
	return k
}
