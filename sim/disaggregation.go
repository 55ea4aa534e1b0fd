package sim

import (
	"clifftop/internal/faults"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/workload"
)

// Disaggregated prefill and decode. A router sends a request to a prefill replica, which computes the prompt and keeps
// its KV. A decode replica then loads the KV, computes the last prompt token again, because only a computation produces
// a token, and generates the output. Prefills do not stall decodes, and each kind of replica may have its own GPU. The
// price is the transfer, and that no replica can help with the other kind of work.

// Disaggregation assigns prefill and decode to different replicas.
type Disaggregation struct {
	// Prefills is the number of prefill replicas, which come first in the fleet; the others decode. All need a
	// [engine.Connector] with the size of a block.
	Prefills int
	// Decoders route to the decode replicas and take the requests in turn. The routers of the fleet route to the
	// prefill replicas.
	Decoders []route.Router
	// Egress and Ingress are the bandwidths, in bytes per second, of the link out of each prefill replica and of the
	// link into each decode replica. Transfers on a link share it. A transfer takes Latency longer.
	Egress, Ingress []int64
	Latency         clock.Duration
	// Layers is the number of parts in which a prompt's KV is sent while it is computed, so that only the last part
	// remains when it is requested. 0 and 1 send all of it at the end.
	Layers int64
	// Hop is the time from the end of a prefill to the front end of the decode replica.
	Hop clock.Duration
	// Lease is how long a prefill replica keeps KV that has not been read; 0 is no limit, but [ClientLease] for KV that
	// clients keep ([workload.Transfer]). KV that was dropped is computed again by the decode replica.
	Lease clock.Duration
	// Outages are of links of replicas. Transfers stop meanwhile; leases continue to run.
	Outages []Outage
	// MinTokens is the shortest prompt that is sent to a prefill replica. The decode replica computes shorter ones.
	MinTokens int32
	// MaxBacklog also lets the decode replica compute the prompt when every listed prefill replica has at least this
	// many tokens outstanding, or none is listed. 0 is no limit.
	MaxBacklog int64
}

// ClientLease is how long KV is kept that a client wants to be kept and never reads, unless Disaggregation has a lease.
// It is the default of VLLM_NIXL_ABORT_REQUEST_TIMEOUT, which vLLM had before decode replicas renewed leases of 30 s
// (docs/design/nixl_kv_cache_lease.md in vLLM).
const ClientLease = 480 * clock.Second

// Outage is a time during which the link of a replica carries no KV.
type Outage struct {
	Replica int
	At      clock.Time
	For     clock.Duration
}

// validate reports what is wrong with the configuration.
func (d *Disaggregation) validate(f *Fleet) error {
	n := len(f.Replicas)
	found := faults.List{Prefix: "disaggregation: "}
	want := found.Check
	want(d.Prefills >= 1 && d.Prefills < n,
		"%d of %d replicas are for prefill (want at least one for prefill and one for decode)",
		d.Prefills, n)
	want(len(d.Decoders) > 0 && len(f.Routers) > 0, "prefill or decode replicas have no router")
	want(len(d.Egress) == d.Prefills && len(d.Ingress) == n-d.Prefills,
		"%d links out of and %d into %d and %d replicas", len(d.Egress), len(d.Ingress), d.Prefills, n-d.Prefills)
	for _, b := range append(append([]int64(nil), d.Egress...), d.Ingress...) {
		want(b >= 1, "a link has no bandwidth")
	}
	want(d.Latency >= 0 && d.Hop >= 0 && d.Lease >= 0 && d.Layers >= 0 && d.MinTokens >= 0 && d.MaxBacklog >= 0,
		"a time or a number is negative")
	for i, o := range d.Outages {
		want(o.Replica >= 0 && o.Replica < n && o.At >= 0 && o.For > 0, "outage %d: of replica %d of %d, at %v for %v",
			i, o.Replica, n, o.At, o.For)
		for _, p := range d.Outages[:i] {
			want(o.Replica != p.Replica || o.At > p.At.Add(p.For) || p.At > o.At.Add(o.For),
				"the link of replica %d has two outages at a time", o.Replica)
		}
	}
	for i := range f.Replicas {
		c := &f.Replicas[i]
		want(c.Connector != nil, "replica %d has no connector", i)
		want(i >= d.Prefills || c.MaxTokens == 0, "replica %d is for prefill and must have no max tokens",
			i)
		want(c.BlockSize == f.Replicas[0].BlockSize, "replica %d has blocks of another size", i)
	}
	return found.Err()
}

