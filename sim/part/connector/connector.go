// Package connector is KV outside the pool of an engine: in tiers, which keep the KV that requests have computed, and
// on other engines, which compute prompts for this one. It is an optional part of an engine, which calls it through
// [engine.KVConnector]. A [Connector] knows no engine: it takes and returns numbers of sequences, requests, blocks and
// keys. The engine keeps the blocks of requests that wait for their KV, and of ended requests under a lease.
//
// [Transfers] is the network that all connectors of a simulation share. The simulation asks it for its next event, and
// passes the event to the connector of the replica.
package connector

import (
	"slices"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/kv"
	"clifftop/workload"
)

const none = -1

// Connector is the KV connector of an engine.
type Connector struct {
	engine.Connector
	blockSize int32 // tokens
	timer     model.StepTimer
	pool      *kv.Hashed // the prefix cache of the engine, or nil
	obs       *event.Fanout
	net       *Transfers
	number    int32 // of the engine in net, which no other engine has
	replica   int

	tiers []tier
	links []int32 // numbers in the network, by index of Links
	epoch uint64  // changes with the content of the tiers
	plan  plan

	handoffs map[int64]engine.Handoff // of requests in the engine, by request ID
	loads    []*load                  // in transfer, or arrived and not yet received; in order of their start
	ended    bool                     // the engine has crashed: it stores no more KV
}

var _ engine.KVConnector = (*Connector)(nil)

// load is the transfer of the KV of a request into the pool.
type load struct {
	engine.Received
	parts int   // transfers that have not arrived
	from  int32 // the number of the engine that it comes from, or 0
	read  func(at clock.Time)
	lost  func() bool // reports whether the KV to be read is no longer there
}

// New returns the connector of the engine of a replica with a configuration, which has [engine.Config.Connector].
// before is the connector of the engine whose place it takes, or nil.
func New(cfg *engine.Config, replica int, obs *event.Fanout, net *Transfers, before *Connector) *Connector {
	c := &Connector{Connector: *cfg.Connector, blockSize: cfg.BlockSize, timer: cfg.Timer, obs: obs, net: net,
		replica: replica, handoffs: make(map[int64]engine.Handoff)}
	net.gone = append(net.gone, false)
	c.number = int32(len(net.gone))
	if before != nil {
		net.gone[before.number-1] = true
		c.inherit(before)
	} else {
		c.connect()
	}
	return c
}

// connect adds the links to the network, and makes empty tiers.
func (c *Connector) connect() {
	for _, b := range c.Links {
		c.links = append(c.links, c.net.AddLink(b))
	}
	for _, t := range c.Tiers {
		c.tiers = append(c.tiers, tier{Tier: t, chunks: kv.NewTier(t.Chunks, t.Eviction),
			link: c.net.AddLink(t.BytesPerSecond), flow: none})
	}
}

// inherit takes over the links of the engine that had this place before, and the content of its persistent tiers.
func (c *Connector) inherit(before *Connector) {
	c.links = before.links
	for _, t := range before.tiers {
		after := tier{Tier: t.Tier, chunks: t.chunks, link: t.link, flow: none, torn: t.torn}
		if !t.Persistent {
			after.chunks = kv.NewTier(t.Chunks, t.Eviction)
		}
		c.tiers = append(c.tiers, after)
	}
}

// Number returns the number of the engine in the network, from 1 on. An engine that takes its place has another number.
func (c *Connector) Number() int32 { return c.number }

// Retired reports whether another engine has taken the place of this one.
func (c *Connector) Retired() bool { return c.net.gone[c.number-1] }

// Attach implements [engine.KVConnector].
func (c *Connector) Attach(pool *kv.Hashed) (writesBack bool) {
	c.pool = pool
	if writesBack = c.writesBack(); writesBack {
		pool.LogEvictions()
	}
	return writesBack
}

// writesBack reports whether the first tier takes what the pool evicts.
func (c *Connector) writesBack() bool { return len(c.tiers) > 0 && c.tiers[0].WriteBack }

// SetHandoff sets [engine.Connector.Handoff].
func (c *Connector) SetHandoff(handoff func(r *workload.Request) engine.Handoff) { c.Handoff = handoff }

// Queued implements [engine.KVConnector].
func (c *Connector) Queued(req *workload.Request) {
	if c.Handoff == nil {
		return
	}
	if handoff := c.Handoff(req); handoff.Lease > 0 || handoff.Remote.Tokens > 0 {
		c.handoffs[req.ID] = handoff
	}
}

