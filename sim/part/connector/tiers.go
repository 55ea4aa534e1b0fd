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

// KV offloading to tiers: storing chunks, finding them and planning their loads.
//
// A chunk can be loaded as soon as its copy begins.

// tier is the state of a tier of an engine.
type tier struct {
	engine.Tier
	chunks  *kv.Tier
	link    int32
	flow    int32 // the transfer that carries the copies; none if there is no such transfer
	pending int   // blocks to be added to that transfer
	busy    bool  // last reported state of the link

	// Only for a persistent tier: copied is the chunks that the transfer carries, in order. torn is the chunks that
	// have a place in the tier, but were not copied completely. They cannot be loaded until they are copied again.
	copied []uint64
	torn   map[uint64]bool
}

// has reports whether a chunk can be loaded from the tier.
func (t *tier) has(key uint64) bool { return t.chunks.Has(key) && !t.torn[key] }

// plan is what can be loaded for a waiting request. It stays valid until the request, the pool or the tiers change.
type plan struct {
	valid   bool
	request int64
	known   int32
	pool    uint64 // epochs of the pool and of the tiers at which the plan was made
	tiers   uint64

	tokens int32  // number of tokens to load; 0 for none
	remote bool   // the tokens are loaded from another replica, not from the tiers
	chunks []part // in order of their tokens
	blocks []int  // number of blocks to load from each tier
}

// part is a chunk, and the tier that it is loaded from.
type part struct {
	key  uint64
	tier int
}

// Loadable implements [engine.KVConnector].
func (c *Connector) Loadable(text kv.Text, cached int32, ready bool) int32 {
	c.evictions()
	p, pool := &c.plan, uint64(0)
	if !ready {
		p.valid = false
		return 0
	}
	if c.pool != nil {
		pool = c.pool.Epoch()
	}
	id := text.Request.ID
	if p.valid && p.request == id && p.known == text.Known && p.pool == pool && p.tiers == c.epoch {
		return p.tokens
	}
	p.valid, p.request, p.known, p.pool, p.tiers = true, id, text.Known, pool, c.epoch
	p.tokens, p.remote = 0, false
	if there := min(c.handoffs[id].Remote.Tokens, text.Known); there > cached {
		p.tokens, p.remote = there-cached, true
	} else if len(c.tiers) > 0 && c.pool.Findable(text) {
		c.findChunks(text, cached)
	}
	return p.tokens
}

// Pulls implements [engine.KVConnector].
func (c *Connector) Pulls() bool { return c.plan.remote }

// findChunks plans the load of the longest run of chunks that the tiers hold and that is worth loading.
func (c *Connector) findChunks(text kv.Text, cached int32) {
	p, size, chunk := &c.plan, c.blockSize, c.chunkBlocks()
	local := cached / size
	for tiers := len(c.tiers); tiers > 0; tiers-- {
		p.chunks, p.blocks = p.chunks[:0], append(p.blocks[:0], make([]int, len(c.tiers))...)
		end := local / chunk
		for ; (end+1)*chunk*size <= text.Known; end++ {
			key := c.pool.Key(text, (end+1)*chunk-1)
			at := 0
			for at < tiers && !c.tiers[at].has(key) {
				at++
			}
			if at == tiers {
				break
			}
			p.chunks = append(p.chunks, part{key, at})
			p.blocks[at] += int(min(chunk, (end+1)*chunk-local))
		}
		tokens := (end*chunk - local) * size
		if tokens <= 0 || tokens < c.MinTokens {
			return
		}
		if c.worthLoading(tokens, cached) {
			p.tokens = tokens
			return
		}
	}
}

// worthLoading reports whether to load the tokens of the plan rather than compute them. cached is the number of tokens
// before them.
func (c *Connector) worthLoading(tokens, cached int32) bool {
	if c.Fetch == engine.FetchAlways {
		return true
	}
	compute, _, _ := c.timer.Span(&model.Batch{Chunks: []model.Chunk{{New: tokens, Cached: cached}}})
	for k, n := range c.plan.blocks {
		t := &c.tiers[k]
		load := t.Latency.Seconds() + float64(n)*float64(c.BlockBytes)/float64(t.BytesPerSecond)
		if n > 0 && load >= float64(compute)*1e-15 {
			return false
		}
	}
	return true
}