// disaggregator is the state of disaggregated requests.
type disaggregator struct {
	Disaggregation
	sim      *Simulation
	decoders []*router
	links    []int32             // links of the network, by replica
	outputs  map[int64]int32     // output tokens of requests that were sent to a prefill replica
	first    map[int64]*handover // requests that were handed over to decode
}

// handover is a request whose prompt was computed.
type handover struct {
	event.Record            // of the prefill
	by           *Replica   // which keeps the KV
	queued       clock.Time // when it reached the queue of the decode replica, or Never
}

func newDisaggregator(d *Disaggregation, e *Simulation) *disaggregator {
	s := &disaggregator{Disaggregation: *d, sim: e, outputs: make(map[int64]int32), first: make(map[int64]*handover)}
	if s.Lease == 0 {
		s.Lease = clock.MaxRun
	}
	for _, b := range append(append([]int64(nil), d.Egress...), d.Ingress...) {
		s.links = append(s.links, e.transfers.AddLink(b))
	}
	for i := range d.Outages {
		o := &d.Outages[i]
		e.transfers.BreakLink(s.links[o.Replica], o.At, o.For)
	}
	for _, r := range e.replicas {
		s.assign(r)
	}
	s.decoders, e.alike = e.bind(s.Decoders), false
	return s
}

// assign sets a replica to prefill or decode.
func (s *disaggregator) assign(r *Replica) {
	if s.prefills(int32(r.Index())) {
		r.connector.SetHandoff(s.prefill)
	} else {
		r.connector.SetHandoff(s.decode(r.Index()))
	}
}

// prefills reports whether a replica computes prompts for others.
func (s *disaggregator) prefills(replica int32) bool { return s != nil && int(replica) < s.Prefills }

// decodes reports whether a replica decodes.
func (s *disaggregator) decodes(replica int32) bool { return s != nil && int(replica) >= s.Prefills }

// handedOff reports whether another replica has computed the prompt of a request.
func (s *disaggregator) handedOff(r *workload.Request) bool { return s != nil && s.first[r.ID] != nil }

// prefill is what a prefill replica does for a request. One that was sent to it by its client ends there.
func (s *disaggregator) prefill(r *workload.Request) engine.Handoff {
	switch {
	case r.Replica == 0:
		return engine.Handoff{Lease: s.Lease, Ended: s.handOff}
	case r.Transfer != nil && r.Transfer.Keeps:
		if s.Lease == clock.MaxRun {
			return engine.Handoff{Lease: ClientLease}
		}
		return engine.Handoff{Lease: s.Lease}
	}
	return engine.Handoff{}
}

// source returns the replica that keeps the KV that the client of r wants to be loaded, or nil.
func (s *disaggregator) source(r *workload.Request) *Replica {
	if t := r.Transfer; t != nil && r.Replica > 0 && t.From > 0 && s.prefills(t.From-1) {
		return s.sim.replicas[t.From-1]
	}
	return nil
}

// decode returns what decode replica to does for a request.
func (s *disaggregator) decode(to int) func(*workload.Request) engine.Handoff {
	return func(r *workload.Request) (handoff engine.Handoff) {
		id, tokens, from := r.ID, r.InputTokens, s.source(r)
		first, again := s.first[r.ID]
		switch {
		case again:
			from = first.by
		case from == nil:
			return handoff
		default:
			id = r.Transfer.Of
			if lease, kept := from.Lease(id); lease > 0 {
				tokens = min(tokens, int32(kept)*from.Config().BlockSize)
			}
		}
		handoff.Remote = engine.Remote{
			Tokens: tokens, Layers: s.Layers, Latency: s.Latency, Again: again, From: from.connector.Number(),
			Via:  []int32{s.links[from.Index()], s.links[to]},
			Read: func(at clock.Time) { s.release(at, from, id) },
			Lost: func() bool { lease, _ := from.Lease(id); return lease == 0 },
		}
		return handoff
	}
}

