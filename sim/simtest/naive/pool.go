package naive

import "slices"

// pool is the KV pool with its prefix cache. Blocks are numbered from 1.
//
// The free list is, from front to back: blocks that were put at the front, the one put there last
// foremost; blocks that were never used, in ascending order; blocks that were put at the back.
type pool struct {
	usable        int // number of blocks
	appendUnkeyed bool

	front  []int // from back to front
	fresh  int   // the first block never used
	back   []int // from front to back
	blocks []block
	cache  map[uint64][]int // blocks by key, in the order of entering

	evicted map[uint64]bool  // keys of blocks that were taken with them
	lost    func(key uint64) // called for each of them, if not nil

	used   int // blocks with references
	shared int // references beyond the first, over all blocks
}

type block struct {
	refs  int
	keyed bool
	key   uint64
}

func newPool(usable int, appendUnkeyed bool) *pool {
	return &pool{usable: usable, appendUnkeyed: appendUnkeyed, fresh: 1, blocks: make([]block, 1),
		cache: make(map[uint64][]int), evicted: make(map[uint64]bool)}
}

// free is the number of blocks without references.
func (p *pool) free() int { return p.usable - p.used }

// pop takes the block at the front of the free list. If it has a key, it is evicted from the cache.
func (p *pool) pop() (b int) {
	switch {
	case len(p.front) > 0:
		b = p.front[len(p.front)-1]
		p.front = p.front[:len(p.front)-1]
	case p.fresh <= p.usable:
		b = p.fresh
		p.fresh++
		p.blocks = append(p.blocks, block{})
	default:
		b = p.back[0]
		p.back = p.back[1:]
	}
	if bl := &p.blocks[b]; bl.keyed {
		p.evicted[bl.key] = true
		if p.lost != nil {
			p.lost(bl.key)
		}
		p.cache[bl.key] = drop(p.cache[bl.key], b)
		if len(p.cache[bl.key]) == 0 {
			delete(p.cache, bl.key)
		}
	}
	p.blocks[b] = block{refs: 1}
	p.used++
	return b
}

// find returns the first block that was entered under the key.
func (p *pool) find(key uint64) (b int, ok bool) {
	if list := p.cache[key]; len(list) > 0 {
		return list[0], true
	}
	return 0, false
}

// enter puts a block into the cache.
func (p *pool) enter(b int, key uint64) {
	p.blocks[b].keyed, p.blocks[b].key = true, key
	p.cache[key] = append(p.cache[key], b)
}

// take adds a reference to each of the blocks; those without leave the free list.
func (p *pool) take(list []int) {
	for _, b := range list {
		if p.blocks[b].refs == 0 {
			p.front, p.back = drop(p.front, b), drop(p.back, b)
			p.used++
		} else {
			p.shared++
		}
		p.blocks[b].refs++
	}
}

// release drops a reference to each block of a sequence, from the last to the first. Those without
// further references go to the free list.
func (p *pool) release(list []int) {
	var unkeyed []int
	for _, b := range slices.Backward(list) {
		p.blocks[b].refs--
		switch {
		case p.blocks[b].refs > 0:
			p.shared--
			continue
		case p.blocks[b].keyed || p.appendUnkeyed:
			p.back = append(p.back, b)
		default:
			unkeyed = append(unkeyed, b)
		}
		p.used--
	}
	for _, b := range slices.Backward(unkeyed) {
		p.front = append(p.front, b)
	}
}

// order is the free list from front to back, as far as its blocks were ever used.
func (p *pool) order() []int {
	list := slices.Clone(p.front)
	slices.Reverse(list)
	for b := p.fresh; b <= p.usable; b++ {
		list = append(list, b)
	}
	return append(list, p.back...)
}

// drop is the list without b.
func drop(list []int, b int) []int {
	return slices.DeleteFunc(list, func(x int) bool { return x == b })
}
