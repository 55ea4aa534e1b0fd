package sim

import (
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/route"
	"clifftop/workload"
)

// router is a routing rule and what it knows: the [route.View] of a fleet.
type router struct {
	*Simulation
	rule route.Bound
	own  []sentTo // by replica
	// choices are the replicas that can serve the request at hand.
	choices []int32
	// held are the leading blocks of its prompt, of asked tokens each, that can be found, by replica. asked is 0 before
	// the first question.
	asked int32
	path  []uint64 // their keys
	held  []int32
}

// sentTo is what a router has sent to a replica.
type sentTo struct {
	route.Sent
	scrape int // at which SinceScrape was last zero
}

var _ route.View = (*router)(nil)

func newFleet(f *Fleet, e *Simulation) fleet {
	n := len(e.replicas)
	t := fleet{next: newTournament(n), period: f.Scrape, scrape: clock.Never, isBehind: make([]bool, n)}
	t.blocked[0] = n
	for i := range n {
		t.ready = append(t.ready, int32(i))
		t.hashed = append(t.hashed, e.replicas[i].HashedBlocks())
		t.alike = i == 0 || t.alike && takeAlike(e.replicas[i].Config(), e.replicas[0].Config())
	}
	routers := func(rules []route.Router) (all []*router) {
		for _, rule := range rules {
			bound := route.Bind(rule)
			t.follow = t.follow || bound.ObservesRequests()
			all = append(all, &router{Simulation: e, rule: bound, own: make([]sentTo, n)})
		}
		return all
	}
	t.routers = routers(f.Routers)
	if e.disaggregated != nil {
		e.disaggregated.decoders, t.alike = routers(e.disaggregated.Decoders), false
	}
	if f.Scrape > 0 && len(f.Routers) > 0 {
		t.heard = make([]route.Metrics, n)
		for i, r := range e.replicas {
			t.heard[i] = r.metrics(0, 0)
		}
		t.scrape = clock.Time(f.Scrape)
	}
	return t
}

// route chooses the replica that serves r, which some replica can; none if those do not take requests.
func (e *Simulation) route(r *workload.Request) int32 {
	if len(e.ready) == 0 {
		return noReplica
	}
	if e.routers == nil {
		return 0
	}
	var t *router
	fits := func(i int32) bool { return !e.replicas[i].NeverFits(r) }
	switch s := e.disaggregated; {
	case s == nil:
		t = of(e.routers, r)
	case e.handedOff(r) || s.direct(r):
		t = of(s.decoders, r)
		fits = func(i int32) bool { return s.decodes(i) && !e.replicas[i].NeverFits(r) }
	default:
		t = of(e.routers, r)
		one := promptOnly(r)
		fits = func(i int32) bool { return s.prefills(i) && !e.replicas[i].NeverFits(one) }
	}
	t.choices, t.asked = e.ready, 0
	if !e.alike {
		t.choices = e.able[:0]
		for _, i := range e.ready {
			if fits(i) {
				t.choices = append(t.choices, i)
			}
		}
		if e.able = t.choices; len(t.choices) == 0 {
			return noReplica
		}
	}
	return t.choices[t.rule.Route(t, r)]
}

// of is the router of a request among those that take the requests in turn.
func of(routers []*router, r *workload.Request) *router {
	return routers[int(uint64(r.ID)%uint64(len(routers)))]
}

// routerTo is the router that sent a request to a replica.
func (e *Simulation) routerTo(r *workload.Request, to int32) *router {
	if e.disaggregated.decodes(to) {
		return of(e.disaggregated.decoders, r)
	}
	return of(e.routers, r)
}

// handedOff reports whether the prompt of a request has been computed by another replica than the one that answers.
func (e *Simulation) handedOff(r *workload.Request) bool {
	return e.disaggregated != nil && e.disaggregated.first[r.ID] != nil
}

// sent notes that a request was sent to a replica.
func (e *Simulation) sent(r *workload.Request, to int32) {
	if p := e.clients.Find(r.ID); p != nil {
		p.To = to
	}
	p := e.replicas[to]
	p.Levels().System++
	e.changed = p
	if p.own != nil {
		p.own.Arrived(r.Arrival, r)
	}
	if e.routers == nil {
		return
	}
	s := &e.routerTo(r, to).own[to]
	s.Outstanding++
	s.OutstandingTokens += int64(r.InputTokens) + int64(e.disaggregated.answer(r, to))
	if s.scrape != e.scrapes {
		s.scrape, s.SinceScrape = e.scrapes, 0
	}
	s.SinceScrape++
}

// over notes that a request has ended, which may have been sent to a replica.
func (e *Simulation) over(r *workload.Request, to int32) {
	if to == noReplica {
		return
	}
	e.changed = e.replicas[to]
	e.changed.Levels().System--
	if e.routers == nil {
		return
	}
	t := e.routerTo(r, to)
	s := &t.own[to]
	s.Outstanding--
	s.OutstandingTokens -= int64(r.InputTokens) + int64(e.disaggregated.answer(r, to))
	t.rule.Ended(t, int(to), r)
}

// began notes that the answer to a request begins.
func (e *Simulation) began(r *workload.Request, at int32) {
	t := e.routerTo(r, at)
	t.rule.Began(t, int(at), r)
}

// scrapeUpTo takes the last scrape that is due before the instant at: nothing has happened since the one before it
// that would not be known at its own instant.
func (e *Simulation) scrapeUpTo(at clock.Time) {
	last := clock.Time(int64(at-1) / int64(e.period) * int64(e.period))
	for i, r := range e.replicas {
		e.heard[i] = r.metrics(last, last+1) // what happens at an instant comes before its scrape
	}
	e.scrape = last.Add(e.period)
	e.scrapes++
}

// takeAlike reports whether two engines surely can serve the same requests.
func takeAlike(a, b *engine.Config) bool {
	return a.MaxModelLen == b.MaxModelLen && a.MaxTokens == b.MaxTokens && a.BlockSize == b.BlockSize &&
		a.UsableBlocks() == b.UsableBlocks() && a.Window == b.Window && a.AsyncScheduling == b.AsyncScheduling &&
		!a.Speculative.On() && !b.Speculative.On()
}

// Now implements [route.View].
func (t *router) Now() clock.Time { return t.now }

// Len implements [route.View].
func (t *router) Len() int { return len(t.choices) }

// Engine implements [route.View].
func (t *router) Replica(k int) int { return int(t.choices[k]) }

// Generation implements [route.View].
func (t *router) Generation() int { return t.generation }

// Metrics implements [route.View].
func (t *router) Metrics(k int) route.Metrics {
	if i := t.choices[k]; t.heard == nil {
		return t.replicas[i].metrics(t.now, t.replicas[i].Until(t.now))
	} else {
		return t.heard[i]
	}
}

// Sent implements [route.View].
func (t *router) Sent(k int) route.Sent {
	s := &t.own[t.choices[k]]
	if s.scrape != t.scrapes || t.heard == nil {
		s.SinceScrape = 0
	}
	return s.Sent
}
