package engine

import (
	"clifftop/sim/kv"
	"clifftop/sim/queue"
	"clifftop/workload"
)

// Space is the KV of an engine: the cache, and the blocks that sequences have booked and are charged for. Blocks that
// the members of the cohort take while they decode are counted in closed form. Where blocks have names, the members
// take them later, in order (see Settle).
type Space struct {
	cfg     *Config
	seqs    *slab
	members *cohort // the decoding sequences
	async   bool    // the last token of a sequence is not known when the next iteration is composed
	cache   kv.Cache
	kind    kv.Kind    // of the cache
	hashed  *kv.Hashed // the cache, if it is one of hashed blocks; else nil
	unnamed bool       // it will be, when nameBlocks is called; until then blocks are counted
	forgets bool       // names are needed only for requests that were preempted
	again   int        // sequences in the engine that were preempted

	windowed int // blocks charged for windowed layers
	// mostCharged is the number of blocks of a sequence from which on its charge is constant; 0 if there is no charge.
	mostCharged int
	booked      int  // blocks booked and not taken
	writesBack  bool // evicted blocks are written back to a tier
	reserves    bool // sequences have reserved blocks
	hosted      int  // blocks in host memory
	moved       int  // blocks copied to and from there since the last launch
}

// init makes the space of an engine, with all blocks free. If unnamed is true, blocks need no names until requests
// share tokens.
func (k *Space) init(cfg *Config, seqs *slab, members *cohort, async, unnamed bool) {
	k.cfg, k.seqs, k.members, k.async = cfg, seqs, members, async
	k.mostCharged = cfg.mostCharged()
	k.unnamed = unnamed && cfg.PrefixCaching
	k.forgets = k.unnamed
	switch h := cfg.Hybrid; {
	case cfg.Radix:
		k.cache = kv.NewTree(cfg.UsableBlocks(), cfg.BlockSize, cfg.RadixEviction)
	case h != nil:
		k.cache = kv.NewTables(cfg.UsableBlocks(), cfg.BlockSize, cfg.AppendUnkeyed, kv.GroupedConfig{Groups: h.Groups,
			Retention: h.Retention, Most: int(cfg.MaxModelLen), InFlight: cfg.InFlightTokens(),
			Caching: cfg.PrefixCaching, DropsBlock: cfg.Speculative.DropsBlock()})
	case cfg.Contiguous:
		k.cache = kv.NewRanges(cfg.UsableBlocks())
	case cfg.PrefixCaching && !k.unnamed:
		k.useHashed()
	default:
		k.useCounted()
	}
	k.kind = k.cache.Kind()
}

// useCounted makes a cache of counted blocks the cache. All blocks are free.
func (k *Space) useCounted() *kv.Counted {
	c := kv.NewCounted(k.cfg.UsableBlocks())
	k.cache, k.kind, k.hashed = c, c.Kind(), nil
	return c
}

// useHashed makes a cache of hashed blocks the cache. All blocks are free.
func (k *Space) useHashed() {
	c := k.cfg.Connector
	k.hashed = kv.NewHashed(kv.HashedConfig{Usable: k.cfg.UsableBlocks(), BlockSize: k.cfg.BlockSize,
		AppendUnkeyed: k.cfg.AppendUnkeyed, DropsBlock: k.cfg.Speculative.DropsBlock(),
		IndexOwn: c != nil && len(c.Tiers) > 0, WarmOwn: c != nil})
	k.cache, k.kind = k.hashed, k.hashed.Kind()
}

// Usable returns the number of KV blocks in the pool.
func (k *Space) Usable() int { return k.cfg.UsableBlocks() }

// free returns the number of KV blocks that are neither referenced, nor owed to the cohort, nor charged for windowed
// layers.
func (k *Space) free() int { return k.cache.Free() - k.members.debt - k.windowed }

// Used returns the number of KV blocks that are referenced, owed or charged.
func (k *Space) Used() int { return k.cfg.UsableBlocks() - k.free() }

// Shared returns the sum over all blocks referenced more than once of their references less one.
func (k *Space) Shared() int64 { return k.cache.Shared() }

// Peek returns the number of tokens that an admission would reuse from a radix tree now; 0 without one.
func (k *Space) Peek(q *workload.Request) int32 { return k.kind.Tree.Peek(q) }

// HashedBlocks returns the block size in tokens if blocks are found by hashes, else 0.
func (k *Space) HashedBlocks() int32 {
	if k.unnamed {
		return k.cfg.BlockSize
	}
	return k.cache.Hashed()
}