// fetchTiers begins the transfers of the plan for load l.
func (c *Connector) fetchTiers(at clock.Time, l *load) {
	p := &c.plan
	for k := len(p.chunks) - 1; k >= 0; k-- { // in reverse, so that the last chunks of a text are evicted first
		c.tiers[p.chunks[k].tier].chunks.Use(p.chunks[k].key)
	}
	for k, n := range p.blocks {
		if n == 0 {
			continue
		}
		t := &c.tiers[k]
		l.parts++
		c.net.begin(at, payload{engine: c.number, replica: c.replica, load: l, tier: k}, int64(n)*c.BlockBytes,
			t.Latency, t.link)
		c.reportMove(at, event.Move{Tier: k, Blocks: n})
	}
}

// Left implements [engine.KVConnector].
func (c *Connector) Left(at clock.Time, seq, computed int32) {
	blocks := int32(0)
	if c.pool != nil {
		blocks = min(c.pool.Registered(seq), computed/c.blockSize)
	}
	c.Store(at, seq, blocks)
}

// Store implements [engine.KVConnector].
func (c *Connector) Store(at clock.Time, seq, blocks int32) {
	if blocks > 0 && c.pool != nil && len(c.tiers) > 0 && !c.ended {
		c.enter(c.pool.KeysOf(seq, blocks), blocks)
	}
	c.Composed(at)
}

// enter puts the chunks in the first blocks of a text into the write-through tiers. keys are the keys of the blocks.
// The last chunk is entered first, so that the last chunks of a text are evicted first. The chunks are copied in order,
// beginning with the first.
func (c *Connector) enter(keys *kv.Keys, blocks int32) {
	chunk := c.chunkBlocks()
	for k := range c.tiers {
		before := len(c.tiers[k].copied)
		for i := blocks / chunk; i > 0 && !c.tiers[k].WriteBack; i-- {
			c.put(k, keys.At(i*chunk-1))
		}
		slices.Reverse(c.tiers[k].copied[before:])
	}
}

// Warm implements [engine.KVConnector].
func (c *Connector) Warm(q *workload.Request, blocks int32) {
	if c.pool == nil {
		return
	}
	c.enter(c.pool.KeysOfText(q, blocks), blocks)
	c.evictions()
	for k := range c.tiers {
		c.tiers[k].pending, c.tiers[k].copied = 0, nil
	}
}

// put adds a chunk to tier k. If the tier has the chunk, put notes a use of it.
func (c *Connector) put(k int, key uint64) {
	t := &c.tiers[k]
	if t.has(key) {
		t.chunks.Use(key)
		return
	}
	c.epoch++
	t.pending += int(c.chunkBlocks())
	if t.Persistent {
		t.copied = append(t.copied, key)
	}
	if t.torn[key] {
		delete(t.torn, key)
		t.chunks.Use(key)
		return
	}
	victim, evicted := t.chunks.Put(key)
	if t.torn[victim] && evicted {
		delete(t.torn, victim)
	} else if evicted && k+1 < len(c.tiers) && c.tiers[k+1].WriteBack {
		c.put(k+1, victim)
	}
}

// evictions writes the blocks that the pool has evicted back to the first tier.
func (c *Connector) evictions() {
	if c.writesBack() {
		for _, key := range c.pool.Evicted() {
			c.put(0, key)
		}
	}
}

// Composed implements [engine.KVConnector].
func (c *Connector) Composed(at clock.Time) {
	if c.ended {
		return
	}
	c.evictions()
	for k := range c.tiers {
		t := &c.tiers[k]
		if t.pending == 0 {
			continue
		}
		bytes := int64(t.pending) * c.BlockBytes
		if t.flow == none {
			t.flow = c.net.begin(at, payload{engine: c.number, replica: c.replica, tier: k, copies: t,
				chunk: int64(c.chunkBlocks()) * c.BlockBytes}, bytes, 0, t.link)
		} else {
			c.net.extend(at, t.flow, bytes)
		}
		c.reportMove(at, event.Move{Tier: k, Stored: true, Blocks: t.pending})
		t.pending = 0
	}
}

// reportMove reports the start of a load or of a copy to the observers, and that its link is busy.
func (c *Connector) reportMove(at clock.Time, m event.Move) {
	m.Replica, m.Bytes = c.replica, int64(m.Blocks)*c.BlockBytes
	c.obs.Moved(at, m)
	c.reportBusy(at, m.Tier)
}

// reportBusy reports to the observers whether the link of tier k is busy, if that has changed.
func (c *Connector) reportBusy(at clock.Time, k int) {
	t := &c.tiers[k]
	busy := c.net.net.Carries(t.link)
	if busy == t.busy {
		return
	}
	t.busy = busy
	c.obs.LinkBusy(at, c.replica, k, busy)
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

// chunkBlocks returns the number of blocks in a chunk.
func (c *Connector) chunkBlocks() int32 { return max(c.ChunkBlocks, 1) }
