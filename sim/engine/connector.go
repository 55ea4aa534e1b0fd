package engine

import (
	"slices"

	"clifftop/internal/faults"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/kv"
	"clifftop/workload"
)

// Connector connects the KV pool of a replica with KV elsewhere: with tiers of memory that keep what requests have
// computed, and with other replicas that compute prompts for this one. The policy has a waiting request loaded before
// it admits it: blocks for all its known tokens are taken, and the KV is on its way while others run. It is found to be
// there at the end of the iteration during which it came or, when none runs, at once.
type Connector struct {
	// BlockBytes is the size of a KV block, over all GPUs of the replica, in bytes.
	BlockBytes int64
	// Tiers keep KV, by the content of the tokens. They are looked up in order, for what is not in the prefix cache,
	// which has to be on.
	Tiers []Tier
	// ChunkBlocks is the number of blocks that the tiers keep as one; 0 is 1.
	ChunkBlocks int32
	// Fetch says when tokens that the tiers have are loaded, which are at least MinTokens.
	Fetch     Fetch
	MinTokens int32

	// Handoff says which part of a request the engine serves; nil means all of it, for every request.
	Handoff func(r *workload.Request) Handoff
	// Links are the bandwidths, in bytes per second, of the links over which KV comes from other replicas.
	Links []int64
	// FailLost ends requests whose KV could not be loaded as [event.Failed]; otherwise what is lost is computed.
	// Clients see that the server failed, and may send the request once more.
	FailLost bool
	// PullPercent holds KV of other replicas back while the requests that are loaded, or are being loaded, but do not
	// run have as many percent of the pool; 0 is no limit. DistServe has 5.
	PullPercent int
}

// Tier is memory that KV goes to and comes back from.
type Tier struct {
	Name string
	// Chunks is the number of chunks that it has room for, and Eviction the rule by which they go.
	Chunks   int
	Eviction kv.Eviction
	// BytesPerSecond is the bandwidth of its link. Loads and copies to the tier share it; copies go one after the
	// other, so that all of them together have one share. A load takes Latency longer.
	BytesPerSecond int64
	Latency        clock.Duration
	// Persistent says that what is in the tier outlives the engine, whose next life finds it; otherwise it is gone with
	// it. What was being copied when the engine crashed has not come.
	Persistent bool
	// WriteBack copies to the tier what the level before it evicts, the pool or another tier. Otherwise what
	// requests compute is written through: the tokens of a prefill when it is complete, all others when the
	// request leaves the running batch.
	WriteBack bool
}

// Fetch is a rule of when to load what could be computed.
type Fetch uint8

// The rules.
const (
	// FetchFaster loads tokens if that takes less time, over idle links, than an iteration that does nothing but
	// compute them. Where the slower tiers make it last longer, what they have is left.
	FetchFaster Fetch = iota
	// FetchAlways loads all that there is.
	FetchAlways
)

// String is the rule as scenarios name it.
func (f Fetch) String() string { return [...]string{"faster", "always"}[f] }

// Handoff is what a replica does of a request whose prompt one replica computes and whose answer another one. The first
// is sent a request of one token.
type Handoff struct {
	// Lease is how long the blocks of the request are kept after its last token for the engine that loads them, if they
	// are not released before; 0 keeps none.
	Lease clock.Duration
	// Ended, where it is not nil, takes the record of the request at its end in the place of client, source and
	// observer, which are not told of it: the one token is not delivered.
	Ended func(rec *event.Record, at clock.Time)
	// Remote is KV of the prompt that another replica has.
	Remote Remote
}

// Remote is KV on another replica.
type Remote struct {
	// Tokens is the number of leading tokens whose KV is there; 0 is none.
	Tokens int32
	// Layers divides what is to be transferred once the request can be loaded: where the other replica sends each
	// layer's KV while it computes the next one, only the last of so many layers is left. 0 and 1 send everything then.
	Layers int64
	// Latency is how long it takes before a byte sent has come, and Path the links on the way, as numbers in the
	// Links of the connector.
	Latency clock.Duration
	Path    []int32
	// Fails means that it is not there any more, which comes out at the end of the transfer.
	Fails bool
	// Read, where it is not nil, is told when the KV has come, so that it need not be kept any more; Gone tells
	// whether it is not there any more, when the transfer begins and when it ends.
	Read func(at clock.Time)
	Lost func() bool
	From *Engine // which has it, where that is an engine of the same simulation
	Via  []int32 // links on the way, beside Path, as numbers of the network of [Transfers]
	// Renew says that the tokens were computed for this very request, so that computing them is computing them again.
	Again bool
}

func (c *Connector) chunkBlocks() int32 { return max(c.ChunkBlocks, 1) }

// validate reports faults of the connector, and what it does not go with.
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

