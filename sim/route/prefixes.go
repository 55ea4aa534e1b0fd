package route

import (
	"clifftop/sim/clock"
	"clifftop/sim/kv"
	"clifftop/workload"
)

// prefixes is an estimate of the content of the endpoints' prefix caches: the blocks of the prompts that the router has
// sent to each. The caches evict by their own rules, and serve other routers too.
//
// A block is identified by the key of the token chain up to its end, so that the longest known prefix of a prompt ends
// where the first key is missing. Blocks that no other request can have are counted, and not looked up.
type prefixes struct {
	tokens int32 // in a block
	// bound is the number of blocks that are remembered of an endpoint; the least recently used ones are forgotten
	// first. 0 is no limit, and blocks are not counted.
	bound int64
	// counts keeps the order and the number of an endpoint's blocks even without a bound.
	counts bool
	// roots forgets the first block of a prompt before those behind it, as hash tables do. Trees forget leaves first.
	roots bool
	ttl   clock.Duration // how long a block is remembered after its last use; 0 is no limit

	holders kv.PrefixIndex
	caches  []kv.Recency // by replica

	// The request that was matched last.
	path    []uint64 // keys of its blocks, but for
	unique  int32    // those behind them that no other request can have
	matched []int32  // by replica: known leading blocks
}

// blocks is the number of whole blocks of the prompt that was matched last.
func (x *prefixes) blocks() int32 { return int32(len(x.path)) + x.unique }

// of is the number of leading blocks of that prompt that a replica is assumed to hold.
func (x *prefixes) of(replica int) int32 {
	if replica >= len(x.matched) {
		return 0
	}
	return x.matched[replica]
}

// match finds how much of a prompt each replica is assumed to hold. It looks up at most limit blocks; 0 is no limit.
func (x *prefixes) match(now clock.Time, r *workload.Request, limit int32) {
	x.expire(now)
	x.read(r, limit)
	x.matched = x.holders.Match(x.path, x.matched)
}

// read computes the keys of a prompt.
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
	for len(x.caches) <= replica {
		x.caches = append(x.caches, kv.Recency{})
	}
	c := &x.caches[replica]
	remembers := x.bound > 0 || x.counts || x.ttl > 0
	if remembers && x.unique > 0 && !x.roots {
		c.Push(int64(x.unique), now)
	}
	for i := range x.path {
		if !x.roots {
			i = len(x.path) - 1 - i
		}
		x.holders.Add(x.path[i], replica)
		if remembers {
			c.Touch(x.path[i], now)
		}
	}
	if remembers && x.unique > 0 && x.roots {
		c.Push(int64(x.unique), now)
	}
	if x.bound > 0 {
		x.trim(replica, x.bound)
	}
}

// trim forgets blocks of a replica down to a number.
func (x *prefixes) trim(replica int, blocks int64) {
	for c := &x.caches[replica]; c.Blocks > blocks; {
		x.pop(replica, c.Blocks-blocks)
	}
}

// expire forgets blocks that were not used for longer than ttl.
func (x *prefixes) expire(now clock.Time) {
	if x.ttl == 0 {
		return
	}
	for i := range x.caches {
		for c := &x.caches[i]; c.Blocks > 0 && c.Oldest().Add(x.ttl) <= now; {
			x.pop(i, c.Blocks)
		}
	}
}

// pop forgets the oldest block of a replica, or up to the given number of blocks of a run.
func (x *prefixes) pop(replica int, most int64) {
	if key, ok := x.caches[replica].Pop(most); ok {
		x.holders.RemoveKey(key, replica)
	}
}

// size is the number of blocks that a replica is assumed to hold.
func (x *prefixes) size(replica int) int64 {
	if replica >= len(x.caches) {
		return 0
	}
	return x.caches[replica].Blocks
}

func (x *prefixes) removeReplica(replica int) {
	if replica < len(x.caches) {
		x.caches[replica] = kv.Recency{}
		x.holders.Clear(replica)
	}
}

// total is the number of blocks that all replicas are assumed to hold.
func (x *prefixes) total() int64 {
	var n int64
	for i := range x.caches {
		n += x.caches[i].Blocks
	}
	return n
}

// loseOldest forgets the oldest block of all replicas, or up to the given number of blocks of a run.
func (x *prefixes) loseOldest(most int64) {
	oldest := -1
	for i := range x.caches {
		if c := &x.caches[i]; c.Blocks > 0 && (oldest < 0 || c.Oldest() < x.caches[oldest].Oldest()) {
			oldest = i
		}
	}
	if oldest >= 0 {
		x.pop(oldest, most)
	}
}
