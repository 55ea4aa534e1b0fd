package naive

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

// Disaggregated is a fleet with disaggregated prefill and decode: a naive engine for each instance of each replica, and
// one network for all. The caller decides which replica gets which request, and when instances start.
type Disaggregated struct {
	sim.Disaggregation
	network   *Network
	Instances [][]*Instance // by replica, in order of start
	present   []int         // the current instance of each replica, or the last one
	computed  map[int64]*computed
	// Released holds the requests that end without a decode replica, and when: their KV need not be kept any longer.
	Released map[int64]clock.Time
}

// computed is a request whose prompt was computed by a prefill replica.
type computed struct {
	rec event.Record
	by  *Instance
}

// Instance is one engine of a replica, between a start and a stop.
type Instance struct {
	*Engine
	of      *Disaggregated
	Replica int
	begins  clock.Time
	drains  clock.Time
	ends    clock.Time // it crashes, or its grace period ends
	over    bool
	Cut     int             // loads that it aborted when it stopped
	Outputs map[int64]int32 // output tokens that the clients of its prompts request
}

// NewDisaggregated makes a fleet with the links of its replicas, and no instances yet.
func NewDisaggregated(d sim.Disaggregation) *Disaggregated {
	x := &Disaggregated{Disaggregation: d, network: new(Network), computed: make(map[int64]*computed)}
	x.network.Bandwidth = slices.Concat(d.Egress, d.Ingress)
	for range x.network.Bandwidth {
		x.Instances, x.present = append(x.Instances, nil), append(x.present, 0)
	}
	return x
}

// AddInstance appends an instance of a replica, which starts at begins, drains from drains on, and stops at ends.
func (d *Disaggregated) AddInstance(replica int, begins, drains, ends clock.Time) *Instance {
	p := &Instance{of: d, Replica: replica, begins: begins, drains: drains, ends: ends}
	d.Instances[replica] = append(d.Instances[replica], p)
	return p
}

// Begun reports whether the instance has an engine.
func (p *Instance) Begun() bool { return p.Engine != nil }

// Prefills reports whether it is a prefill replica.
func (p *Instance) Prefills() bool { return p.Replica < p.of.Prefills }

// Start makes the engine of an instance, with the tiers that the one before has left. The source sends the requests. A
// prefill replica computes one output token of each: Start writes that into the list.
func (p *Instance) Start(cfg engine.Config, requests []workload.Request, src workload.Source, obs event.Observer,
	lifetime Lifetime) {
	connector := *cfg.Connector
	connector.Handoff, cfg.Connector = p.leg, &connector
	if p.Prefills() {
		p.Outputs = make(map[int64]int32)
		for i := range requests {
			r := &requests[i]
			p.Outputs[r.ID], r.OutputTokens = r.OutputTokens, 1
		}
	}
	p.Engine = newEngine(cfg, src, obs, lifetime, p.of.network)
	p.Engine.instance = p
}

func (p *Instance) leg(r *workload.Request) (leg engine.Handoff) {
	switch c := p.of.computed[r.ID]; {
	case p.Prefills():
		if leg.Lease = p.of.Lease; leg.Lease == 0 {
			leg.Lease = clock.MaxRun
		}
	case c != nil:
		leg.Remote = engine.Remote{Tokens: r.InputTokens, Layers: p.of.Layers, Latency: p.of.Latency,
			Path: []int32{int32(c.by.Replica), int32(p.Replica)}}
	}
	return leg
}

// computedBefore is the number of tokens of a request that another replica has computed.
func (p *Instance) computedBefore(r *workload.Request) int32 {
	if p.source(r) == nil {
		return 0
	}
	return r.InputTokens
}

// source is the instance that computed the prompt of a request, or nil.
func (p *Instance) source(r *workload.Request) *Instance {
	if c := p.of.computed[r.ID]; c != nil && !p.Prefills() {
		return c.by
	}
	return nil
}

// keeps reports whether the KV of a request is still leased for another replica.
func (p *Instance) keeps(id int64, at clock.Time) bool {
	return slices.ContainsFunc(p.remote.leases, func(l *lease) bool {
		return l.seq.rec.Request.ID == id && l.until > at
	})
}

// release ends the lease of a request.
func (p *Instance) release(id int64, at clock.Time) {
	for _, l := range p.remote.leases {
		if l.seq.rec.Request.ID == id {
			l.until = min(l.until, at)
		}
	}
}

// ended handles the end of a request at this replica, and reports whether it is only handed over, so that no record is
// reported.
func (p *Instance) ended(s *sequence, at clock.Time) bool {
	id := s.rec.Request.ID
	if p.Prefills() {
		s.rec.Request.OutputTokens = p.Outputs[id]
		if s.rec.Outcome == event.Completed {
			p.of.computed[id] = &computed{s.rec, p}
			p.obs.Dropped(at, 1) // only the decode engine delivers tokens
		}
		return s.rec.Outcome == event.Completed
	}
	if c := p.of.computed[id]; c != nil {
		c.by.release(id, at)
		c.join(&s.rec)
	}
	return false
}

