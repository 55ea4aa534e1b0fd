// Package kv is the paged KV cache of one engine: a pool of equal blocks, and the prefix cache that
// finds blocks again by their content.
//
// Without prefix caching blocks have no identity and the pool only counts. With it every block is
// in one of two states: referenced by one or more sequences, or in the free list. A free
// block may still hold a cached prefix; it loses it when it is handed out again. The free list is
// therefore also the order of eviction: least recently released first.
package kv

// Pool is a pool of KV blocks. Block 0 is vLLM's null block: it is never handed out.
type Pool struct {
	usable, free  int
	appendUnkeyed bool
	index         index // and the blocks; empty when the pool only counts
	list          freeList
	ghosts        ghosts
	shared        int64
	epoch         uint64
	unkeyed       []int32 // scratch of Release
	logs          bool
	evicted       []uint64
	tell          func(key uint64, held bool)
}

// NewCounter returns a pool of usable blocks without identity.
func NewCounter(usable int) *Pool {
	return &Pool{usable: usable, free: usable}
}

// NewCache returns a pool of usable blocks with a prefix cache. appendUnkeyed puts released blocks
// that hold no cached content at the back of the free list instead of the front.
func NewCache(usable int, appendUnkeyed bool) *Pool {
	p := &Pool{usable: usable, free: usable, appendUnkeyed: appendUnkeyed}
	p.index.init(usable)
	p.list.init(usable)
	for id := int32(1); id <= int32(usable); id++ {
		p.index.items[id].refs = -1 - p.list.pushBack(id)
	}
	p.ghosts.most = RememberedEvictions
	return p
}

// Usable is the number of blocks that sequences can hold.
func (p *Pool) Usable() int { return p.usable }

// Free is the number of blocks that nobody references, cached ones included.
func (p *Pool) Free() int { return p.free }

// Shared is the number of references to blocks beyond the first of each: Σ max(0, references-1).
func (p *Pool) Shared() int64 { return p.shared }

// Epoch changes whenever a look-up may find more, less or otherwise than before.
func (p *Pool) Epoch() uint64 { return p.epoch }

// TakeCount takes n blocks from a pool that only counts; PutCount returns them.
func (p *Pool) TakeCount(n int) { p.free -= n }

// PutCount returns n blocks to a pool that only counts.
func (p *Pool) PutCount(n int) { p.free += n }

// Pop takes n blocks from the front of the free list and appends them to ids. What they had cached is
// evicted. The caller has seen that there are as many.
func (p *Pool) Pop(ids []int32, n int) []int32 {
	from := len(ids)
	ids = p.list.pop(ids, n)
	for _, id := range ids[from:] {
		it := &p.index.items[id]
		if it.state&indexed != 0 {
			p.evict(id)
		}
		it.state, it.refs = 0, 1
	}
	p.free -= n
	return ids
}

// evict makes the content of block id, which is indexed, unknown.
func (p *Pool) evict(id int32) {
	key := p.index.key(id)
	p.ghosts.add(key)
	if p.logs {
		p.evicted = append(p.evicted, key)
	}
	if p.index.remove(id) && p.tell != nil {
		p.tell(key, false)
	}
	p.epoch++
}

// LogEvictions makes the pool note the content that it loses.
func (p *Pool) LogEvictions() { p.logs = true }

// Evicted returns the keys of what was evicted since the last call, in order. The list is valid until the next Pop.
func (p *Pool) Evicted() []uint64 {
	list := p.evicted
	p.evicted = p.evicted[:0]
	return list
}

// Find returns the block first registered among those that hold the content of key, or 0.
func (p *Pool) Find(key uint64) int32 { return p.index.find(key) }

// Match appends to ids the blocks that [Pool.Find] finds for the leading keys of a text, up to the first that it does not.
func (p *Pool) Match(keys []uint64, ids []int32) []int32 {
	for _, key := range keys {
		id := p.index.find(key)
		if id == 0 {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// Lost is how many of the keys that follow what was found of a text would be found too but for evictions: of the last
// [RememberedEvictions] at least. Their content is not in the cache, or cannot be found there since it goes on from what is not.
func (p *Pool) Lost(keys []uint64) int {
	if p.ghosts.empty() {
		return 0
	}
	for i, key := range keys {
		if !p.ghosts.has(key) && p.index.find(key) == 0 {
			return i
		}
	}
	return len(keys)
}

// Referenced is how many of the blocks some sequence holds.
func (p *Pool) Referenced(ids []int32) int {
	n := 0
	for _, id := range ids {
		if p.index.items[id].refs > 0 {
			n++
		}
	}
	return n
}

// Reference adds a reference to a cached block, taking it off the free list if nobody held it.
func (p *Pool) Reference(id int32) {
	it := &p.index.items[id]
	if it.refs > 0 {
		p.shared++
		it.refs++
		return
	}
	p.list.take(-1 - it.refs)
	p.free--
	p.epoch++
	it.refs = 1
}

// Index makes blocks, which are full, findable by the keys of their content.
func (p *Pool) Index(ids []int32, keys []uint64) {
	for i, id := range ids {
		if p.index.insert(id, keys[i]) && p.tell != nil {
			p.tell(keys[i], true)
		}
	}
	p.epoch++
}

// Tell makes the pool tell, from now on, which keys can be found that could not before, and which cannot any more.
func (p *Pool) Tell(events func(key uint64, held bool)) { p.tell = events }

// Release drops one reference to each block of a sequence, from its last block to its first, so that the
// end of a sequence is evicted before its start. The first full ones hold a full block's content: whether it can be found or
// not, they keep their place in the order of eviction.
func (p *Pool) Release(ids []int32, full int32) {
	p.unkeyed = p.unkeyed[:0]
	if !p.list.room(len(ids)) {
		p.list.compact(func(id, place int32) { p.index.items[id].refs = -1 - place })
	}
	for i := len(ids) - 1; i >= 0; i-- {
		id := ids[i]
		it := &p.index.items[id]
		it.refs--
		if it.refs > 0 {
			p.shared--
			continue
		}
		p.free++
		if it.state&indexed != 0 {
			p.epoch++
		}
		if i >= int(full) && it.state&indexed == 0 && !p.appendUnkeyed {
			p.unkeyed = append(p.unkeyed, id)
			continue
		}
		it.refs = -1 - p.list.pushBack(id)
	}
	for i := len(p.unkeyed) - 1; i >= 0; i-- {
		id := p.unkeyed[i]
		p.index.items[id].refs = -1 - p.list.pushFront(id)
	}
}

// FreeList returns the ids of the free blocks in order of eviction, for tests and checks.
func (p *Pool) FreeList() []int32 { return p.list.all() }
