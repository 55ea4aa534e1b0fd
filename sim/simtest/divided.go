package simtest

import (
	"fmt"
	"maps"
	"slices"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/workload"
)

// divided is replicas some of which compute prompts for the others, plainly: a naive engine for each life of each, and one
// network for all. Which replica is sent what, and when lives begin, it is told.
type divided struct {
	sim.Disaggregation
	network  *Network
	lives    [][]*part // by replica, in order
	present  []int     // which of them is there, or was last
	computed map[int64]*computed
	// released holds the requests that end without a decode replica, and when: their KV need not be kept any longer.
	released map[int64]clock.Time
}

// computed is a request whose prompt was computed by a replica for another.
type computed struct {
	rec event.Record
	by  *part
}

// part is the life of a replica that does a part of the work on requests.
type part struct {
	*naive
	of      *divided
	replica int
	begins  clock.Time
	drains  clock.Time
	ends    clock.Time // it crashes, or its time to drain is over
	over    bool
	cut     int             // loads from it that it ended
	answers map[int64]int32 // tokens that the clients of prompts want
}

// newDivided has the links of replicas, and no lives yet.
func newDivided(d sim.Disaggregation) *divided {
	x := &divided{Disaggregation: d, network: new(Network), computed: make(map[int64]*computed)}
	x.network.Bandwidth = slices.Concat(d.Egress, d.Ingress)
	for range x.network.Bandwidth {
		x.lives, x.present = append(x.lives, nil), append(x.present, 0)
	}
	return x
}

// addLife appends a life of a replica: from begins on, draining at drains, and stopped at ends.
func (d *divided) addLife(replica int, begins, drains, ends clock.Time) *part {
	p := &part{of: d, replica: replica, begins: begins, drains: drains, ends: ends}
	d.lives[replica] = append(d.lives[replica], p)
	return p
}

// begun reports whether the life has an engine.
func (p *part) begun() bool { return p.naive != nil }

// prefills says that it computes prompts for others.
func (p *part) prefills() bool { return p.replica < p.of.Prefills }

// start makes the engine of a life, with the tiers that the one before has left. The source sends the requests, and a prefill
// replica computes one output token of each: start writes that into the list.
func (p *part) start(cfg engine.Config, requests []workload.Request, src workload.Source, obs event.Observer, life Life) {
	connector := *cfg.Connector
	connector.Handoff, cfg.Connector = p.leg, &connector
	if p.prefills() {
		p.answers = make(map[int64]int32)
		for i := range requests {
			r := &requests[i]
			p.answers[r.ID], r.OutputTokens = r.OutputTokens, 1
		}
	}
	p.naive = newNaive(cfg, src, obs, life, p.of.network)
	p.naive.part = p
}

// leg is what the replica does of a request.
func (p *part) leg(r *workload.Request) (leg engine.Handoff) {
	switch c := p.of.computed[r.ID]; {
	case p.prefills():
		if leg.Lease = p.of.Lease; leg.Lease == 0 {
			leg.Lease = clock.MaxRun
		}
	case c != nil:
		leg.Remote = engine.Remote{Tokens: r.InputTokens, Layers: p.of.Layers, Latency: p.of.Latency, Path: []int32{int32(c.by.replica), int32(p.replica)}}
	}
	return leg
}

// computedBefore is how much of a request was computed before it came here.
func (p *part) computedBefore(r *workload.Request) int32 {
	if p.source(r) == nil {
		return 0
	}
	return r.InputTokens
}

// source is who computed the prompt of a request; nil if nobody did.
func (p *part) source(r *workload.Request) *part {
	if c := p.of.computed[r.ID]; c != nil && !p.prefills() {
		return c.by
	}
	return nil
}

// keeps says that the KV of a request is kept for another replica.
func (p *part) keeps(id int64, at clock.Time) bool {
	return slices.ContainsFunc(p.elsewhere.leases, func(l *lease) bool { return l.seq.rec.Request.ID == id && l.until > at })
}

// release ends the lease of a request.
func (p *part) release(id int64, at clock.Time) {
	for _, l := range p.elsewhere.leases {
		if l.seq.rec.Request.ID == id {
			l.until = min(l.until, at)
		}
	}
}

// ended takes the end of a request at this replica, and says whether that is all that anybody learns of it.
func (p *part) ended(s *sequence, at clock.Time) bool {
	id := s.rec.Request.ID
	if p.prefills() {
		s.rec.Request.OutputTokens = p.answers[id]
		if s.rec.Outcome == event.Completed {
			p.of.computed[id] = &computed{s.rec, p}
			p.obs.Dropped(at, 1) // the token is for nobody
		}
		return s.rec.Outcome == event.Completed
	}
	if c := p.of.computed[id]; c != nil {
		c.by.release(id, at)
		c.join(&s.rec)
	}
	return false
}

