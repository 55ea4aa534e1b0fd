package route

import "clifftop/workload"

// Random sends each request to an endpoint at random, all being equally likely. Poisson arrivals stay Poisson at each
// of them, so that n single servers are n queues M/G/1.
type Random struct {
	ID    Identity
	draws draws
}

var _ Router = (*Random)(nil)

// Route implements [Router].
func (p *Random) Route(v View, _ *workload.Request) int { return p.draws.below(&p.ID, v.Len()) }