// charge returns the number of blocks that a sequence is charged for windowed layers. blocks is the number that it
// holds.
func (k *Space) charge(blocks int) int {
	if k.mostCharged == 0 {
		return 0
	}
	return k.cfg.Charge(blocks)
}

// emptyOf returns the number of empty reserved blocks of s, which runs outside the cohort.
func (k *Space) emptyOf(s *sequence) int { return max(0, s.reserved-k.cfg.blocksFor(s.computed)) }

// held returns the number of blocks that s holds. The blocks of the cohort must be settled.
func (k *Space) held(s *sequence) int {
	if n, ok := k.cache.Held(s.number); ok {
		return n
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

// text is a waiting request as the cache knows it.
func (k *Space) text(w *queue.Waiting) kv.Text {
	return kv.Text{Seq: w.Seq, Request: &w.Request, Known: k.seqs.known(w)}
}

// findable reports whether the cache may have something of a waiting request.
func (k *Space) findable(w *queue.Waiting) bool {
	return (w.Seq == none || k.seqs.at(w.Seq).phase != loaded) && k.cache.Findable(k.text(w))
}

// find returns what the cache has of a waiting request. At least one of its known tokens remains to be computed.
func (k *Space) find(w *queue.Waiting) (hit kv.Hit) {
	if !k.findable(w) {
		return hit
	}
	k.Settle()
	return k.cache.Find(k.text(w))
}

// takeCached makes s, the request that was looked up last, hold what the cache has of it, and returns the number of
// tokens.
func (k *Space) takeCached(s *sequence) int32 {
	q := &s.rec.Request
	taken := k.cache.Take(kv.Text{Seq: s.number, Request: q, Known: q.InputTokens + s.issued})
	s.lostFrom, s.lostTo = taken.LostFrom, taken.LostTo
	s.blockCount = int(taken.Tokens / k.cfg.BlockSize)
	return taken.Tokens
}

// takeForCohort takes n blocks for members of the cohort: at once if blocks are only counted, otherwise when Settle is
// called.
func (k *Space) takeForCohort(n int) { k.members.debt += k.cache.Owe(n) }

// takeSteps takes blocks for the members in n steps of the cohort, from one on.
func (k *Space) takeSteps(step int64, n, blocks int) {
	c := k.members
	if k.kind.Tree.Covers(blocks, c.size) {
		k.takeForCohort(blocks)
		return
	}
	for j := range n {
		k.kind.Tree.OweStep(c.takes.at(step+int64(j)), c.size)
	}
}

// freeBlocks frees the blocks of s.
func (k *Space) freeBlocks(s *sequence) {
	k.windowed -= s.windowed
	k.cache.Release(s.number, s.blockCount)
	s.windowed, s.blockCount = 0, 0
}

// keptBlocks is blocks that are kept after their sequence has left.
type keptBlocks struct {
	kv.Kept
	windowed int // charged for sliding-window layers
}

// detach takes the blocks from s without freeing them.
func (k *Space) detach(s *sequence) keptBlocks {
	kept := keptBlocks{k.cache.Keep(s.number, s.blockCount), s.windowed}
	s.windowed, s.blockCount = 0, 0
	return kept
}

// release frees kept blocks.
func (k *Space) release(kept *keptBlocks) {
	k.windowed -= kept.windowed
	k.cache.Drop(kept.Kept)
}

// warm adds the content of an earlier request to the prefix cache, if there is one, and returns its number of full
// blocks.
func (k *Space) warm(q *workload.Request) int32 {
	tokens := min(int64(q.InputTokens)+int64(q.OutputTokens)-1, int64(k.cfg.MaxModelLen))
	full := int32(min(tokens/int64(k.cfg.BlockSize), int64(k.cfg.UsableBlocks())))
	k.cache.Warm(q, full)
	return full
}

// remember adds the computed tokens of s, which is complete, to the prefix cache: all but the last token, unless no end
// is predicted, or s was preempted and admitted again while that token was in flight.
func (k *Space) remember(s *sequence) {
	if k.cfg.Speculative.On() && !k.async {
		return // vLLM enters only what is known when an iteration is scheduled
	}
	computed := s.computed
	if s.phase == decoding {
		computed = k.members.computed(s)
	}
	known := s.rec.Request.InputTokens + s.output - 1
	k.cache.Register(s.number, min(computed, known))
	if k.cfg.UnpredictedEnds && s.declared == s.output {
		known++ // the iteration in flight computes the last token, which is no EOS
	}
	k.kind.Tree.Complete(s.number, min(computed, known))
}
