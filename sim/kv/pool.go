// Package kv is the paged KV cache of one engine: a pool of equal blocks, and the prefix cache that finds blocks by
// their content.
//
// Without prefix caching blocks have no identity and the pool only counts. With it every block is either referenced by
// one or more sequences, or in the free list. A free block may still hold a cached prefix, until it is allocated again.
// The free list is therefore also the order of eviction: least recently released first.
package kv

// blockPool is a pool of KV blocks.
//
// A block is identified by its content: blocks without content that can be found are interchangeable and nameless. From
// [blockPool.Index] on, until it is allocated again, the name of a block is the place of its key in the index, where
// its state is too. Operations on neighbouring blocks of a text therefore touch one place. vLLM's null block, which is
// never allocated, is not in the pool.
type blockPool struct {
	usable, free  int
	appendUnkeyed bool
	index         index // its numbers are the states; empty when the pool only counts
	copies        duplicateBlocks
	list          freeList
	history       evictionHistory
	shared        int64
	epoch         uint64
	taken         []int32 // scratch of Pop
	logs          bool
	evicted       []uint64
	tell          func(Change)
}

// nameless is the name of blocks that cannot be found. They have at most one reference.
const nameless = 1

// newCountingPool returns a pool of usable blocks without identity.
func newCountingPool(usable int) *blockPool {
	return &blockPool{usable: usable, free: usable}
}

// newCachingPool returns a pool of usable blocks with a prefix cache. appendUnkeyed puts released blocks
// that hold no cached content at the back of the free list instead of the front.
func newCachingPool(usable int, appendUnkeyed bool) *blockPool {
	p := &blockPool{usable: usable, free: usable, appendUnkeyed: appendUnkeyed}
	p.index.init()
	p.list.init(usable)
	for range usable {
		p.list.pushBack(nameless)
	}
	p.history.init(RememberedEvictions)
	return p
}

// Usable is the number of blocks that sequences can hold.
func (p *blockPool) Usable() int { return p.usable }

// Free is the number of blocks without references, cached ones included.
func (p *blockPool) Free() int { return p.free }

// Shared is the number of references to blocks beyond the first of each: Σ max(0, references-1).
func (p *blockPool) Shared() int64 { return p.shared }

// Epoch changes whenever the result of a look-up may change.
func (p *blockPool) Epoch() uint64 { return p.epoch }

// TakeCount takes n blocks from a pool that only counts.
func (p *blockPool) TakeCount(n int) { p.free -= n }

// PutCount returns n blocks to a pool that only counts.
func (p *blockPool) PutCount(n int) { p.free += n }

// state is the state of a block with a name: its references, or -1 less its place in the free list.
func (p *blockPool) state(name int32) *int32 {
	if name < 0 {
		return &p.copies.all[-name].state
	}
	return &p.index.groups[name>>groupBits].values[name%groupSize]
}

// Pop takes n blocks, which must be free, from the front of the free list and appends them to names. Their content is
// evicted.
func (p *blockPool) Pop(names []int32, n int) []int32 {
	p.taken = p.list.pop(p.taken[:0], n)
	for taken := p.taken; len(taken) > 0; {
		taken = taken[p.evict(taken):]
	}
	p.free -= n
	for range n {
		names = append(names, nameless)
	}
	return names
}

// evict evicts the content of the leading blocks that share a group, and returns their number: neighbours of a text are
// evicted one after the other.
func (p *blockPool) evict(names []int32) (n int) {
	first := names[0]
	if first == nameless {
		return 1
	}
	if first < 0 || p.logs || p.tell != nil {
		p.evictOne(first)
		return 1
	}
	lost := uint8(0)
	for ; n < len(names) && names[n]>>groupBits == first>>groupBits; n++ {
		lost |= 1 << (names[n] % groupSize)
	}
	g := &p.index.groups[first>>groupBits]
	p.history.add(g.keys, lost)
	g.held &^= lost
	p.index.leave(first >> groupBits)
	p.epoch++
	return n
}

func (p *blockPool) evictOne(name int32) {
	place := name
	if name < 0 {
		place = p.copies.all[-name].of
	}
	n, bit := place>>groupBits, uint8(1)<<(place%groupSize)
	g := &p.index.groups[n]
	key := g.keys<<groupBits | uint64(place%groupSize)
	p.history.add(g.keys, bit)
	if p.logs {
		p.evicted = append(p.evicted, key)
	}
	if name > 0 {
		g.held &^= bit
	} else if !p.copies.remove(name) {
		g.copied &^= bit
	}
	if (g.held|g.copied)&bit == 0 && p.tell != nil {
		p.tell(Change{Key: key})
	}
	p.index.leave(n)
	p.epoch++
}

// LogEvictions makes the pool record the keys that it evicts.
func (p *blockPool) LogEvictions() { p.logs = true }

// Evicted returns the keys that were evicted since the last call, in order. The list is valid until the next Pop.
func (p *blockPool) Evicted() []uint64 {
	list := p.evicted
	p.evicted = p.evicted[:0]
	return list
}

// Find returns the block that was registered first of those with the content of key, or 0.
func (p *blockPool) Find(key uint64) int32 {
	return p.first(p.index.group(key>>groupBits), key%groupSize)
}

// first returns the block that was registered first for a key of group n, or 0.
func (p *blockPool) first(n int32, at uint64) int32 {
	g := &p.index.groups[n]
	place := n<<groupBits | int32(at)
	switch {
	case g.held>>at&1 != 0:
		return place
	case g.copied>>at&1 != 0:
		return p.copies.chains[place].oldest
	}
	return 0
}

