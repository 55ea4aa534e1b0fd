package engine

import (
	"slices"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/kv"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Tiers of KV beyond the pool: what goes there, and what is found there.
//
// A chunk can be loaded from the moment on at which its copy begins.

// tier is a tier of a replica.
type tier struct {
	Tier
	chunks  *kv.Tier
	link    int32
	flow    int32 // the transfer that carries the copies; none if there is nothing to carry
	pending int   // blocks that are to be added to it
	busy    bool  // what the observer knows of the link

	// Of one that outlives the engine: the chunks that the transfer carries, in order, and those that keep a place
	// though not all of them has come. They are of no use until they are copied again.
	copied []uint64
	torn   map[uint64]bool
}

// has reports whether a chunk can be loaded from the tier.
func (t *tier) has(key uint64) bool { return t.chunks.Has(key) && !t.torn[key] }

// plan is how a waiting request would be loaded.
type plan struct {
	valid   bool
	request int64
	known   int32
	pool    uint64 // epochs at which it was made
	tiers   uint64

	tokens int32  // how many, 0 for none
	remote bool   // from another replica, and not from the tiers
	chunks []part // from the first on
	blocks []int  // of each tier
}

// part is a chunk that a tier has.
type part struct {
	key  uint64
	tier int
}

// loadable is the number of tokens of a waiting request that can be loaded, behind those that the prefix cache has.
func (c *connector) loadable(w *waiting, d *sched.Waiting) int32 {
	c.evictions()
	p := &c.plan
	if w.seq != none && (c.e.seqs.at(w.seq).phase == loaded || c.e.inFlight.tokensInFlight(w.seq) > 0) {
		p.valid = false
		return 0
	}
	if p.valid && p.request == w.req.ID && p.known == d.Known && p.pool == c.e.space.pool.Epoch() && p.tiers == c.epoch {
		return p.tokens
	}
	p.valid, p.request, p.known, p.pool, p.tiers = true, w.req.ID, d.Known, c.e.space.pool.Epoch(), c.epoch
	p.tokens, p.remote = 0, false
	if there := min(c.handoffs[w.req.ID].Remote.Tokens, d.Known); there > d.Cached {
		p.tokens, p.remote = there-d.Cached, true
	} else if len(c.tiers) > 0 && c.e.space.mayHit(w) {
		p.findChunks(c, w, d)
	}
	return p.tokens
}

// findChunks plans to load the longest run of chunks that the tiers have and that is worth it.
func (p *plan) findChunks(c *connector, w *waiting, d *sched.Waiting) {
	keys := &c.e.space.look.fresh
	if w.seq != none {
		keys = &c.e.seqs.at(w.seq).blockHashes
	}
	size, chunk := c.e.cfg.BlockSize, c.chunkBlocks()
	local := d.Cached / size
	for tiers := len(c.tiers); tiers > 0; tiers-- {
		p.chunks, p.blocks = p.chunks[:0], append(p.blocks[:0], make([]int, len(c.tiers))...)
		end := local / chunk
		for ; (end+1)*chunk*size <= d.Known; end++ {
			key := keys.key((end+1)*chunk - 1)
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

// worthLoading reports whether the tokens of the plan, behind so many cached ones, are to be loaded and not computed.
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
	for k := len(p.chunks) - 1; k >= 0; k-- { // so that the ends of texts go before their beginnings
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

// computed copies what flight f has completed the prefill of to the tiers that are written through.
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

// leaves copies what s, which leaves the running batch, has computed.
func (c *connector) leaves(s *sequence) {
	if c != nil {
		c.store(s, min(s.registered, s.computed/c.e.cfg.BlockSize))
	}
}

// store copies the first blocks of s to the tiers that are written through.
func (c *connector) store(s *sequence, blocks int32) {
	if blocks > 0 && c.e.space.caching && len(c.tiers) > 0 && !c.ended {
		s.make(blocks)
		c.enter(&s.keys, blocks)
	}
	c.flush()
}

// enter puts the chunks of a text, whose blocks have the keys, into the tiers that are written through: from the last
// chunk on, so that the ends of texts go before their beginnings. They are copied from the first one on.
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

// warm enters the first blocks of a request of before the run into the tiers.
func (c *connector) warm(q *workload.Request, blocks int32) {
	if c == nil || !c.e.space.caching {
		return
	}
	var keys blockHashes
	keys.begin(&c.e.space.prefixCache, q)
	keys.make(blocks)
	c.enter(&keys.keys, blocks)
	c.evictions()
	for k := range c.tiers {
		c.tiers[k].pending, c.tiers[k].copied = 0, nil
	}
}

// put enters a chunk into tier k.
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

// evictions enters into the tiers what the pool has evicted.
func (c *connector) evictions() {
	if c.e.space.writesBack {
		for _, key := range c.e.space.pool.Evicted() {
			c.put(0, key)
		}
	}
}

// flush begins to copy what has been entered into the tiers.
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

// told tells the observer what begins to move, and that its link is busy.
func (c *connector) reportMove(m event.Move) {
	m.Replica, m.Bytes = c.e.index, int64(m.Blocks)*c.BlockBytes
	c.e.obs.Moved(c.e.now, m)
	c.reportBusy(c.e.now, m.Tier)
}

// reportBusy tells the observer whether the link of a tier is busy, if that has changed.
func (c *connector) reportBusy(at clock.Time, k int) {
	t := &c.tiers[k]
	busy := c.e.transfers.Carries(t.link)
	if busy == t.busy {
		return
	}
	t.busy = busy
	c.e.obs.LinkBusy(at, c.e.index, k, busy)
}