// release lets a prefill replica free the KV of a request, unless the replica has stopped.
func (s *disaggregator) release(at clock.Time, from *Replica, id int64) {
	if from.connector.Retired() {
		return
	}
	if lease, _ := from.Lease(id); lease > 0 {
		from.EndLease(at, lease)
	}
	s.sim.sync(s.sim.replicas[from.Index()])
}

// promptOnly is a request as a prefill replica gets it, with one output token.
func promptOnly(r *workload.Request) *workload.Request {
	one := *r
	one.OutputTokens = 1
	return &one
}

// outputOf is the number of output tokens of a request that are requested from a replica.
func (s *disaggregator) outputOf(r *workload.Request, to int32) int32 {
	if s.prefills(to) {
		return 1
	}
	return r.OutputTokens
}

// handOff hands a request over to decode when its prompt has been computed.
func (s *disaggregator) handOff(rec *event.Record, at clock.Time) {
	e := s.sim
	e.over(&rec.Request, int32(rec.Replica))
	by := e.replicas[rec.Replica]
	first := &handover{*rec, by, clock.Never}
	s.restore(&first.Request)
	s.first[first.Request.ID] = first
	if p := e.clients.Find(first.Request.ID); p != nil {
		p.To = noReplica
	}
	ref := e.frontEnd.place()
	e.frontEnd.requests[ref] = pendingRequest{first.Request, noReplica}
	e.frontEnd.push(by.OverLink(at).Add(s.Hop), first.Request.ID, ref)
}

// restore gives a request its output length back.
func (s *disaggregator) restore(r *workload.Request) {
	if n, ok := s.outputs[r.ID]; ok {
		r.OutputTokens = n
		delete(s.outputs, r.ID)
	}
}

// join merges the record of the prefill into the record of the decode.
func (s *disaggregator) join(rec *event.Record) {
	s.restore(&rec.Request)
	first, ok := s.first[rec.Request.ID]
	if !ok {
		if from := s.source(&rec.Request); from != nil && rec.Replica >= s.Prefills {
			s.release(s.sim.now, from, rec.Request.Transfer.Of) // it has not read it, if it was never admitted
		}
		return
	}
	delete(s.first, rec.Request.ID)
	s.release(s.sim.now, first.by, rec.Request.ID)
	rec.HandedOver, rec.PrefilledBy = true, first.Replica
	rec.Between = min(first.queued, rec.Released).Sub(first.Released)
	if rec.Replica < 0 {
		rec.Replica = first.Replica
	}
	rec.Queued, rec.Scheduled, rec.PassedOver = first.Queued, first.Scheduled, first.PassedOver
	rec.CachedTokens, rec.LaterCachedTokens = first.CachedTokens, first.LaterCachedTokens+rec.LaterCachedTokens
	rec.LoadedTokens, rec.Loading = first.LoadedTokens, first.Loading
	rec.RecomputedTokens += first.RecomputedTokens
	rec.LostTokens += first.LostTokens
	rec.Preemptions += first.Preemptions
	rec.GPU.Add(&first.GPU)
}

// direct reports whether the decode replica computes the prompt itself.
func (s *disaggregator) direct(r *workload.Request) bool {
	if r.InputTokens < s.MinTokens {
		return true
	}
	if s.MaxBacklog == 0 {
		return false
	}
	for i := range s.Prefills {
		if s.sim.lifecycle != nil && !s.sim.lifecycle.of[s.sim.lifecycle.lead[i]].listed {
			continue
		}
		sent := int64(0)
		for _, t := range s.sim.routers {
			sent += t.own[i].OutstandingTokens
		}
		if sent < s.MaxBacklog {
			return false
		}
	}
	return true
}

// joins returns a request as it joins the queue of a replica: at a prefill replica it asks for its prompt only.
func (s *disaggregator) joins(r *workload.Request, to int32) *workload.Request {
	if s.prefills(to) && r.Replica == 0 {
		s.outputs[r.ID] = r.OutputTokens
		return promptOnly(r)
	}
	if s.handedOff(r) {
		s.first[r.ID].queued = s.sim.now
	}
	return r
}
