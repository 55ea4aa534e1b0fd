package route

import "clifftop/workload"

var randomRule = Rule{
	Name:   "random",
	Does:   "any replica, all being equally likely",
	Source: "theory: a Poisson stream stays one",
	New:    func() Options { return new(Random) },
}

// Random sends each request to a random endpoint with equal probabilities. Poisson arrivals stay Poisson at each
// endpoint, so that n single servers are n M/G/1 queues.
type Random struct {
	ID    Identity
	draws draws
}

var _ Router = (*Random)(nil)

// Make implements [Options].
func (p *Random) Make(id Identity) Router { made := *p; made.ID = id; return &made }

// Route implements [Router].
func (p *Random) Route(v View, _ *workload.Request) int { return p.draws.below(&p.ID, v.Len()) }
