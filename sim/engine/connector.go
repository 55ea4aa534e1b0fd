package engine

import (
	"slices"

	"clifftop/internal/faults"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/kv"
	"clifftop/workload"
)

// Connector loads KV into the pool of an engine and stores KV outside the pool: in tiers, which keep the KV that
// requests have computed, and on other replicas, which compute prompts for this one.
//
// The policy starts the load of a waiting request before it admits the request. The engine then allocates blocks for
// all known tokens of the request, and transfers the KV while other requests run. The request is admissible after the
// end of the iteration during which its KV has arrived or, if no iteration runs, at once.
type Connector struct {
	// BlockBytes is the size of a KV block, over all GPUs of the replica, in bytes.
	BlockBytes int64
	// Tiers store KV, found by the content of its tokens. They are looked up in order, for tokens that are not in the
	// prefix cache. They need prefix caching.
	Tiers []Tier
	// ChunkBlocks is the number of blocks in a chunk, the unit that tiers store; 0 means 1.
	ChunkBlocks int32
	// Fetch decides whether tokens in the tiers are loaded. Fewer than MinTokens tokens are never loaded.
	Fetch     Fetch
	MinTokens int32

	// Handoff returns which part of a request the engine serves; nil means that it serves every request as a whole.
	Handoff func(r *workload.Request) Handoff
	// Links are the bandwidths, in bytes per second, of the links over which KV comes from other replicas.
	Links []int64
	// FailLost ends requests whose KV could not be loaded as [event.Failed]; otherwise the engine computes the lost KV.
	// To the clients, the server has failed; they may send the request again.
	FailLost bool
	// PullPercent delays loads from other replicas while the requests that are loading, or loaded and not yet running,
	// hold at least this percentage of the usable blocks; 0 means no limit. DistServe uses 5.
	PullPercent int
}

// Tier is a store of KV outside the pool, such as host memory or a disk.
type Tier struct {
	Name string
	// Chunks is the capacity in chunks, and Eviction the order in which a full tier evicts them.
	Chunks   int
	Eviction kv.Eviction
	// BytesPerSecond is the bandwidth of the link to the tier. Loads and copies to the tier share it. Copies are sent
	// one after another, so that all copies together have one share. A load takes Latency longer.
	BytesPerSecond int64
	Latency        clock.Duration
	// Persistent keeps the content of the tier when the engine stops, for the engine that takes its place; otherwise
	// the content is lost. Chunks that are still being copied when the engine crashes are lost too.
	Persistent bool
	// WriteBack copies to the tier what the level above it evicts: the pool or another tier. Otherwise what requests
	// compute is written through: the tokens of a prefill when the prefill is complete, all others when the request
	// leaves the running batch.
	WriteBack bool
}

// Fetch is the rule that decides whether to load KV that could also be computed.
type Fetch uint8

// The rules.
const (
	// FetchFaster loads tokens if that takes less time, over idle links, than an iteration that only computes them. If
	// the load takes longer, the last tier is left out, and the rule is applied again to the others. If no tier
	// remains, nothing is loaded.
	FetchFaster Fetch = iota
	// FetchAlways loads all tokens that the tiers hold.
	FetchAlways
)

// String returns the name of the rule in scenario files.
func (f Fetch) String() string { return [...]string{"faster", "always"}[f] }

// Handoff is the part of a request that a replica serves with disaggregated prefill/decode: one replica computes the
// prompt and another one the output. The prefill replica is sent a request with an output of one token.
type Handoff struct {
	// Lease is how long the blocks of the request are kept after its last token for the engine that loads them, if they
	// are not released before; 0 keeps no blocks.
	Lease clock.Duration
	// Ended, if it is not nil, receives the record of the request at its end. Client, source and observer then get no
	// end, because the one token is not delivered.
	Ended func(rec *event.Record, at clock.Time)
	// Remote is the KV of the prompt on another replica.
	Remote Remote
}

// Remote describes KV on another replica.
type Remote struct {
	// Tokens is the number of leading tokens whose KV is there; 0 means none.
	Tokens int32
	// Layers divides the bytes that are still to be transferred when the request can be loaded. If the other replica
	// sends the KV of each layer while it computes the next one, only one part in Layers is left then. 0 and 1 mean
	// that everything is sent then.
	Layers int64
	// Latency is the time from sending a byte to its arrival. Path is the links on the way, as indices of Links in the
	// connector.
	Latency clock.Duration
	Path    []int32
	// Fails means that the KV is no longer there. The engine detects this at the end of the transfer.
	Fails bool
	// Read, if it is not nil, is called when the KV has arrived, and need not be kept any longer. Lost, if it is not
	// nil, reports whether the KV is no longer there. It is called when the transfer begins and when it ends.
	Read func(at clock.Time)
	Lost func() bool
	From int32   // the number of the engine that has the KV, if it is in the same simulation; else 0
	Via  []int32 // links on the way, in addition to Path, as numbers of the network of [Transfers]
	// Again means that the tokens were computed for this very request. If they are computed here, they count as
	// recomputed.
	Again bool
}

