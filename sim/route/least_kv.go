package route

import "clifftop/workload"

// LeastKV sends a request to the endpoint with the lowest KV cache usage at the last scrape, a random one of equals.
// Between scrapes it has the herd effect of [LeastQueue]; moreover, the usage says little about the queue.
type LeastKV struct {
	ID    Identity
	draws draws
	least least
}

var (
	_ Router   = (*LeastKV)(nil)
	_ Requirer = (*LeastKV)(nil)
)

// Requirements implements [Requirer].
func (p *LeastKV) Requirements() Requirements { return Requirements{KVUsage: true} }

// Route implements [Router].
func (p *LeastKV) Route(v View, _ *workload.Request) int {
	p.least.begin()
	for k := range v.Len() {
		m := v.Metrics(k)
		p.least.offer(k, m.KVUsage())
	}
	return p.least.any(&p.draws, &p.ID)
}
