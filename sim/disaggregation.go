package sim

import (
	"clifftop/internal/faults"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/workload"
)

// Prefill and decode on replicas of their own. A router sends a request to one that computes its prompt and keeps the
// KV; from there it goes on to one that loads the KV, computes the last token of the prompt again, since a token can
// only come of a computation, and answers. Prefills do not stall decodes then, and each kind of work may have its own
// kind of GPU; the price is the transfer, and that neither side can help the other.

// Disaggregation divides the work on requests between replicas.
type Disaggregation struct {
	// Prefills is the number of leading replicas of the fleet that compute prompts; the others answer. All of them need
	// a [engine.Connector] that says how large a block is.
	Prefills int
	// Decoders route to those that answer, and take the requests in turn; the routers of the fleet route to the others.
	Decoders []route.Router
	// Egress and Ingress are the bandwidths, in bytes per second, of the link out of each replica that computes prompts
	// and of that into each one that answers; the transfers on a link share it. A transfer takes Latency longer.
	Egress, Ingress []int64
	Latency         clock.Duration
	// Layers is how many parts a prompt's KV is sent in while it is being computed, so that only the last is left when
	// it is asked for; 0 and 1 send all of it then.
	Layers int64
	// Hop is the way from the end of a prefill to the front end of the replica that answers.
	Hop clock.Duration
	// Lease is how long KV is kept for a replica that has not read it; 0 is as long as it takes. What has gone is
	// computed again where the answer is.
	Lease clock.Duration
	// Outages are of the links of replicas. Transfers stand still meanwhile, and leases go on.
	Outages []Outage
	// MinTokens keeps shorter prompts out of this: the replica that answers computes them.
	MinTokens int32
	// MaxBacklog does so for those that would find as many tokens or more sent to every replica that computes prompts
	// and not computed, or no such replica there; 0 is no limit.
	MaxBacklog int64
}

// Outage is a time for which the link over which a replica sends or loads KV carries nothing.
type Outage struct {
	Replica int
	At      clock.Time
	For     clock.Duration
}

// validate reports what is wrong with the division.
func (d *Disaggregation) validate(f *Fleet) error {
	n := len(f.Replicas)
	found := faults.List{Prefix: "disaggregation: "}
	want := found.Check
	want(d.Prefills >= 1 && d.Prefills < n, "%d of %d replicas compute prompts (want some, and some that answer)",
		d.Prefills, n)
	want(len(d.Decoders) > 0 && len(f.Routers) > 0, "one of the two kinds of replicas has no router")
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
		want(i >= d.Prefills || c.MaxTokens == 0, "replica %d computes prompts, and has to expect answers of one token",
			i)
		want(c.BlockSize == f.Replicas[0].BlockSize, "replica %d has blocks of another size", i)
	}
	return found.Err()
}

// split is what an engine knows of requests whose work is divided.
type disaggregator struct {
	Disaggregation
	sim      *Simulation
	decoders []*router
	links    []int32             // of the network, by replica
	answers  map[int64]int32     // tokens of the answers to requests that are sent to compute a prompt
	first    map[int64]*handover // of requests that have been handed on
}

// handover is a request whose prompt was computed.
type handover struct {
	event.Record                // of that
	by           *engine.Engine // which keeps the KV
	queued       clock.Time     // when it reached the queue of the replica that answers, or Never
}

func newDisaggregator(d *Disaggregation, e *Simulation) *disaggregator {
	s := &disaggregator{Disaggregation: *d, sim: e, answers: make(map[int64]int32), first: make(map[int64]*handover)}
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

// assign gives a replica its part of requests.
func (s *disaggregator) assign(r *Replica) {
	if s.prefills(int32(r.Index())) {
		r.SetLeg(s.prefill)
	} else {
		r.SetLeg(s.decode(r.Index()))
	}
}

// prefills reports whether a replica computes prompts for others.
func (s *disaggregator) prefills(replica int32) bool { return s != nil && int(replica) < s.Prefills }

// decodes reports whether a replica answers what others may have computed the prompts of.
func (s *disaggregator) decodes(replica int32) bool { return s != nil && int(replica) >= s.Prefills }

// handedOff reports whether another replica has computed the prompt of a request.
func (s *disaggregator) handedOff(r *workload.Request) bool { return s != nil && s.first[r.ID] != nil }

// prefill is the part of a request that a replica does which computes prompts.
func (s *disaggregator) prefill(*workload.Request) engine.Handoff {
	return engine.Handoff{Lease: s.Lease, Ended: s.handOff}
}

// decode is that of one that answers.
func (s *disaggregator) decode(to int) func(*workload.Request) engine.Handoff {
	return func(r *workload.Request) (handoff engine.Handoff) {
		first, ok := s.first[r.ID]
		if !ok {
			return handoff
		}
		id, from := r.ID, first.by
		handoff.Remote = engine.Remote{
			Tokens: r.InputTokens, Layers: s.Layers, Latency: s.Latency, Again: true, From: from,
			Via:  []int32{s.links[from.Index()], s.links[to]},
			Read: func(at clock.Time) { s.release(at, from, id) },
			Lost: func() bool { return !from.Keeps(id) },
		}
		return handoff
	}
}

// release lets a replica free the KV of a request, if it has not ended.
func (s *disaggregator) release(at clock.Time, from *engine.Engine, id int64) {
	if from.Retired() {
		return
	}
	from.ReleaseHeld(at, id)
	s.sim.sync(s.sim.replicas[from.Index()])
}

// promptOnly is a request as the replica is sent it that computes its prompt.
func promptOnly(r *workload.Request) *workload.Request {
	one := *r
	one.OutputTokens = 1
	return &one
}

// outputOf is how many output tokens of a request a replica is asked for.
func (s *disaggregator) outputOf(r *workload.Request, to int32) int32 {
	if s.prefills(to) {
		return 1
	}
	return r.OutputTokens
}

// handOff takes what becomes of a prompt, at the instant when it has been computed.
func (s *disaggregator) handOff(rec *event.Record, at clock.Time) {
	e := s.sim
	e.over(&rec.Request, int32(rec.Replica))
	by := e.replicas[rec.Replica].Engine
	first := &handover{*rec, by, clock.Never}
	s.restore(&first.Request)
	s.first[first.Request.ID] = first
	if p := e.clients.Find(first.Request.ID); p != nil {
		p.To = noReplica
	}
	e.frontEnd.push(by.OverLink(at).Add(s.Hop), first.Request.ID, e.frontEnd.add(&first.Request, noReplica))
}

// restore gives a request its answer back.
func (s *disaggregator) restore(r *workload.Request) {
	if n, ok := s.answers[r.ID]; ok {
		r.OutputTokens = n
		delete(s.answers, r.ID)
	}
}

// join makes one record of the two that tell of a request.
func (s *disaggregator) join(rec *event.Record) {
	s.restore(&rec.Request)
	first, ok := s.first[rec.Request.ID]
	if !ok {
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

// direct reports whether a request is not worth the detour.
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
