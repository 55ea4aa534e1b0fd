package route

import "clifftop/workload"

var leastQueueRule = Rule{
	Name:   "least-queue",
	Does:   "the shortest queue, as the replicas told it last",
	Source: "Mitzenmacher 2000; gateways that scrape vLLM",
	New:    func() Options { return new(LeastQueue) },
}

// LeastQueue sends a request to the shortest queue of the last scrape. Between scrapes it sends all requests to one
// endpoint, the herd effect (Mitzenmacher, "How Useful Is Old Information?", 2000), unless it adds what it has sent
// itself. Several routers do not see each other's requests.
type LeastQueue struct {
	ID Identity
	// Random takes one of equals at random, and not the first.
	Random bool `json:"ties" one:"first random" doc:"which of equally good replicas is taken"`
	// Running counts the requests of the batch too. Without it, endpoints are equal until one is full.
	Running bool `json:"running" doc:"adds running requests to waiting ones"`
	Local   bool `json:"local" doc:"adds what this router has sent since the last scrape"`

	draws draws
	least least
}

var (
	_ Router   = (*LeastQueue)(nil)
	_ Requirer = (*LeastQueue)(nil)
)

// Make implements [Options].
func (p *LeastQueue) Make(id Identity) Router { made := *p; made.ID = id; return &made }

// Requirements implements [Requirer].
func (p *LeastQueue) Requirements() Requirements { return Requirements{Metrics: true} }

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
