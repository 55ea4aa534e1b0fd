package route

import "clifftop/workload"

// LeastQueue sends a request to the shortest queue of the last scrape. Between scrapes it sends all requests to one
// endpoint, the herd effect (Mitzenmacher, "How Useful Is Old Information?", 2000), unless it adds what it has sent
// itself. Several routers do not see each other's requests.
type LeastQueue struct {
	ID Identity
	// Running counts the requests of the batch too. Without it, endpoints are equal until one is full.
	Running bool
	// Local adds the requests that this router has sent since the last scrape.
	Local bool
	// Random takes one of equals at random, and not the first.
	Random bool
	draws  draws
	least  least
}

var _ Router = (*LeastQueue)(nil)

// Route implements [Router].
func (p *LeastQueue) Route(v View, _ *workload.Request) int {
	p.least.begin()
	for k := range v.Len() {
		m := v.Metrics(k)
		load := m.Waiting
		if p.Running {
			load += m.Running
		}
		if p.Local {
			load += v.Sent(k).SinceScrape
		}
		p.least.offer(k, float64(load))
	}
	if p.Random {
		return p.least.any(&p.draws, &p.ID)
	}
	return p.least.first()
}
