package sim

import (
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
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
	own     *event.Fanout // the observers of this replica alone, or nil
	told    event.Levels  // its levels at the last update of the fleet
	leaving bool          // it drains
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
	r := &Replica{own: own, Engine: engine.New(cfg,
		engine.Setup{Index: i, Host: host{e}, Observers: obs, Transfers: &e.transfers, Before: before})}
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