func (c *Connector) chunkBlocks() int32 { return max(c.ChunkBlocks, 1) }

// validate reports errors in the settings of the connector, and features of the engine that it does not support.
func (c *Connector) validate(cfg *Config) error {
	found := faults.List{Prefix: "connector: "}
	want := found.Check
	want(c.BlockBytes >= 1, "a KV block of %d bytes is not allowed", c.BlockBytes)
	want(c.MinTokens >= 0 && c.ChunkBlocks >= 0, "a number of tokens or blocks is negative")
	want(c.PullPercent >= 0 && c.PullPercent <= 100, "pull limit: %d is no percentage", c.PullPercent)
	want(len(c.Tiers) == 0 || cfg.PrefixCaching, "tiers keep KV by its content: they need prefix caching")
	want(cfg.HostBlocks == 0, "swap space: sequences are loaded from tiers instead (turn one of them off)")
	want(!cfg.Radix, "a radix cache knows no blocks that could be loaded")
	want(!cfg.Contiguous, "it loads blocks, which a contiguous pool does not have")
	want(!cfg.Speculative.On(), "speculative decoding: the KV of drafts is not loaded")
	for i, t := range c.Tiers {
		want(t.Chunks >= 1, "tier %s: %d chunks are not allowed (want 1 or more)", t.Name, t.Chunks)
		want(t.BytesPerSecond >= 1 && t.Latency >= 0, "tier %s: a bandwidth or a latency is not allowed", t.Name)
		want(i > 0 || !t.WriteBack || c.chunkBlocks() == 1,
			"tier %s: the pool evicts blocks, so that a tier that they are written back to cannot keep chunks of %d",
			t.Name, c.chunkBlocks())
	}
	want(!slices.ContainsFunc(c.Links, func(b int64) bool { return b < 1 }), "a link has no bandwidth")
	return found.Err()
}

// connector is the state of the [Connector] of an engine.
type connector struct {
	Connector
	e     *Engine
	tiers []tier
	links []int32 // numbers in the engine's network, by index of Links
	epoch uint64  // changes with the content of the tiers
	plan  plan

	handoffs map[int64]Handoff // of requests in the engine, by request ID
	loads    []*load           // in transfer, or arrived and not yet received; in order of their start
	serials  int64
	parked   []int32 // sequences that are loading or loaded, in order of their loads
	leases   []*lease
	due      bool // receive has work at the next boundary
	ended    bool // the engine has crashed: it stores no more KV
}

// newConnector returns the connector of an engine, or nil without [Config.Connector]. before is the engine whose place
// it takes, or nil. The methods that the engine calls at admissions, iterations and releases do nothing if the
// connector is nil.
func newConnector(e, before *Engine) *connector {
	if e.cfg.Connector == nil {
		return nil
	}
	c := &connector{Connector: *e.cfg.Connector, e: e, handoffs: make(map[int64]Handoff)}
	if before != nil {
		c.inherit(before.connector)
	} else {
		c.connect()
	}
	if len(c.tiers) > 0 && c.tiers[0].WriteBack {
		e.space.writesBack = true
		e.space.hashed.LogEvictions()
	}
	return c
}

// connect adds the links to the network, and makes empty tiers.
func (c *connector) connect() {
	for _, b := range c.Links {
		c.links = append(c.links, c.e.transfers.AddLink(b))
	}
	for _, t := range c.Tiers {
		c.tiers = append(c.tiers, tier{Tier: t, chunks: kv.NewTier(t.Chunks, t.Eviction),
			link: c.e.transfers.AddLink(t.BytesPerSecond), flow: none})
	}
}

// noteHandoff records which part of a request that reaches the queue the engine serves.
func (c *connector) noteHandoff(req *workload.Request) {
	if c != nil && c.Handoff != nil {
		c.recordHandoff(req)
	}
}

func (c *connector) recordHandoff(req *workload.Request) {
	if handoff := c.Handoff(req); handoff.Lease > 0 || handoff.Remote.Tokens > 0 {
		c.handoffs[req.ID] = handoff
	}
}

// forgetHandoff removes the handoff of a request that has ended.
func (c *connector) forgetHandoff(id int64) {
	if c != nil {
		delete(c.handoffs, id)
	}
}

// leaseOf returns how long the blocks of a request are kept after its end.
func (c *connector) leaseOf(id int64) clock.Duration {
	if c == nil {
		return 0
	}
	return c.handoffs[id].Lease
}