// join merges the record of the prefill into that of the decode.
func (c *computed) join(rec *event.Record) {
	first, g := &c.rec, &rec.GPU
	rec.HandedOver, rec.PrefilledBy = true, c.by.Replica
	rec.Between = min(rec.Queued, rec.Released).Sub(first.Released)
	rec.Queued, rec.Scheduled, rec.PassedOver = first.Queued, first.Scheduled, first.PassedOver
	rec.CachedTokens, rec.LaterCachedTokens = first.CachedTokens, rec.LaterCachedTokens+first.LaterCachedTokens
	rec.LoadedTokens, rec.Loading = first.LoadedTokens, first.Loading
	rec.RecomputedTokens += first.RecomputedTokens
	rec.LostTokens += first.LostTokens
	rec.Preemptions += first.Preemptions
	g.Prefill, g.Recomputed, g.Lost = g.Prefill+first.GPU.Prefill, g.Recomputed+first.GPU.Recomputed,
		g.Lost+first.GPU.Lost
	g.Decode, g.Drafts = g.Decode+first.GPU.Decode, g.Drafts+first.GPU.Drafts
}

// active are the current instances that have not stopped.
func (d *Disaggregated) active() (list []*Instance) {
	for i, k := range d.present {
		if k < len(d.Instances[i]) && d.Instances[i][k].Engine != nil && !d.Instances[i][k].over {
			list = append(list, d.Instances[i][k])
		}
	}
	return list
}

// next is the instant of the next event, or Never.
func (d *Disaggregated) next() clock.Time {
	at := d.network.Next()
	for _, t := range d.Released {
		at = min(at, t)
	}
	for i, k := range d.present {
		if p := d.Instances[i][k]; p.over && k+1 < len(d.Instances[i]) {
			at = min(at, d.Instances[i][k+1].begins)
		}
	}
	for _, p := range d.active() {
		at = min(at, p.nextClientInstant(), p.ends)
		if p.drains > d.network.now {
			at = min(at, p.drains)
		}
		if len(p.inFlight) > 0 {
			at = min(at, p.inFlight[0].end)
		} else if p.remote.due(d.network.now) {
			at = min(at, d.network.now)
		}
		for _, l := range p.remote.leases {
			if l.until > d.network.now && l.until < clock.Time(clock.MaxRun) {
				at = min(at, l.until)
			}
		}
	}
	return at
}

// Run runs all instances to their ends. begin is called when one starts.
func (d *Disaggregated) Run(begin func(*Instance)) error {
	for i := range d.Instances {
		begin(d.Instances[i][0])
	}
	d.noteArrivals(nil, 0) // some replicas are off at first
	for turns := 0; ; turns++ {
		at := d.next()
		if at == clock.Never {
			return nil
		}
		if turns > mostIterations {
			return fmt.Errorf("at %v: after %d turns the naive fleet makes no progress", at, turns)
		}
		arrived := d.network.To(at)
		for _, p := range d.active() {
			if p.ends <= at {
				p.end(at, true)
			}
		}
		for i, k := range d.present {
			if p := d.Instances[i][k]; p.over && k+1 < len(d.Instances[i]) && d.Instances[i][k+1].begins <= at {
				d.present[i]++
				begin(d.Instances[i][k+1])
			}
		}
		maps.DeleteFunc(d.Released, func(request int64, t clock.Time) bool {
			if c := d.computed[request]; t <= at && c != nil {
				c.by.release(request, at)
			}
			return t <= at
		})
		d.noteArrivals(arrived, at)
		if err := d.act(at); err != nil {
			return err
		}
		for _, p := range d.active() {
			p.reportLevels(at)
		}
	}
}

// noteArrivals handles transfers that have arrived, and stops draining instances that have nothing left to do.
func (d *Disaggregated) noteArrivals(arrived []*Transfer, at clock.Time) {
	for _, p := range d.active() {
		p.remote.noteArrivals(arrived, at)
	}
	for _, p := range d.active() {
		copies := slices.ContainsFunc(p.remote.tiers, func(t *tier) bool { return t.Persistent && t.copies != nil })
		leases := slices.ContainsFunc(p.remote.leases, func(l *lease) bool { return l.until > at })
		if p.drains <= at && p.system == 0 && p.nextClientInstant() == clock.Never && !copies && !leases {
			p.reportLevels(at)
			p.end(at, false)
		}
	}
}

// act runs the boundaries of an instant, always that of the first replica that has one.
func (d *Disaggregated) act(at clock.Time) error {
	for _, p := range d.active() {
		p.runClients(at)
	}
	for {
		list := d.active()
		i := slices.IndexFunc(list, func(p *Instance) bool { return p.acts(at, p.remote.due(at)) })
		if i < 0 {
			return nil
		}
		if err := list[i].act(at); err != nil {
			return err
		}
		d.noteArrivals(d.network.To(at), at)
	}
}

// end stops an instance and all transfers to and from it.
func (p *Instance) end(at clock.Time, crashed bool) {
	if p.over = true; crashed {
		p.crash(at)
		p.reportLevels(at)
	}
	p.remote.leaveTiers(p.lifetime.Tiers, crashed)
	p.remote.stopTransfers(at)
	p.remote.leases = nil
	for _, other := range p.of.active() {
		for _, l := range other.remote.loads {
			if l.from != p || len(l.parts) == 0 {
				continue
			}
			p.of.network.Stop(l.parts[0])
			l.parts, l.fails = nil, true
			p.Cut++
		}
	}
}
