package route

import (
	"math/bits"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// prefixes is what a router takes the prefix caches of its endpoints to hold: the blocks of the prompts that it has sent to
// each. It is a guess. The caches evict by rules of their own, and serve other routers too.
//
// A block is known by the key of the chain of tokens up to its end, so that the longest known prefix of a prompt ends where the first
// key is missing. Blocks that no other request can have are counted, and not looked for.
type prefixes struct {
	tokens int32 // in a block
	// bound is the most blocks remembered of an endpoint, the least recently used going first; 0 forgets nothing, and does
	// not count either.
	bound int64
	// counts keeps the order and the number of an endpoint's blocks though there is no bound.
	counts bool
	// roots lets the first block of a prompt go before those behind it, as hash tables do. Trees lose their leaves first.
	roots bool
	ttl   clock.Duration // how long a block is remembered after its last use; 0 is for ever

	places map[uint64]int32 // of keys
	keys   []uint64         // by place
	free   []int32          // places that hold nothing
	words  int              // of a set of replicas
	sets   []uint64         // by place: who has it
	caches []recency        // by replica

	// The request that was matched last.
	path    []uint64 // keys of its blocks, but for
	unique  int32    // those behind them that no other request can have
	live    []uint64 // scratch
	matched []int32  // by replica: known leading blocks
	longest int32    // of all replicas
}

// blocks is the number of whole blocks of the prompt that was matched last.
func (x *prefixes) blocks() int32 { return int32(len(x.path)) + x.unique }

// of is the number of leading blocks of that prompt that a replica is taken to hold.
func (x *prefixes) of(replica int) int32 {
	if replica >= len(x.matched) {
		return 0
	}
	return x.matched[replica]
}

// match finds who is taken to hold how much of a prompt. At most limit blocks are looked at; 0 is no limit.
func (x *prefixes) match(now clock.Time, r *workload.Request, limit int32) {
	x.expire(now)
	x.read(r, limit)
	clear(x.matched)
	x.longest = 0
	for i, key := range x.path {
		place, ok := x.places[key]
		if !ok {
			break
		}
		set := x.sets[int(place)*x.words:][:x.words]
		if i == 0 {
			x.live = append(x.live[:0], set...)
		}
		if !x.narrow(set, int32(i)) {
			return
		}
		x.longest = int32(i) + 1
	}
	if x.longest > 0 {
		x.settle(x.live, x.longest)
	}
}

// narrow drops from the replicas that hold i blocks those that do not hold the next, and reports whether some are left.
func (x *prefixes) narrow(set []uint64, i int32) bool {
	some := uint64(0)
	for w, live := range x.live {
		for gone := live &^ set[w]; gone != 0; gone &= gone - 1 {
			x.matched[w*64+bits.TrailingZeros64(gone)] = i
		}
		x.live[w] = live & set[w]
		some |= x.live[w]
	}
	return some != 0
}

// settle gives all replicas of a set their length.
func (x *prefixes) settle(set []uint64, length int32) {
	for w, live := range set {
		for ; live != 0; live &= live - 1 {
			x.matched[w*64+bits.TrailingZeros64(live)] = length
		}
	}
}

// read takes the keys of a prompt.
func (x *prefixes) read(r *workload.Request, limit int32) {
	x.path = x.path[:0]
	blocks := r.InputTokens / x.tokens
	if limit > 0 {
		blocks = min(blocks, limit)
	}
	if r.SharesPrompt() {
		walk := workload.NewBlockKeys(r, x.tokens)
		for range blocks {
			key, private := walk.Next()
			if private {
				break
			}
			x.path = append(x.path, key)
		}
	}
	x.unique = blocks - int32(len(x.path))
}

// add notes that the prompt that was matched last is sent to a replica.
func (x *prefixes) add(now clock.Time, replica int) {
	x.admit(replica)
	c := &x.caches[replica]
	remembers := x.bound > 0 || x.counts || x.ttl > 0
	if remembers && x.unique > 0 && !x.roots {
		c.push(nowhere, int64(x.unique), now)
	}
	for i := range x.path {
		if !x.roots {
			i = len(x.path) - 1 - i
		}
		place := x.place(x.path[i])
		x.sets[int(place)*x.words+replica/64] |= 1 << (replica % 64)
		if remembers {
			c.touch(place, now)
		}
	}
	if remembers && x.unique > 0 && x.roots {
		c.push(nowhere, int64(x.unique), now)
	}
	if x.bound > 0 {
		x.trim(replica, x.bound)
	}
}

// place finds the place of a key, or makes one.
func (x *prefixes) place(key uint64) int32 {
	if place, ok := x.places[key]; ok {
		return place
	}
	place := int32(len(x.keys))
	if n := len(x.free); n > 0 {
		place, x.free = x.free[n-1], x.free[:n-1]
		x.keys[place] = key
	} else {
		x.keys = append(x.keys, key)
		x.sets = append(x.sets, make([]uint64, x.words)...)
	}
	x.places[key] = place
	return place
}

// admit makes room for a replica.
func (x *prefixes) admit(replica int) {
	if replica < len(x.caches) {
		return
	}
	for len(x.caches) <= replica {
		x.caches = append(x.caches, recency{})
	}
	if x.places == nil {
		x.places = make(map[uint64]int32)
	}
	words := replica/64 + 1
	if words <= x.words {
		return
	}
	sets := make([]uint64, words*len(x.keys))
	for place := range x.keys {
		copy(sets[place*words:], x.sets[place*x.words:][:x.words])
	}
	x.words, x.sets = words, sets
	x.matched = append(x.matched, make([]int32, words*64-len(x.matched))...)
}

// trim forgets what a replica holds beyond so many blocks.
func (x *prefixes) trim(replica int, blocks int64) {
	for c := &x.caches[replica]; c.blocks > blocks; {
		x.lose(replica, c.pop(c.blocks-blocks))
	}
}

// expire forgets what has not been used for too long.
func (x *prefixes) expire(now clock.Time) {
	if x.ttl == 0 {
		return
	}
	for i := range x.caches {
		for c := &x.caches[i]; c.blocks > 0 && c.oldest().at.Add(x.ttl) <= now; {
			x.lose(i, c.pop(c.blocks))
		}
	}
}

// lose takes the block of a place from a replica.
func (x *prefixes) lose(replica int, place int32) {
	if place == nowhere {
		return
	}
	set := x.sets[int(place)*x.words:][:x.words]
	set[replica/64] &^= 1 << (replica % 64)
	for _, w := range set {
		if w != 0 {
			return
		}
	}
	delete(x.places, x.keys[place])
	x.free = append(x.free, place)
}

// size is the number of blocks that a replica is taken to hold.
func (x *prefixes) size(replica int) int64 {
	if replica >= len(x.caches) {
		return 0
	}
	return x.caches[replica].blocks
}

// gone forgets a replica.
func (x *prefixes) gone(replica int) {
	if replica >= len(x.caches) {
		return
	}
	x.caches[replica] = recency{}
	for place := range x.keys {
		if w := &x.sets[place*x.words+replica/64]; *w>>(replica%64)&1 != 0 {
			x.lose(replica, int32(place))
		}
	}
}

// total is the number of blocks that all replicas are taken to hold.
func (x *prefixes) total() int64 {
	var n int64
	for i := range x.caches {
		n += x.caches[i].blocks
	}
	return n
}

// loseOldest forgets the oldest block of all, or as much as is wanted of a run of them.
func (x *prefixes) loseOldest(most int64) {
	oldest := -1
	for i := range x.caches {
		if c := &x.caches[i]; c.blocks > 0 && (oldest < 0 || c.oldest().at < x.caches[oldest].oldest().at) {
			oldest = i
		}
	}
	if oldest >= 0 {
		x.lose(oldest, x.caches[oldest].pop(most))
	}
}