// join makes one record of two.
func (c *computed) join(rec *event.Record) {
	first, g := &c.rec, &rec.GPU
	rec.HandedOver, rec.PrefilledBy = true, c.by.replica
	rec.Between = min(rec.Queued, rec.Released).Sub(first.Released)
	rec.Queued, rec.Scheduled, rec.PassedOver = first.Queued, first.Scheduled, first.PassedOver
	rec.CachedTokens, rec.LaterCachedTokens = first.CachedTokens, rec.LaterCachedTokens+first.LaterCachedTokens
	rec.LoadedTokens, rec.Loading = first.LoadedTokens, first.Loading
	rec.RecomputedTokens += first.RecomputedTokens
	rec.LostTokens += first.LostTokens
	rec.Preemptions += first.Preemptions
	g.Prefill, g.Recomputed, g.Lost = g.Prefill+first.GPU.Prefill, g.Recomputed+first.GPU.Recomputed, g.Lost+first.GPU.Lost
	g.Decode, g.Drafts = g.Decode+first.GPU.Decode, g.Drafts+first.GPU.Drafts
}

// there are the replicas whose present life is not over.
func (d *divided) there() (list []*part) {
	for i, k := range d.present {
		if k < len(d.lives[i]) && d.lives[i][k].naive != nil && !d.lives[i][k].over {
			list = append(list, d.lives[i][k])
		}
	}
	return list
}

// next is the next instant at which anything happens, or Never.
func (d *divided) next() clock.Time {
	at := d.network.Next()
	for _, t := range d.released {
		at = min(at, t)
	}
	for i, k := range d.present {
		if p := d.lives[i][k]; p.over && k+1 < len(d.lives[i]) {
			at = min(at, d.lives[i][k+1].begins)
		}
	}
	for _, p := range d.there() {
		at = min(at, p.nextClientInstant(), p.ends)
		if p.drains > d.network.now {
			at = min(at, p.drains)
		}
		if len(p.inFlight) > 0 {
			at = min(at, p.inFlight[0].end)
		} else if p.due(d.network.now) {
			at = min(at, d.network.now)
		}
		for _, l := range p.elsewhere.leases {
			if l.until > d.network.now && l.until < clock.Time(clock.MaxRun) {
				at = min(at, l.until)
			}
		}
	}
	return at
}

// run follows all lives to their ends.
func (d *divided) run(begin func(*part)) error {
	for i := range d.lives {
		begin(d.lives[i][0])
	}
	d.came(nil, 0) // some are not there at first
	for turns := 0; ; turns++ {
		at := d.next()
		if at == clock.Never {
			return nil
		}
		if turns > mostIterations {
			return fmt.Errorf("at %v: after %d turns the naive fleet seems to get nowhere", at, turns)
		}
		arrived := d.network.To(at)
		for _, p := range d.there() {
			if p.ends <= at {
				p.end(at, true)
			}
		}
		for i, k := range d.present {
			if p := d.lives[i][k]; p.over && k+1 < len(d.lives[i]) && d.lives[i][k+1].begins <= at {
				d.present[i]++
				begin(d.lives[i][k+1])
			}
		}
		maps.DeleteFunc(d.released, func(request int64, t clock.Time) bool {
			if c := d.computed[request]; t <= at && c != nil {
				c.by.release(request, at)
			}
			return t <= at
		})
		d.came(arrived, at)
		if err := d.act(at); err != nil {
			return err
		}
		for _, p := range d.there() {
			p.tellLevels(at)
		}
	}
}

// came takes what has arrived, and lets lives end that have nothing left to do.
func (d *divided) came(arrived []*Transfer, at clock.Time) {
	for _, p := range d.there() {
		p.naive.came(arrived, at)
	}
	for _, p := range d.there() {
		copies := slices.ContainsFunc(p.elsewhere.tiers, func(t *tier) bool { return t.Persistent && t.copies != nil })
		leases := slices.ContainsFunc(p.elsewhere.leases, func(l *lease) bool { return l.until > at })
		if p.drains <= at && p.system == 0 && p.nextClientInstant() == clock.Never && !copies && !leases {
			p.tellLevels(at)
			p.end(at, false)
		}
	}
}

// act lets the replicas have their turns at an instant, always the first that has one.
func (d *divided) act(at clock.Time) error {
	for _, p := range d.there() {
		p.clients(at)
	}
	for {
		list := d.there()
		i := slices.IndexFunc(list, func(p *part) bool { return p.acts(at, p.due(at)) })
		if i < 0 {
			return nil
		}
		if err := list[i].act(at); err != nil {
			return err
		}
		d.came(d.network.To(at), at)
	}
}

// end ends the life at hand: nothing goes to it any more, nor from it.
func (p *part) end(at clock.Time, crashed bool) {
	if p.over = true; crashed {
		p.crash(at)
		p.tellLevels(at)
	}
	p.leaveTiers(crashed)
	p.giveUp(at)
	p.elsewhere.leases = nil
	for _, other := range p.of.there() {
		for _, l := range other.elsewhere.loads {
			if l.from != p || len(l.parts) == 0 {
				continue
			}
			p.of.network.Stop(l.parts[0])
			l.parts, l.fails = nil, true
			p.cut++
		}
	}
}