// connector is what a replica knows of KV elsewhere.
type connector struct {
	Connector
	e     *Engine
	tiers []tier
	links []int32 // of the engine's network, by their numbers here
	epoch uint64  // changes when one of the tiers does
	plan  plan

	handoffs map[int64]Handoff // of requests that are here
	loads    []*load           // on their way or not yet found to be there, in order of their start
	serials  int64
	parked   []int32 // sequences that are loading or loaded, in that order
	leases   []*lease
	due      bool // something is to be seen at the next boundary
	ended    bool // the engine has crashed: nothing more is stored
}

// newConnector returns the connector of an engine that takes the place of another one, or of none; nil without
// [Config.Connector]. All that the engine calls of it at admissions, iterations and releases does nothing then.
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
		e.space.pool.LogEvictions()
	}
	return c
}

// connect gives the connector links, and empty tiers.
func (c *connector) connect() {
	for _, b := range c.Links {
		c.links = append(c.links, c.e.transfers.AddLink(b))
	}
	for _, t := range c.Tiers {
		c.tiers = append(c.tiers, tier{Tier: t, chunks: kv.NewTier(t.Chunks, t.Eviction),
			link: c.e.transfers.AddLink(t.BytesPerSecond), flow: none})
	}
}

// noteHandoff notes which part of a request that reaches the queue the engine serves.
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

// forgetHandoff forgets which part of a request the engine serves, which has ended.
func (c *connector) forgetHandoff(id int64) {
	if c != nil {
		delete(c.handoffs, id)
	}
}

// leaseOf is how long the blocks of a request are kept after its end.
func (c *connector) leaseOf(id int64) clock.Duration {
	if c == nil {
		return 0
	}
	return c.handoffs[id].Lease
}

// computedFor is the number of tokens that another replica has computed for this very request.
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

// awaits reports whether KV is on its way here, or kept for another engine.
func (c *connector) awaits() bool { return c != nil && len(c.loads)+len(c.leases) > 0 }

// Requests whose prompt one replica computes and whose answer another one. What is here is the side of the first: it
// produces one token that is not delivered, keeps the blocks under a lease and hands the record on. The second one is
// sent the request as it came, with a leg that says where its KV is.

// handsOff reports whether the record of s goes to another engine, and not to the client.
func (c *connector) handsOff(s *sequence) bool {
	return c != nil && c.handoffs[s.rec.Request.ID].Ended != nil
}

// handOff hands the record of s on, which has ended.
func (c *connector) handOff(s *sequence) {
	s.rec.Tokens, s.rec.FirstToken, s.rec.LastToken = 0, clock.Never, clock.Never
	if p := c.e.host.Client(s.rec.Request.ID); p != nil {
		p.Seq, p.AtFrontend = none, true
	}
	end := c.handoffs[s.rec.Request.ID].Ended
	c.forgetHandoff(s.rec.Request.ID)
	end(&s.rec, c.e.now)
}

// SetLeg sets what the engine does of a request. It needs a [Connector].
func (c *connector) SetLeg(handoff func(r *workload.Request) Handoff) { c.Handoff = handoff }

// Keeps reports whether the replica keeps the KV of a request for another one.
func (c *connector) Keeps(id int64) bool {
	for _, l := range c.leases {
		if l.request == id && !l.over {
			return true
		}
	}
	return false
}

// KV cleanup after an engine stops: transfers are cancelled, leases are dropped, and only persistent tiers keep their
// KV.

// drained reports whether no other engine will load KV that is kept here, and tiers that outlive the engine have all
// that was copied there.
func (c *connector) drained() bool {
	return c == nil || !slices.ContainsFunc(c.leases, func(l *lease) bool { return !l.over }) &&
		!slices.ContainsFunc(c.tiers, func(t tier) bool { return t.Persistent && t.flow != none })
}

// Abandon gives up what is on its way at the instant at, when no request is left, and frees the blocks that are kept.
func (c *connector) Abandon(at clock.Time) {
	if c == nil {
		return
	}
	c.e.transfers.abandon(at, c.e)
	for k := range c.tiers {
		c.reportBusy(at, k)
	}
	for _, l := range c.loads {
		c.e.space.release(&l.heldBlocks)
	}
	for _, l := range c.leases {
		l.over = true
		c.e.space.release(&l.heldBlocks)
	}
	c.loads, c.leases, c.due = nil, nil, false
}

// inherit takes over the links of the engine that was here before, and what it has left in tiers that persist.
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

// cutOff ends a load from a replica that has ended.
func (c *connector) cutOff(at clock.Time, l *load) {
	l.fails, l.read, l.parts = true, nil, 0
	c.due = true
	c.e.cut(at)
	c.e.host.Changed(c.e.index)
}

// tear makes chunks useless, as far as they are in the tier.
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

// transferred notes that a transfer has been sent or, if it is done, has come.
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
