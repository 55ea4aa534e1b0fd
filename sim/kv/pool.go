// Package kv is the paged KV cache of one engine: a pool of equal blocks, and the prefix cache that
// finds blocks again by their content.
//
// Without prefix caching blocks have no identity and the pool only counts. With it every block is
// in one of two states: referenced by one or more sequences, or in the free list. A free
// block may still hold a cached prefix; it loses it when it is handed out again. The free list is
// therefore also the order of eviction: least recently released first.
package kv

// Pool is a pool of KV blocks. Block 0 is vLLM's null block: it is never handed out, and serves as the
// end of the free list.
type Pool struct {
	usable, free  int
	appendUnkeyed bool
	blocks        []block // nil when the pool only counts
	index         index
	ghosts        ghosts
	shared        int64
	epoch         uint64
	unkeyed       []int32 // scratch of Release
	logs          bool
	evicted       []uint64
	tell          func(key uint64, held bool)
}

// block is kept small, because every block of a busy pool is touched in turn; what only indexed
// blocks need stands in the index.
type block struct {
	prev, next int32 // neighbours in the free list
	refs       int32
	keyed      bool // holds a full block's content
	indexed    bool // can be found by its key
}

// NewCounter returns a pool of usable blocks without identity.
func NewCounter(usable int) *Pool {
	return &Pool{usable: usable, free: usable}
}

// NewCache returns a pool of usable blocks with a prefix cache. appendUnkeyed puts released blocks
// that hold no cached content at the back of the free list instead of the front.
func NewCache(usable int, appendUnkeyed bool) *Pool {
	p := &Pool{usable: usable, free: usable, appendUnkeyed: appendUnkeyed, blocks: make([]block, usable+1)}
	for i := range p.blocks {
		p.blocks[i].prev = int32(i) - 1
		p.blocks[i].next = int32(i) + 1
	}
	p.blocks[0].prev = int32(usable)
	p.blocks[usable].next = 0
	p.index.init(usable)
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
	id := p.blocks[0].next
	for range n {
		b := &p.blocks[id]
		if b.indexed {
			key := p.index.items[id].key
			p.ghosts.add(key)
			if p.logs {
				p.evicted = append(p.evicted, key)
			}
			if p.index.remove(id) && p.tell != nil {
				p.tell(key, false)
			}
			p.epoch++
		}
		b.keyed, b.indexed = false, false
		b.refs = 1
		ids = append(ids, id)
		id = b.next
	}
	p.blocks[0].next = id
	p.blocks[id].prev = 0
	p.free -= n
	return ids
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

// Lost reports whether the content of key is not in the cache, or cannot be found there since it goes on from what is
// not, though it would be but for evictions: of the last [RememberedEvictions] at least. It is asked about a block
// whose predecessors are found or lost.
func (p *Pool) Lost(key uint64) bool {
	return !p.ghosts.empty() && (p.ghosts.has(key) || p.index.find(key) != 0)
}

// Referenced reports whether a sequence holds block id.
func (p *Pool) Referenced(id int32) bool { return p.blocks[id].refs > 0 }

// Reference adds a reference to a cached block, taking it off the free list if nobody held it.
func (p *Pool) Reference(id int32) {
	b := &p.blocks[id]
	if b.refs == 0 {
		p.unlink(b)
		p.free--
		p.epoch++
	} else {
		p.shared++
	}
	b.refs++
}

// Register notes that block id is full. Its content can be found again only once it is indexed, but
// it keeps its place in the order of eviction.
func (p *Pool) Register(id int32) { p.blocks[id].keyed = true }

// Index makes the registered block id findable by the key of its content.
func (p *Pool) Index(id int32, key uint64) {
	p.blocks[id].indexed = true
	if p.index.insert(id, key) && p.tell != nil {
		p.tell(key, true)
	}
	p.epoch++
}

// Tell makes the pool tell, from now on, which keys can be found that could not before, and which cannot any more.
func (p *Pool) Tell(events func(key uint64, held bool)) { p.tell = events }

// Release drops one reference to each block of a sequence, from its last block to its first, so that the
// end of a sequence is evicted before its start.
func (p *Pool) Release(ids []int32) {
	p.unkeyed = p.unkeyed[:0]
	tail := p.blocks[0].prev
	for i := len(ids) - 1; i >= 0; i-- {
		id := ids[i]
		b := &p.blocks[id]
		b.refs--
		if b.refs > 0 {
			p.shared--
			continue
		}
		p.free++
		if b.indexed {
			p.epoch++
		}
		if !b.keyed && !p.appendUnkeyed {
			p.unkeyed = append(p.unkeyed, id)
			continue
		}
		p.blocks[tail].next = id
		b.prev = tail
		tail = id
	}
	p.blocks[tail].next = 0
	p.blocks[0].prev = tail
	for i := len(p.unkeyed) - 1; i >= 0; i-- {
		id, next := p.unkeyed[i], p.blocks[0].next
		p.blocks[id].prev, p.blocks[id].next = 0, next
		p.blocks[next].prev = id
		p.blocks[0].next = id
	}
}

// FreeList returns the ids of the free blocks in order of eviction, for tests and checks.
func (p *Pool) FreeList() []int32 {
	var ids []int32
	for id := p.blocks[0].next; id != 0; id = p.blocks[id].next {
		ids = append(ids, id)
	}
	return ids
}

func (p *Pool) unlink(b *block) {
	p.blocks[b.prev].next = b.next
	p.blocks[b.next].prev = b.prev
}