// computedFor returns the number of tokens that another replica has computed for this very request.
func (c *connector) computedFor(id int64) int32 {
	if c == nil {
		return 0
	}
	remote := c.handoffs[id].Remote
	if !remote.Again {
		return 0
	}
	return remote.Tokens
}

// halt stops the copies to tiers, because the engine has crashed.
func (c *connector) halt() {
	if c != nil {
		c.ended = true
	}
}

// awaits reports whether loads or leases are left.
func (c *connector) awaits() bool { return c != nil && len(c.loads)+len(c.leases) > 0 }

// Disaggregated prefill/decode. The code here is the prefill side: it produces one token that is not delivered, keeps
// the blocks under a lease and hands the record on. The decode side is sent the original request, with a Handoff that
// says where its KV is.

// handsOff reports whether the record of s is passed to Handoff.Ended and not to the client.
func (c *connector) handsOff(s *sequence) bool {
	return c != nil && c.handoffs[s.rec.Request.ID].Ended != nil
}

// handOff passes the record of s, which has ended, to Handoff.Ended.
func (c *connector) handOff(s *sequence) {
	s.rec.Tokens, s.rec.FirstToken, s.rec.LastToken = 0, clock.Never, clock.Never
	if p := c.e.host.Client(s.rec.Request.ID); p != nil {
		p.Seq, p.AtFrontend = none, true
	}
	end := c.handoffs[s.rec.Request.ID].Ended
	c.forgetHandoff(s.rec.Request.ID)
	end(&s.rec, c.e.now)
}

// SetLeg sets [Connector.Handoff]. The engine must have a [Connector].
func (e *Engine) SetLeg(handoff func(r *workload.Request) Handoff) { e.connector.Handoff = handoff }

// Keeps reports whether the engine keeps blocks of a request under a lease, and how many.
func (e *Engine) Keeps(id int64) (blocks int, ok bool) {
	for _, l := range e.connector.leases {
		if l.request == id && !l.over {
			return l.Count, true
		}
	}
	return 0, false
}

// KV cleanup after an engine stops: transfers are cancelled, leases are dropped, and only persistent tiers keep their
// KV.

// drained reports whether no lease is left, and all copies to persistent tiers are complete.
func (c *connector) drained() bool {
	return c == nil || !slices.ContainsFunc(c.leases, func(l *lease) bool { return !l.over }) &&
		!slices.ContainsFunc(c.tiers, func(t tier) bool { return t.Persistent && t.flow != none })
}

// Abandon cancels all transfers of the engine at the instant at, and frees the blocks of its loads and leases. No
// request may be left in the engine.
func (e *Engine) Abandon(at clock.Time) {
	c := e.connector
	if c == nil {
		return
	}
	e.transfers.abandon(at, e)
	for k := range c.tiers {
		c.reportBusy(at, k)
	}
	for _, l := range c.loads {
		e.space.release(&l.keptBlocks)
	}
	for _, l := range c.leases {
		l.over = true
		e.space.release(&l.keptBlocks)
	}
	c.loads, c.leases, c.due = nil, nil, false
}

// inherit takes over the links of the engine that had this place before, and the content of its persistent tiers.
func (c *connector) inherit(before *connector) {
	c.links = before.links
	for _, t := range before.tiers {
		after := tier{Tier: t.Tier, chunks: t.chunks, link: t.link, flow: none, torn: t.torn}
		if !t.Persistent {
			after.chunks = kv.NewTier(t.Chunks, t.Eviction)
		}
		c.tiers = append(c.tiers, after)
	}
}

// cutOff makes load l fail at the instant at, because the replica that it reads from has stopped.
func (c *connector) cutOff(at clock.Time, l *load) {
	l.fails, l.read, l.parts = true, nil, 0
	c.due = true
	c.e.cut(at)
	c.e.host.Changed(c.e.index)
}

// tear marks the chunks that are in the tier as torn: they were not copied completely.
func (t *tier) tear(keys []uint64) {
	for _, key := range keys {
		if t.chunks.Has(key) {
			if t.torn == nil {
				t.torn = make(map[uint64]bool)
			}
			t.torn[key] = true
		}
	}
	t.copied = nil
}

// transferred handles a transfer that has been sent or, if done is true, has arrived.
func (c *connector) transferred(at clock.Time, p payload, done bool) {
	if p.tier != none {
		if p.load == nil {
			t := &c.tiers[p.tier]
			t.flow, t.copied = none, t.copied[:0]
		}
		c.reportBusy(at, int(p.tier))
	}
	if !done || p.load == nil {
		return
	}
	if p.load.parts--; p.load.parts > 0 {
		return
	}
	c.due = true
	c.e.cut(at)
	if read := p.load.read; read != nil {
		read(at)
	}
}
