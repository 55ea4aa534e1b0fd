package sim

import (
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/route"
	"clifftop/workload"
)

// routing chooses the replica of each request, and keeps what the routers know.
type routing struct {
	fleet         *fleet
	disaggregated *disaggregator // nil where all replicas compute prompts and decode
	routers       []*router      // of requests or, where they are disaggregated, of prefills
	ready         []int32        // numbers of the replicas that take requests
	generation    int            // counts the changes of ready
	able          []int32        // scratch: the ready replicas that can serve a request
	alike         bool           // all replicas can serve the same requests
	follow        bool           // some router wants to know when outputs begin

	// The state that routers know is that of the last scrape before now. It is taken when the first event after the
	// scrape happens: nothing changed in between.
	period  clock.Duration
	scrape  clock.Time // the next one; Never where routers know the current state
	scrapes int
	heard   []route.Metrics // by replica
}

// init prepares the routing of all replicas of a fleet.
func (t *routing) init(f *Fleet, all *fleet) {
	*t = routing{fleet: all, period: f.Scrape, scrape: clock.Never}
	for i, r := range all.replicas {
		t.ready = append(t.ready, int32(i))
		t.alike = i == 0 || t.alike && takeAlike(r.Config(), all.replicas[0].Config())
	}
	t.routers = t.bind(f.Routers)
	if f.Scrape > 0 && len(f.Routers) > 0 {
		t.heard = make([]route.Metrics, len(all.replicas))
		for i, r := range all.replicas {
			t.heard[i] = r.metrics(0, 0)
		}
		t.scrape = clock.Time(f.Scrape)
	}
}

// bind makes routers of rules.
func (t *routing) bind(rules []route.Router) (all []*router) {
	for _, rule := range rules {
		bound := route.Bind(rule)
		t.follow = t.follow || bound.ObservesRequests()
		all = append(all, &router{routing: t, rule: bound, own: make([]sentTo, len(t.fleet.replicas))})
	}
	return all
}

// fits reports whether the replica that r addresses can serve it, or else some replica or, with disaggregation, one its
// prompt and one its output.
func (t *routing) fits(r *workload.Request) bool {
	if r.Replica > 0 {
		return !t.fleet.replicas[r.Replica-1].Config().NeverFits(r)
	}
	if s := t.disaggregated; s != nil && !s.direct(r) {
		return someFits(t.fleet.replicas[:s.Prefills], promptOnly(r)) && someFits(t.fleet.replicas[s.Prefills:], r)
	} else if s != nil {
		return someFits(t.fleet.replicas[s.Prefills:], r)
	}
	return someFits(t.fleet.replicas, r)
}

// someFits reports whether one of some replicas can serve r.
func someFits(among []*Replica, r *workload.Request) bool {
	for _, p := range among {
		if !p.Config().NeverFits(r) {
			return true
		}
	}
	return false
}

// route chooses the replica that serves r: the one that it addresses, if any. It returns noReplica if no listed replica
// can serve it.
func (t *routing) route(r *workload.Request) int32 {
	if r.Replica > 0 {
		return r.Replica - 1
	}
	if len(t.ready) == 0 {
		return noReplica
	}
	if t.routers == nil {
		return 0
	}
	var by *router
	fits := func(i int32) bool { return !t.fleet.replicas[i].Config().NeverFits(r) }
	switch s := t.disaggregated; {
	case s == nil:
		by = of(t.routers, r)
	case s.handedOff(r) || s.direct(r):
		by = of(s.decoders, r)
		fits = func(i int32) bool { return s.decodes(i) && !t.fleet.replicas[i].Config().NeverFits(r) }
	default:
		by = of(t.routers, r)
		one := promptOnly(r)
		fits = func(i int32) bool { return s.prefills(i) && !t.fleet.replicas[i].Config().NeverFits(one) }
	}
	by.choices, by.asked = t.ready, 0
	if !t.alike {
		by.choices = t.able[:0]
		for _, i := range t.ready {
			if fits(i) {
				by.choices = append(by.choices, i)
			}
		}
		if t.able = by.choices; len(by.choices) == 0 {
			return noReplica
		}
	}
	return by.choices[by.rule.Route(by, r)]
}

// of is the router of a request: the routers take the requests in turn.
func of(routers []*router, r *workload.Request) *router {
	return routers[int(uint64(r.ID)%uint64(len(routers)))]
}

