package engine

import (
	"clifftop/sim/kv"
)

// space is the KV cache of an engine: a pool of blocks, the prefix cache over it, and the blocks that sequences hold,
// have booked and are charged for. Blocks that the members of the cohort take while they decode are counted in closed
// form: space takes them from the pool later, in order (see Settle).
type space struct {
	prefixCache
	members    *cohort        // the decoding sequences
	async      bool           // the last token of a sequence is not known when the next iteration is composed
	contiguous *kv.Contiguous // ranges of a contiguous pool; pool counts their blocks
	windowed   int            // blocks charged for windowed layers
	// mostCharged is the number of blocks of a sequence from which on its charge is constant; 0 if there is no charge.
	mostCharged int
	booked      int  // blocks booked and not taken
	writesBack  bool // evicted blocks are written back to a tier
	reserves    bool // sequences have reserved blocks
	hosted      int  // blocks in host memory
	moved       int  // blocks copied to and from there since the last launch
}

// prefixCache finds KV blocks by the tokens in them: by hashes of blocks, or in a radix tree. Without prefix caching it
// finds none.
type prefixCache struct {
	cfg      *Config
	seqs     *slab
	pool     *kv.Pool
	radix    *kv.Radix   // counts blocks instead of the pool; nil without a radix cache
	groups   *kv.Grouped // has the blocks of KV cache groups; nil without them
	caching  bool        // blocks are found by hashes of their tokens
	unnamed  bool        // they will be, when nameBlocks is called; until then blocks are counted
	forgets  bool        // names are needed only for requests that were preempted
	again    int         // sequences in the engine that were preempted
	offloads bool        // tiers keep evicted blocks, so that private blocks of a request are hashed too
	look     lookup      // result of the last lookup by hashes
	matched  radixMatch  // result of the last match in the radix tree
}

// init makes the space of an engine, with all blocks free.
func (k *space) init(r *Engine) {
	cfg := &r.cfg
	k.cfg, k.seqs, k.members, k.async = cfg, &r.seqs, &r.cohort, r.depth > 1
	k.mostCharged = cfg.mostCharged()
	k.caching = cfg.PrefixCaching && !cfg.Radix && cfg.Hybrid == nil
	k.offloads = cfg.Connector != nil && len(cfg.Connector.Tiers) > 0
	if k.caching && r.plain.on {
		k.countsFirst()
	} else if k.caching || cfg.Hybrid != nil && cfg.PrefixCaching {
		k.pool = kv.NewCache(cfg.UsableBlocks(), cfg.AppendUnkeyed)
	} else {
		k.pool = kv.NewCountingPool(cfg.UsableBlocks())
	}
	if cfg.Radix {
		k.radix = kv.NewRadix(cfg.UsableBlocks(), cfg.BlockSize)
		k.radix.Order = cfg.RadixEviction
	}
	if h := cfg.Hybrid; h != nil {
		k.groups = kv.NewGrouped(k.pool, kv.GroupedConfig{Groups: h.Groups, Retention: h.Retention,
			Most: int(cfg.MaxModelLen), InFlight: cfg.InFlightTokens(), Caching: cfg.PrefixCaching,
			DropsBlock: cfg.Speculative.DropsBlock()})
	}
	if cfg.Contiguous {
		k.contiguous = kv.NewContiguous(cfg.UsableBlocks())
	}
}

// Usable returns the number of KV blocks in the pool.
func (k *space) Usable() int { return k.pool.Usable() }

// free returns the number of KV blocks that are neither referenced, nor owed to the cohort, nor charged for windowed
// layers.
func (k *space) free() int { return k.poolFree() - k.members.debt - k.windowed }

// Used returns the number of KV blocks that are referenced, owed or charged.
func (k *space) Used() int { return k.pool.Usable() - k.free() }

// poolFree returns the number of blocks that are not referenced.
func (k *space) poolFree() int {
	if k.radix != nil {
		return k.radix.Free()
	}
	return k.pool.Free()
}

// Shared returns the sum over all blocks referenced more than once of their references less one.
func (k *space) Shared() int64 {
	if k.radix != nil {
		return k.radix.Shared()
	}
	if k.groups != nil {
		return k.groups.Shared() / int64(k.cfg.BlockSize)
	}
	return k.pool.Shared()
}

// takeCount takes n blocks that are only counted.
func (k *space) takeCount(n int) {
	if k.radix != nil {
		k.radix.Owe(n) // what is evicted is known when the iteration is composed
	} else {
		k.pool.TakeCount(n)
	}
}

// putCount returns n blocks that are only counted.
func (k *space) putCount(n int) {
	if k.radix != nil {
		k.radix.Put(n)
	} else {
		k.pool.PutCount(n)
	}
}

// takeForCohort takes n blocks for members of the cohort: at once if blocks are only counted, otherwise when Settle is
// called.
func (k *space) takeForCohort(n int) {
	if k.caching {
		k.members.debt += n
	} else {
		k.takeCount(n)
	}
}

// charge returns the number of blocks that a sequence is charged for windowed layers. blocks is the number that it
// holds.
func (k *space) charge(blocks int) int {
	if k.mostCharged == 0 {
		return 0
	}
	return k.cfg.Charge(blocks)
}

// emptyOf returns the number of empty reserved blocks of s, which runs outside the cohort.
func (k *space) emptyOf(s *sequence) int { return max(0, s.reserved-k.cfg.blocksFor(s.computed)) }

// held returns the number of blocks that s holds. The blocks of the cohort must be settled.
func (k *space) held(s *sequence) int {
	if k.groups != nil {
		return s.tables.Held()
	}
	if k.caching {
		return len(s.blocks)
	}
	if s.phase != decoding {
		return s.blockCount
	}
	computed := k.members.computed(s)
	if k.members.singly && s.given == 0 && !s.grown {
		computed-- // the step is counted, but s has no token yet
	}
	return max(s.reserved, k.cfg.blocksFor(computed))
}

// freeBlocks frees the blocks of s.
func (k *space) freeBlocks(s *sequence) {
	k.windowed -= s.windowed
	s.windowed = 0
	if k.groups != nil {
		k.groups.Free(s.tables)
		return
	}
	if k.caching {
		k.pool.Release(s.blocks, s.registered)
		s.blocks = s.blocks[:0]
		s.registered = 0
		return
	}
	if k.radix != nil {
		k.unlockPrefix(s)
		return
	}
	k.pool.PutCount(s.blockCount)
	if k.contiguous != nil {
		k.contiguous.Put(s.hole, s.blockCount)
	}
	s.blockCount = 0
}

// release frees kept blocks.
func (k *space) release(h *heldBlocks) {
	k.windowed -= h.windowed
	if k.caching {
		k.pool.Release(h.blocks, h.registered)
	} else {
		k.pool.PutCount(h.blockCount)
	}
}

// Unsettled reports whether blocks are owed to decoding sequences: see Settle.
func (k *space) Unsettled() bool { return k.members.settled < k.members.steps }