// Match appends to names the blocks that [blockPool.Find] finds for the first n keys of a text, up to the first miss.
func (p *blockPool) Match(keys *Keys, n int32, names []int32) []int32 {
	walk := keys.walk(0, n)
	for key, blocks := walk.next(groupSize); blocks > 0; key, blocks = walk.next(groupSize) {
		group := p.index.group(key >> groupBits)
		for at := key % groupSize; blocks > 0; at, blocks = at+1, blocks-1 {
			name := p.first(group, at)
			if name == 0 {
				return names
			}
			names = append(names, name)
		}
	}
	return names
}

// Lost is the number of blocks of a text, in a range of blocks, that would be found too but for evictions, if those
// before were found: of at least the last [RememberedEvictions]. Their content is not in the cache, or cannot be
// reached because a block before it is missing.
func (p *blockPool) Lost(keys *Keys, from, to int32) int32 {
	if p.history.none() {
		return 0
	}
	walk := keys.walk(from, to)
	for key, blocks := walk.next(runSize); blocks > 0; key, blocks = walk.next(runSize) {
		known := p.history.run(key >> runBits)
		for end := key + uint64(blocks); key < end; key++ {
			if known>>(key%runSize)&1 == 0 && p.Find(key) == 0 {
				return walk.at - int32(end-key) - from
			}
		}
	}
	return max(0, to-from)
}

func (p *blockPool) Referenced(names []int32) int {
	n := 0
	for _, name := range names {
		if *p.state(name) > 0 {
			n++
		}
	}
	return n
}

// Reference adds references to cached blocks, and removes those without references from the free list.
func (p *blockPool) Reference(names []int32) {
	for _, name := range names {
		state := p.state(name)
		if *state > 0 {
			p.shared++
			*state++
			continue
		}
		p.list.take(-1 - *state)
		p.free--
		p.epoch++
		*state = 1
	}
}

// Index registers a range of blocks of a sequence under the keys of their content, and sets their names. They are full
// and have no names yet.
func (p *blockPool) Index(names []int32, keys *Keys, from, to int32) {
	if from > 0 && names[from-1] > nameless {
		p.index.last = names[from-1] >> groupBits // where the next key mostly is
	}
	walk := keys.walk(from, to)
	for key, blocks := walk.next(groupSize); blocks > 0; key, blocks = walk.next(groupSize) {
		n := p.index.obtain(key >> groupBits)
		g := &p.index.groups[n]
		place := n<<groupBits | int32(key%groupSize)
		for i := walk.at - blocks; i < walk.at; i, place = i+1, place+1 {
			bit := uint8(1) << (place % groupSize)
			if (g.held|g.copied)&bit != 0 {
				g.copied |= bit
				names[i] = p.copies.add(place)
				continue
			}
			g.held |= bit
			g.values[place%groupSize] = 1
			names[i] = place
			if p.tell != nil {
				c := Change{Key: keys.At(i), Place: i, Stored: true}
				if i > 0 {
					c.Parent = keys.At(i - 1)
				}
				p.tell(c)
			}
		}
	}
	p.epoch++
}

// Tell registers a function that is called, from now on, for each key that can be found, or cannot be found any more.
func (p *blockPool) Tell(events func(Change)) { p.tell = events }

// Release drops one reference to each block of a sequence, from its last block to its first, so that the
// end of a sequence is evicted before its start. The first full ones hold a full block's content: whether it can be
// found or not, they keep their place in the order of eviction.
func (p *blockPool) Release(names []int32, full int32) {
	if !p.list.room(len(names)) {
		p.list.compact(func(name, place int32) {
			if name != nameless {
				*p.state(name) = -1 - place
			}
		})
	}
	first := 0
	for i := len(names) - 1; i >= 0; i-- {
		name := names[i]
		if name == nameless {
			p.free++
			if i >= int(full) && !p.appendUnkeyed {
				first++
			} else {
				p.list.pushBack(nameless)
			}
			continue
		}
		state := p.state(name)
		if *state > 1 {
			*state--
			p.shared--
			continue
		}
		p.free++
		p.epoch++
		*state = -1 - p.list.pushBack(name)
	}
	for range first {
		p.list.pushFront(nameless)
	}
}

// register registers a full block, which has no name yet, under a key, and returns its name. It does not report the
// change.
func (p *blockPool) register(key uint64) (name int32, fresh bool) {
	n := p.index.obtain(key >> groupBits)
	g := &p.index.groups[n]
	place, bit := n<<groupBits|int32(key%groupSize), uint8(1)<<(key%groupSize)
	p.epoch++
	if (g.held|g.copied)&bit != 0 {
		g.copied |= bit
		return p.copies.add(place), false
	}
	g.held |= bit
	g.values[place%groupSize] = 1
	return place, true
}

// drop drops one reference to each block of a list, from the last to the first, and returns the number of blocks. 0 is
// no block. Nameless blocks go to the front of the free list, or are only counted if there is no cache.
func (p *blockPool) drop(names []int32, caching bool) (n int) {
	if !caching {
		for _, name := range names {
			if name != 0 {
				n++
			}
		}
		p.PutCount(n)
		return n
	}
	if !p.list.room(len(names)) {
		p.list.compact(func(name, place int32) {
			if name != nameless {
				*p.state(name) = -1 - place
			}
		})
	}
	first := 0
	for i := len(names) - 1; i >= 0; i-- {
		name := names[i]
		switch {
		case name == 0:
			continue
		case name == nameless && p.appendUnkeyed:
			p.free++
			p.list.pushBack(nameless)
		case name == nameless:
			p.free++
			first++
		case *p.state(name) > 1:
			*p.state(name)--
			p.shared--
		default:
			p.free++
			p.epoch++
			*p.state(name) = -1 - p.list.pushBack(name)
		}
		n++
	}
	for range first {
		p.list.pushFront(nameless)
	}
	return n
}