// Forget implements [engine.KVConnector].
func (c *Connector) Forget(request int64) { delete(c.handoffs, request) }

// Lease implements [engine.KVConnector].
func (c *Connector) Lease(request int64) clock.Duration { return c.handoffs[request].Lease }

// Precomputed implements [engine.KVConnector].
func (c *Connector) Precomputed(request int64) int32 {
	remote := c.handoffs[request].Remote
	if !remote.Again {
		return 0
	}
	return remote.Tokens
}

// HandsOff implements [engine.KVConnector].
func (c *Connector) HandsOff(request int64) bool { return c.handoffs[request].Ended != nil }

// HandOff implements [engine.KVConnector].
func (c *Connector) HandOff(rec *event.Record, at clock.Time) {
	end := c.handoffs[rec.Request.ID].Ended
	c.Forget(rec.Request.ID)
	end(rec, at)
}

// Load implements [engine.KVConnector].
func (c *Connector) Load(at clock.Time, x engine.Load) (remote bool) {
	c.plan.valid = false
	l := &load{Received: engine.Received{Number: x.Number, Seq: x.Seq, Started: at}}
	c.loads = append(c.loads, l)
	if c.plan.remote {
		c.fetchRemote(at, l, x.Request, x.Blocks)
	} else {
		c.fetchTiers(at, l)
	}
	return c.plan.remote
}

// fetchRemote begins the transfer of the KV of a request from another engine.
func (c *Connector) fetchRemote(at clock.Time, l *load, request int64, blocks int) {
	handoff := c.handoffs[request]
	remote := &handoff.Remote
	bytes, layers := int64(blocks)*c.BlockBytes, max(remote.Layers, 1)
	l.parts, l.read, l.lost, l.from = 1, remote.Read, remote.Lost, remote.From
	l.Failed = remote.Fails || l.lost != nil && l.lost()
	if l.from > 0 && c.net.gone[l.from-1] {
		bytes = 0 // the other engine has stopped
	}
	path := slices.Clone(remote.Via)
	for _, k := range remote.Path {
		path = append(path, c.links[k])
	}
	c.net.begin(at, payload{engine: c.number, replica: c.replica, load: l, tier: none}, (bytes+layers-1)/layers,
		remote.Latency, path...)
	handoff.Remote = engine.Remote{}
	c.handoffs[request] = handoff
}

// ClientLeft implements [engine.KVConnector].
func (c *Connector) ClientLeft(number int64) {
	for _, l := range c.loads {
		if l.Number == number {
			l.Seq = none
		}
	}
}

// Received implements [engine.KVConnector].
func (c *Connector) Received() (all []engine.Received) {
	c.loads = slices.DeleteFunc(c.loads, func(l *load) bool {
		if l.parts == 0 {
			all = append(all, l.Received)
		}
		return l.parts == 0
	})
	return all
}

// EndLease implements [engine.KVConnector].
func (c *Connector) EndLease(at clock.Time, lease int64) {
	c.net.endLease(at, leaseEnd{c.number, c.replica, lease})
}

// Halt implements [engine.KVConnector].
func (c *Connector) Halt() { c.ended = true }

// Drained implements [engine.KVConnector].
func (c *Connector) Drained() bool {
	return !slices.ContainsFunc(c.tiers, func(t tier) bool { return t.Persistent && t.flow != none })
}

// Transferred handles an event of the network that concerns the engine. It reports whether a load has arrived.
func (c *Connector) Transferred(at clock.Time, x Event) bool {
	p := &x.payload
	if p.tier != none {
		if t := &c.tiers[p.tier]; p.load == nil {
			t.flow, t.copied = none, t.copied[:0]
		}
		c.reportBusy(at, p.tier)
	}
	if !x.arrived || p.load == nil {
		return false
	}
	if p.load.parts--; p.load.parts > 0 {
		return false
	}
	if read := p.load.read; read != nil {
		read(at)
	}
	return true
}

// Abandon cancels all transfers of the engine at the instant at. It returns the replicas whose loads from the engine
// have failed by that.
func (c *Connector) Abandon(at clock.Time) (failed []int) {
	failed = c.net.abandon(at, c.number)
	for k := range c.tiers {
		c.reportBusy(at, k)
	}
	c.loads = nil
	return failed
}
