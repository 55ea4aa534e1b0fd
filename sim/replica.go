package sim

import (
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/part/connector"
	"clifftop/sim/route"
	"clifftop/sim/sched"
)

// No replica, and no sequence.
const (
	noReplica = int32(-1)
	noSeq     = int32(sched.None)
)

// Replica is an engine with its place and lifecycle in the fleet.
type Replica struct {
	*engine.Engine
	connector *connector.Connector // of the engine, or nil
	own       *event.Fanout        // the observers of this replica alone, or nil
	told      event.Levels         // its levels at the last update of the fleet
	leaving   bool                 // it drains
}

// newReplica makes replica i. own is its own observer, or nil; before is the engine that it replaces, or nil.
func (e *Simulation) newReplica(cfg engine.Config, i int, own *event.Fanout, before *engine.Engine) *Replica {
	if e.singly || e.caches.followed() {
		cfg.MaxSpan = 1
	}
	obs := e.obs
	if own != nil {
		obs = event.Join(e.obs, own)
	}
	r, in := &Replica{own: own}, engine.Setup{Index: i, Host: host{e}, Observers: obs, Before: before}
	if cfg.Connector != nil {
		r.connector = connect(&in, &cfg, &e.transfers, e.replicas)
	}
	r.Engine = engine.New(cfg, in)
	e.cacheReset(i)
	e.caches.watch(r, before != nil)
	return r
}

// metrics are the replica's gauges just before the instant until, which is not past the next boundary.
func (r *Replica) metrics(at, until clock.Time) route.Metrics {
	l := r.Levels()
	return route.Metrics{
		At: at, Waiting: l.Waiting, Running: l.Running,
		UsedBlocks: r.UsedAt(until), UsableBlocks: r.KV().Usable(), QueuedTokens: r.Uncomputed(),
	}
}

// connect makes the connector of a new engine with a configuration. It inherits from that of the engine that has the
// place now, if there is one.
func connect(in *engine.Setup, cfg *engine.Config, net *connector.Transfers, replicas []*Replica) *connector.Connector {
	var before *connector.Connector
	if in.Index < len(replicas) {
		before = replicas[in.Index].connector
	}
	c := connector.New(cfg, in.Index, in.Observers, net, before)
	in.Connector = c
	return c
}

// pass passes an event of the network to the connector and the engine of the replica that it concerns, and returns the
// replica, or nil.
func pass(at clock.Time, x connector.Event, replicas []*Replica) *Replica {
	if x.Replica < 0 {
		return nil
	}
	r := replicas[x.Replica]
	if x.Lease > 0 {
		r.EndLease(at, x.Lease)
	} else if r.connector.Transferred(at, x) {
		r.KVArrived(at)
	}
	return r
}

// abandon cancels all transfers of a replica of a fleet, which has stopped, and frees the blocks that it keeps for
// them. Loads of other replicas from it fail.
func abandon(at clock.Time, r *Replica, f *fleet) {
	if r.connector == nil {
		return
	}
	for _, i := range r.connector.Abandon(at) {
		f.replicas[i].KVArrived(at)
		f.sync(f.replicas[i])
	}
	r.DropKept()
}
