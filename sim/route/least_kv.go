package route

import "clifftop/workload"

var leastKVRule = Rule{
	Name:   "least-kv",
	Does:   "the least part of the KV cache in use, as the replicas told it last",
	Source: "gateways that scrape vLLM",
	New:    func() Options { return new(LeastKV) },
}

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

// Make implements [Options].
func (p *LeastKV) Make(id Identity) Router { made := *p; made.ID = id; return &made }

// Requirements implements [Requirer].
func (p *LeastKV) Requirements() Requirements { return Requirements{KVUsage: true, Metrics: true} }

// Route implements [Router].
func (p *LeastKV) Route(v View, _ *workload.Request) int {
	p.least.begin()
	for k := range v.Len() {
		m := v.Metrics(k)
		p.least.offer(k, m.KVUsage())
	}
	return p.least.any(&p.draws, &p.ID)
}