// routerTo is the router that sent a request to a replica.
func (t *routing) routerTo(r *workload.Request, to int32) *router {
	if t.disaggregated.decodes(to) {
		return of(t.disaggregated.decoders, r)
	}
	return of(t.routers, r)
}

// noteSent notes that a request was sent to a replica.
func (t *routing) noteSent(r *workload.Request, to int32) {
	if t.routers == nil {
		return
	}
	s := &t.routerTo(r, to).own[to]
	s.Outstanding++
	s.OutstandingTokens += int64(r.InputTokens) + int64(t.disaggregated.outputOf(r, to))
	if s.scrape != t.scrapes {
		s.scrape, s.SinceScrape = t.scrapes, 0
	}
	s.SinceScrape++
}

// noteEnded notes that a request has ended that was sent to a replica.
func (t *routing) noteEnded(r *workload.Request, to int32) {
	if t.routers == nil {
		return
	}
	by := t.routerTo(r, to)
	s := &by.own[to]
	s.Outstanding--
	s.OutstandingTokens -= int64(r.InputTokens) + int64(t.disaggregated.outputOf(r, to))
	by.rule.Ended(by, int(to), r)
}

// noteBegan notes that a request's first token has been delivered at a replica.
func (t *routing) noteBegan(r *workload.Request, at int32) {
	if t.follow {
		by := t.routerTo(r, at)
		by.rule.Began(by, int(at), r)
	}
}

// setReady adds consecutive replicas to those that requests are sent to, or removes them.
func (t *routing) setReady(replicas []*Replica, ready bool) {
	t.generation++
	k, _ := slices.BinarySearch(t.ready, int32(replicas[0].Index()))
	if !ready {
		t.ready = slices.Delete(t.ready, k, k+len(replicas))
		return
	}
	for n, r := range replicas {
		t.ready = slices.Insert(t.ready, k+n, int32(r.Index()))
		if t.heard != nil {
			t.heard[r.Index()] = r.metrics(t.fleet.now, t.fleet.now)
		}
	}
}

// cacheReset notes that the caches of replica i are empty.
func (t *routing) cacheReset(i int) {
	for _, by := range t.routers {
		by.rule.CacheReset(i)
	}
	if t.disaggregated != nil {
		for _, by := range t.disaggregated.decoders {
			by.rule.CacheReset(i)
		}
	}
}

// scrapeUpTo takes the last scrape that is due before the instant at. Nothing has changed since the scrape before it.
func (t *routing) scrapeUpTo(at clock.Time) {
	last := clock.Time(int64(at-1) / int64(t.period) * int64(t.period))
	for i, r := range t.fleet.replicas {
		t.heard[i] = r.metrics(last, last+1) // events at the instant of a scrape come before it
	}
	t.scrape = last.Add(t.period)
	t.scrapes++
}

// takeAlike reports whether two engines can serve the same requests, as far as that is certain.
func takeAlike(a, b *engine.Config) bool {
	return a.MaxModelLen == b.MaxModelLen && a.MaxTokens == b.MaxTokens && a.BlockSize == b.BlockSize &&
		a.UsableBlocks() == b.UsableBlocks() && slices.Equal(a.Groups, b.Groups) &&
		a.AsyncScheduling == b.AsyncScheduling && !a.Speculative.On() && !b.Speculative.On()
}

// router is a routing rule with what it may see: the [route.View] of a fleet.
type router struct {
	*routing
	rule route.Bound
	own  []sentTo // by replica
	// choices are the replicas that can serve the current request.
	choices []int32
	// held are the leading blocks of its prompt that are cached, by replica. A block has asked tokens, 0 before the
	// first look-up.
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

// Now implements [route.View].
func (t *router) Now() clock.Time { return t.fleet.now }

// Len implements [route.View].
func (t *router) Len() int { return len(t.choices) }

// Replica implements [route.View].
func (t *router) Replica(k int) int { return int(t.choices[k]) }

// Generation implements [route.View].
func (t *router) Generation() int { return t.generation }

// Metrics implements [route.View].
func (t *router) Metrics(k int) route.Metrics {
	if i := t.choices[k]; t.heard == nil {
		return t.fleet.replicas[i].metrics(t.fleet.now, t.fleet.replicas[i].Until(t.fleet.now))
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
