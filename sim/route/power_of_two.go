package route

import "clifftop/workload"

var powerOfTwoRule = Rule{
	Name:   "power-of-two",
	Does:   "the less loaded of two drawn at random",
	Source: "Mitzenmacher 2001; Ray Serve",
	New:    func() Options { return new(PowerOfTwo) },
}

// PowerOfTwo draws two endpoints at random and takes the one with less load, the first one of equals: the power of two
// choices (Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001). It also works with stale
// loads, since routers do not all prefer the same endpoint.
type PowerOfTwo struct {
	ID Identity
	// Scraped compares the waiting and running requests of the last scrape, as SGLang's router and Ray Serve do.
	Scraped bool `json:"load" one:"outstanding scraped" doc:"compares own outstanding requests, or scraped metrics"`
	draws   draws
}

var (
	_ Router   = (*PowerOfTwo)(nil)
	_ Requirer = (*PowerOfTwo)(nil)
)

// Make implements [Options].
func (p *PowerOfTwo) Make(id Identity) Router { made := *p; made.ID = id; return &made }

// Requirements implements [Requirer].
func (p *PowerOfTwo) Requirements() Requirements { return Requirements{Metrics: p.Scraped} }

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
