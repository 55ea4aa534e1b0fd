package route

import "clifftop/workload"

// Random sends each request to a random endpoint with equal probabilities. Poisson arrivals stay Poisson at each
// endpoint, so that n single servers are n M/G/1 queues.
type Random struct {
	ID    Identity
	draws draws
}

var _ Router = (*Random)(nil)

// Route implements [Router].
func (p *Random) Route(v View, _ *workload.Request) int { return p.draws.below(&p.ID, v.Len()) }
