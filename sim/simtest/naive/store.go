package naive

import (
	"clifftop/sim/engine"
	"clifftop/workload"
)

// store is the KV blocks of all sequences, with a prefix cache. It does not count the charge for windowed layers.
type store interface {
	// free is the number of blocks without references; largest how many of them one sequence can take at once; shared
	// the references beyond the first, over all blocks.
	free() int
	largest() int
	shared() int
	// lookup returns how many leading tokens of s, at most most, the cache holds, and how many of their blocks are
	// referenced.
	lookup(s *sequence, most int32) (tokens int32, held int)
	// lost is the range of tokens that the cache would hold too, but for evictions.
	lost(s *sequence, most int32) (from, to int32)
	// path numbers the nodes of a radix tree that hold what lookup finds, from the root on.
	path(s *sequence, most int32) []int32
	// admit makes s hold what lookup finds.
	admit(s *sequence, most int32) (tokens int32)
	// holds is the number of blocks that s holds. take gives it more, as many as it can have.
	holds(s *sequence) int
	take(s *sequence, blocks int)
	// grows reports whether s may take this many more blocks, if there are enough.
	grows(s *sequence, blocks int) bool
	// known is called when the first tokens of s are known and computed, or given to an iteration; done when a prefill
	// chunk up to there has been processed. hit means that the prefill is complete, and the request is not.
	known(s *sequence, tokens int32)
	done(s *sequence, tokens int32, hit bool)
	// release frees all blocks of s. ended means that it is complete.
	release(s *sequence, ended bool)
}

// kvState is what a store keeps of a sequence.
type kvState struct {
	keys    []uint64 // paged: of all blocks that it can fill; none without prefix caching
	blocks  []int    // paged: the block table
	entered int      // paged: leading blocks that are in the prefix cache, or were taken from it

	start, length int // contiguous: its run

	tokens  []Token    // radix: prompt and output
	node    *TokenNode // radix: the end of its prefix in the tree
	private int        // radix: its blocks that are not in the tree

	groups groupedState // hybrid
}

func newStore(cfg *engine.Config) store {
	switch {
	case cfg.Contiguous:
		return &contiguous{usable: cfg.UsableBlocks()}
	case cfg.Radix:
		tree := NewTokenTree(cfg.UsableBlocks(), int(cfg.BlockSize))
		tree.Order = cfg.RadixEviction
		return &radix{tree}
	case cfg.Hybrid != nil:
		return newHybrid(cfg)
	}
	return &paged{pool: newPool(cfg.UsableBlocks(), cfg.AppendUnkeyed), size: cfg.BlockSize,
		dropsLast: cfg.Speculative.DropsBlock()}
}

// newState is the store's part of a sequence that arrives.
func newState(cfg *engine.Config, r *workload.Request, answer int32) (k kvState) {
	switch {
	case cfg.Radix:
		k.tokens = Tokens(r, r.InputTokens+answer)
	case cfg.Hybrid != nil:
		k.groups = newGroupedState(cfg, r, answer)
	case cfg.PrefixCaching:
		walk := workload.NewBlockKeys(r, cfg.BlockSize)
		for range (r.InputTokens + answer - 1) / cfg.BlockSize {
			key, _ := walk.Next()
			k.keys = append(k.keys, key)
		}
	}
	return k
}

// paged is a pool of equal blocks with hashed content.
type paged struct {
	pool      *pool
	size      int32
	dropsLast bool // a hit goes without its last block
}

func (p *paged) free() int                     { return p.pool.free() }
func (p *paged) largest() int                  { return p.pool.free() }
func (p *paged) shared() int                   { return p.pool.shared }
func (p *paged) holds(s *sequence) int         { return len(s.kv.blocks) }
func (p *paged) grows(s *sequence, n int) bool { return true }
func (p *paged) done(*sequence, int32, bool)   {}

func (p *paged) path(s *sequence, n int32) []int32 { return nil }

func (p *paged) take(s *sequence, n int) {
	for range n {
		s.kv.blocks = append(s.kv.blocks, p.pool.pop())
	}
}

// hits finds the blocks that hold the leading tokens of s.
func (p *paged) hits(s *sequence, most int32) (list []int) {
	for _, key := range s.kv.keys[:min(int(most/p.size), len(s.kv.keys))] {
		b, ok := p.pool.find(key)
		if !ok {
			break
		}
		list = append(list, b)
	}
	if len(list) > 0 && p.dropsLast {
		list = list[:len(list)-1]
	}
	return list
}

func (p *paged) lookup(s *sequence, most int32) (tokens int32, held int) {
	list := p.hits(s, most)
	for _, b := range list {
		if p.pool.blocks[b].refs > 0 {
			held++
		}
	}
	return int32(len(list)) * p.size, held
}

func (p *paged) lost(s *sequence, most int32) (from, to int32) {
	keys := s.kv.keys[:min(int(most/p.size), len(s.kv.keys))]
	first := 0
	for first < len(keys) && len(p.pool.cache[keys[first]]) > 0 {
		first++
	}
	last := first
	for last < len(keys) && (p.pool.evicted[keys[last]] || len(p.pool.cache[keys[last]]) > 0) {
		last++
	}
	return int32(first) * p.size, int32(last) * p.size
}

func (p *paged) admit(s *sequence, most int32) (tokens int32) {
	s.kv.blocks = p.hits(s, most)
	s.kv.entered = len(s.kv.blocks)
	p.pool.take(s.kv.blocks)
	return int32(s.kv.entered) * p.size
}

func (p *paged) known(s *sequence, tokens int32) {
	for full := min(int(tokens/p.size), len(s.kv.keys)); s.kv.entered < full; s.kv.entered++ {
		p.pool.enter(s.kv.blocks[s.kv.entered], s.kv.keys[s.kv.entered])
	}
}

func (p *paged) release(s *sequence, ended bool) {
	p.pool.release(s.kv.blocks)
	s.kv.blocks, s.kv.entered = nil, 0
}
