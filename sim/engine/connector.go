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
	Via  []int32 // links on the way, in addition to Path, as numbers of the network of the simulation
	// Again means that the tokens were computed for this very request. If they are computed here, they count as
	// recomputed.
	Again bool
}

// KVConnector is the state of the [Connector] of an engine: what has been stored outside the pool, and what is being
// loaded. Package connector implements it. The engine calls it with numbers of its sequences and of requests.
type KVConnector interface {
	handoffs
	loads
	stores
	// Lease returns how long the blocks of a request are kept after its end. EndLease plans the end of a lease.
	Lease(request int64) clock.Duration
	EndLease(at clock.Time, lease int64)
	// Halt stops the copies, because the engine has crashed.
	Halt()
	// Drained reports whether all copies to persistent tiers are complete.
	Drained() bool
}

// handoffs has which part of a request the engine serves.
type handoffs interface {
	// Queued finds that out for a request that has reached the queue. Forget is called when the request has ended.
	Queued(req *workload.Request)
	Forget(request int64)
	// Precomputed returns the number of tokens that another engine has computed for this very request.
	Precomputed(request int64) int32
	// HandsOff reports whether the record of a request is passed to [Handoff.Ended] and not to the client. HandOff
	// passes it.
	HandsOff(request int64) bool
	HandOff(rec *event.Record, at clock.Time)
}

// loads is the KV that is loaded into the pool.
type loads interface {
	// Loadable returns the number of tokens of a waiting request that can be loaded, after those in the prefix cache,
	// in which it was looked up. It returns 0 for a request that is not ready: its KV is loaded, or it has tokens in
	// flight.
	Loadable(text kv.Text, cached int32, ready bool) int32
	// Pulls reports whether another engine has what Loadable found last.
	Pulls() bool
	// Load begins to load what Loadable found last, and reports whether another engine has it.
	Load(at clock.Time, x Load) (pulls bool)
	// ClientLeft tells that the client of the request of a load has left.
	ClientLeft(load int64)
	// Received returns the loads that have arrived, each of them once, in the order in which they began.
	Received() []Received
}

// stores is the KV that is copied to tiers.
type stores interface {
	// Attach gives the connector the prefix cache, or nil, and reports whether a tier takes the blocks that it evicts.
	Attach(pool *kv.Hashed) (writesBack bool)
	// Store copies the first blocks of a sequence to the tiers, and Left what a sequence has computed that leaves the
	// running batch. Warm stores the first blocks of a request from before the run.
	Store(at clock.Time, seq, blocks int32)
	Left(at clock.Time, seq, computed int32)
	Warm(q *workload.Request, blocks int32)
	// Composed begins the copies of what has been stored or evicted.
	Composed(at clock.Time)
}

// Load is a request whose KV is loaded into the pool.
type Load struct {
	Number  int64 // of the load
	Seq     int32
	Request int64
	Blocks  int // blocks that another engine sends
}

// Received is a load that has arrived or failed.
type Received struct {
	Number  int64
	Seq     int32 // -1 if the client has left
	Started clock.Time
	Failed  bool
}

// validateConnector reports errors in the settings of the connector, and features of the engine that it does not
// support.
func (cfg *Config) validateConnector() error {
	c := cfg.Connector
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
		want(i > 0 || !t.WriteBack || c.ChunkBlocks <= 1,
			"tier %s: the pool evicts blocks, so that a tier that they are written back to cannot keep chunks of %d",
			t.Name, c.ChunkBlocks)
	}
	want(!slices.ContainsFunc(c.Links, func(b int64) bool { return b < 1 }), "a link has no bandwidth")
	return found.Err()
}
