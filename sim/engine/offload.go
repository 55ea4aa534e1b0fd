package engine

import (
	"slices"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/kv"
	"clifftop/sim/queue"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// KV offloading to tiers: storing chunks, finding them and planning their loads.
//
// A chunk can be loaded as soon as its copy begins.

// tier is the state of a [Tier] of an engine.
type tier struct {
	Tier
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

// loadable returns the number of tokens of a waiting request that can be loaded, after those in the prefix cache.
func (c *connector) loadable(w *queue.Waiting, d *sched.Waiting) int32 {
	c.evictions()
	p := &c.plan
	if w.Seq != none && (c.e.seqs.at(w.Seq).phase == loaded || c.e.inFlight.tokensInFlight(w.Seq) > 0) {
		p.valid = false
		return 0
	}
	if p.valid && p.request == w.Request.ID && p.known == d.Known && p.pool == c.e.space.epoch() && p.tiers == c.epoch {
		return p.tokens
	}
	p.valid, p.request, p.known, p.pool, p.tiers = true, w.Request.ID, d.Known, c.e.space.epoch(), c.epoch
	p.tokens, p.remote = 0, false
	if there := min(c.handoffs[w.Request.ID].Remote.Tokens, d.Known); there > d.Cached {
		p.tokens, p.remote = there-d.Cached, true
	} else if len(c.tiers) > 0 && c.e.space.findable(w) {
		p.findChunks(c, w, d)
	}
	return p.tokens
}

// findChunks plans the load of the longest run of chunks that the tiers hold and that is worth loading.
func (p *plan) findChunks(c *connector, w *queue.Waiting, d *sched.Waiting) {
	text := c.e.space.text(w)
	size, chunk := c.e.cfg.BlockSize, c.chunkBlocks()
	local := d.Cached / size
	for tiers := len(c.tiers); tiers > 0; tiers-- {
		p.chunks, p.blocks = p.chunks[:0], append(p.blocks[:0], make([]int, len(c.tiers))...)
		end := local / chunk
		for ; (end+1)*chunk*size <= d.Known; end++ {
			key := c.e.space.hashed.Key(text, (end+1)*chunk-1)
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
		if p.worthLoading(c, tokens, d.Cached) {
			p.tokens = tokens
			return
		}
	}
}

// worthLoading reports whether to load the tokens of the plan rather than compute them. cached is the number of tokens
// before them.
func (p *plan) worthLoading(c *connector, tokens, cached int32) bool {
	if c.Fetch == FetchAlways {
		return true
	}
	compute, _, _ := c.e.cfg.Timer.Span(&model.Batch{Chunks: []model.Chunk{{New: tokens, Cached: cached}}})
	for k, n := range p.blocks {
		t := &c.tiers[k]
		if n > 0 && t.Latency.Seconds()+float64(n)*float64(c.BlockBytes)/float64(t.BytesPerSecond) >= float64(compute)*1e-15 {
			return false
		}
	}
	return true
}

// start begins the transfers of the plan for load l.
func (p *plan) start(c *connector, l *load) {
	for k := len(p.chunks) - 1; k >= 0; k-- { // in reverse, so that the last chunks of a text are evicted first
		c.tiers[p.chunks[k].tier].chunks.Use(p.chunks[k].key)
	}
	for k, n := range p.blocks {
		if n == 0 {
			continue
		}
		t := &c.tiers[k]
		l.parts++
		c.e.transfers.begin(c.e.now, payload{engine: c.e, load: l, tier: int32(k)}, int64(n)*c.BlockBytes, t.Latency, t.link)
		c.reportMove(event.Move{Tier: k, Blocks: n})
	}
}

// computed copies the blocks of prefills that iteration f has completed to the write-through tiers.
func (c *connector) computed(f *iteration) {
	if c != nil {
		c.storePrefills(f)
	}
}

func (c *connector) storePrefills(f *iteration) {
	for _, i := range f.firsts {
		if s := c.e.seqs.at(i); s.running() && s.joinBatch == f.number {
			c.store(s, s.target/c.e.cfg.BlockSize)
		}
	}
}

// leaves copies the computed blocks of s, which leaves the running batch, to the write-through tiers.
func (c *connector) leaves(s *sequence) {
	if c == nil {
		return
	}
	blocks := int32(0)
	if h := c.e.space.hashed; h != nil {
		blocks = min(h.Registered(s.number), s.computed/c.e.cfg.BlockSize)
	}
	c.store(s, blocks)
}

// store copies the first blocks of s to the write-through tiers.
func (c *connector) store(s *sequence, blocks int32) {
	if blocks > 0 && c.e.space.hashed != nil && len(c.tiers) > 0 && !c.ended {
		c.enter(c.e.space.hashed.KeysOf(s.number, blocks), blocks)
	}
	c.flush()
}

// enter puts the chunks in the first blocks of a text into the write-through tiers. keys are the keys of the blocks.
// The last chunk is entered first, so that the last chunks of a text are evicted first. The chunks are copied in order,
// beginning with the first.
func (c *connector) enter(keys *kv.Keys, blocks int32) {
	chunk := c.chunkBlocks()
	for k := range c.tiers {
		before := len(c.tiers[k].copied)
		for i := blocks / chunk; i > 0 && !c.tiers[k].WriteBack; i-- {
			c.put(k, keys.At(i*chunk-1))
		}
		slices.Reverse(c.tiers[k].copied[before:])
	}
}

// warm puts the first blocks of a request from before the run into the tiers.
func (c *connector) warm(q *workload.Request, blocks int32) {
	if c == nil || c.e.space.hashed == nil {
		return
	}
	c.enter(c.e.space.hashed.KeysOfText(q, blocks), blocks)
	c.evictions()
	for k := range c.tiers {
		c.tiers[k].pending, c.tiers[k].copied = 0, nil
	}
}

// put adds a chunk to tier k. If the tier has the chunk, put notes a use of it.
func (c *connector) put(k int, key uint64) {
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
func (c *connector) evictions() {
	if c.e.space.writesBack {
		for _, key := range c.e.space.hashed.Evicted() {
			c.put(0, key)
		}
	}
}

// flush begins to copy the chunks that have been put into the tiers.
func (c *connector) flush() {
	if c != nil && !c.ended {
		c.copyPending()
	}
}

func (c *connector) copyPending() {
	c.evictions()
	for k := range c.tiers {
		t := &c.tiers[k]
		if t.pending == 0 {
			continue
		}
		bytes := int64(t.pending) * c.BlockBytes
		if t.flow == none {
			t.flow = c.e.transfers.begin(c.e.now, payload{engine: c.e, tier: int32(k)}, bytes, 0, t.link)
		} else {
			c.e.transfers.extend(c.e.now, t.flow, bytes)
		}
		c.reportMove(event.Move{Tier: k, Stored: true, Blocks: t.pending})
		t.pending = 0
	}
}

// reportMove reports the start of a load or of a copy to the observers, and that its link is busy.
func (c *connector) reportMove(m event.Move) {
	m.Replica, m.Bytes = c.e.index, int64(m.Blocks)*c.BlockBytes
	c.e.obs.Moved(c.e.now, m)
	c.reportBusy(c.e.now, m.Tier)
}

// reportBusy reports to the observers whether the link of tier k is busy, if that has changed.
func (c *connector) reportBusy(at clock.Time, k int) {
	t := &c.tiers[k]
	busy := c.e.transfers.Carries(t.link)
	if busy == t.busy {
		return
	}
	t.busy = busy
	c.e.obs.LinkBusy(at, c.e.index, k, busy)
}
