package route

import "clifftop/workload"

// PowerOfTwo draws two endpoints at random and takes the one with less load, the first one of equals: the power of two
// choices (Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001). It also works with stale
// loads, since routers do not all prefer the same endpoint.
type PowerOfTwo struct {
	ID Identity
	// Scraped compares the waiting and running requests of the last scrape, as SGLang's router and Ray Serve do.
	// Otherwise the outstanding requests of this router are compared.
	Scraped bool
	draws   draws
}

var _ Router = (*PowerOfTwo)(nil)

// Route implements [Router].
func (p *PowerOfTwo) Route(v View, _ *workload.Request) int {
	n := v.Len()
	if n == 1 {
		return 0
	}
	a, b := p.draws.below(&p.ID, n), p.draws.below(&p.ID, n-1)
	if b >= a {
		b++
	}
	if p.load(v, b) < p.load(v, a) {
		return b
	}
	return a
}

func (p *PowerOfTwo) load(v View, k int) int {
	if !p.Scraped {
		return v.Sent(k).Outstanding
	}
	m := v.Metrics(k)
	return m.Waiting + m.Running
}
