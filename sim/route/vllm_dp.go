package route

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

var vllmDPRule = Rule{
	Name:   "vllm-dp",
	Does:   "the least 4·waiting + running, as told last, and what it has sent since",
	Source: "vLLM V1 (engine core client)",
	New:    func() Options { return new(VLLMDP) },
}

// VLLMDP is the load balancer in vLLM's data-parallel front ends. It takes the engine with the lowest 4·waiting +
// running; of equals the first one from the front end's own position on. Counts come from a coordinator every 100 ms.
// Between them a front end adds each request that it sends to waiting, once for each front end, because all front ends
// do the same (vLLM v1 engine core client, DPLBAsyncMPClient).
type VLLMDP struct {
	ID Identity
}

var (
	_ Router   = (*VLLMDP)(nil)
	_ Requirer = (*VLLMDP)(nil)
)

// Make implements [Options].
func (p *VLLMDP) Make(id Identity) Router { made := *p; made.ID = id; return &made }

// Requirements implements [Requirer].
func (p *VLLMDP) Requirements() Requirements {
	return Requirements{Metrics: true, Scrape: 100 * clock.Millisecond}
}

// Route implements [Router].
func (p *VLLMDP) Route(v View, _ *workload.Request) int {
	n, routers := v.Len(), p.ID.routers()
	start := n * p.ID.Number / routers % n
	best, least := 0, 0
	for i := range n {
		k := (start + i) % n
		m := v.Metrics(k)
		score := 4*(m.Waiting+v.Sent(k).SinceScrape*routers) + m.Running
		if i == 0 || score < least {
			best, least = k, score
		}
	}
	return best
}
