package route

import "clifftop/workload"

// LeastKV sends a request where the least part of the KV cache was in use at the last scrape, to one at random of
// equals. It has a herd between scrapes as [LeastQueue] has, and one of another kind too: what is in use says little of
// what waits.
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
