package naive

import (
	"slices"

	"clifftop/model"
	"clifftop/sim/engine"
	"clifftop/workload"
)

// hybrid is a pool that KV cache groups with block tables of their own share, as vLLM's KV cache coordinator and its
// managers of single types have it. In a block table, block 0 is a block that the sequence does not hold.
type hybrid struct {
	store // reservations, and blocks in number: the policy uses neither
	*engine.Hybrid
	cfg        *engine.Config
	pool       *pool
	sharedFull int             // references beyond the first to blocks of the first group of full attention
	fresh      map[uint64]bool // recurrent states that entered the cache in the iteration that is composed
}

// groupedState is what a hybrid pool keeps of a sequence, by group.
type groupedState struct {
	tables   [][]int
	keys     [][]uint64
	entered  []int // leading blocks that were entered into the cache, or left out
	junction int32 // where the lookup found that only other groups have more; 0 is none

	// lastState is, for recurrent groups in align mode, the block before the last one that it was given; -1 is none.
	lastState []int
}

func newGroupedState(cfg *engine.Config, r *workload.Request, answer int32) (k groupedState) {
	k.reset(len(cfg.Hybrid.Groups))
	k.keys = make([][]uint64, len(cfg.Hybrid.Groups))
	if !cfg.PrefixCaching {
		return k
	}
	for g := range cfg.Hybrid.Groups {
		size := int32(cfg.Hybrid.Groups[g].BlockSize)
		walk := workload.NewBlockKeys(r, size)
		for range (r.InputTokens + answer - 1) / size {
			key, _ := walk.Next()
			k.keys[g] = append(k.keys[g], keyInGroup(key, g))
		}
	}
	return k
}

// keyInGroup returns the key in a group for the key of a block's content, and the other way round.
func keyInGroup(key uint64, group int) uint64 { return key ^ uint64(group+1)*0x9e3779b97f4a7c15 }

// reset makes the block tables of n groups empty.
func (k *groupedState) reset(n int) {
	k.tables, k.entered = make([][]int, n), make([]int, n)
	k.lastState = slices.Repeat([]int{-1}, n)
}

func newHybrid(cfg *engine.Config) *hybrid {
	return &hybrid{Hybrid: cfg.Hybrid, cfg: cfg, pool: newPool(cfg.UsableBlocks(), cfg.AppendUnkeyed),
		fresh: make(map[uint64]bool)}
}

func (h *hybrid) free() int                     { return h.pool.free() }
func (h *hybrid) largest() int                  { return h.pool.free() }
func (h *hybrid) done(*sequence, int32, bool)   {}
func (h *hybrid) path(*sequence, int32) []int32 { return nil }

// lost counts no tokens: whether a hit failed for an eviction or for retention is not known.
func (h *hybrid) lost(*sequence, int32) (from, to int32) { return 0, 0 }

// shared counts the first group of full attention, in blocks of the configured size.
func (h *hybrid) shared() int {
	if full := h.full(); full >= 0 {
		return h.sharedFull * h.Groups[full].BlockSize / int(h.cfg.BlockSize)
	}
	return 0
}

// full is the first group of full attention, or -1.
func (h *hybrid) full() int {
	return slices.IndexFunc(h.Groups, func(g model.CacheGroup) bool { return g.KeepsAll() })
}

// holds is the number of blocks that s holds in all groups.
func (h *hybrid) holds(s *sequence) int {
	sum := 0
	for _, table := range s.kv.groups.tables {
		for _, b := range table {
			if b > 0 {
				sum++
			}
		}
	}
	return sum
}

// needs is the number of free blocks that an admission of s takes to hold tokens. capped means that groups count at
// most what a sequence holds at a time.
func (h *hybrid) needs(s *sequence, tokens int32, capped bool) int {
	f, sum := h.find(s, int(s.known()-1)), 0
	for i := range h.Groups {
		g, list := &h.Groups[i], f.blocks[i]
		blocks := (int(tokens) + g.BlockSize - 1) / g.BlockSize
		if g.Kind == model.RecurrentState && len(list) > 0 && h.fresh[s.kv.groups.keys[i][len(list)-1]] {
			return h.cfg.NumGPUBlocks + 1 // its state is computed in this iteration
		}
		skipped := g.Skipped(f.tokens) / g.BlockSize
		if capped && g.Recycles() {
			blocks = min(blocks, g.Most(int(h.cfg.MaxModelLen), h.cfg.InFlightTokens()))
		}
		more := max(0, blocks-max(skipped, len(list)))
		if h.Groups[i].Aligned() {
			more, skipped = min(more, 1), 0
		}
		sum += more
		for _, b := range list[min(skipped, len(list)):] {
			if b > 0 && h.pool.blocks[b].refs == 0 {
				sum++
			}
		}
	}
	return sum
}

func (h *hybrid) admit(s *sequence, most int32) (tokens int32) {
	f := h.find(s, int(most))
	s.kv.groups.reset(len(h.Groups))
	s.kv.groups.junction = f.junction
	for i := range h.Groups {
		list := f.blocks[i]
		for k := range min(len(list), h.Groups[i].Skipped(f.tokens)/h.Groups[i].BlockSize) {
			list[k] = 0
		}
		h.counted(i, func() { h.pool.take(held(list)) })
		s.kv.groups.tables[i], s.kv.groups.entered[i] = list, len(list)
	}
	return int32(f.tokens)
}

// counted calls f, which takes or releases blocks of group i.
func (h *hybrid) counted(i int, f func()) {
	before := h.pool.shared
	f()
	if i == h.full() {
		h.sharedFull += h.pool.shared - before
	}
}

// held is the list without missing blocks.
func held(list []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(b int) bool { return b == 0 })
}

// drop frees blocks [from, to) of group i, from the last one back to the first that is missing.
func (h *hybrid) drop(s *sequence, i, from, to int) {
	table := s.kv.groups.tables[i]
	to = min(to, len(table))
	first := to
	for first > from && table[first-1] > 0 {
		first--
	}
	if first < to {
		h.counted(i, func() { h.pool.release(table[first:to]) })
		clear(table[first:to])
	}
}

// grow gives s the blocks for tokens in all, if there are enough. First it frees those that no further token attends
// to; processed tokens are computed, and no longer in flight.
func (h *hybrid) grow(s *sequence, tokens, processed int32) bool {
	for i := range h.Groups {
		g := &h.Groups[i]
		h.drop(s, i, 0, g.Skipped(int(processed))/g.BlockSize)
		last, blocks := s.kv.groups.lastState[i], (int(processed)+g.BlockSize-1)/g.BlockSize
		if g.Aligned() && last >= 0 && last < blocks-1 {
			h.drop(s, i, last, last+1)
		}
	}
	if h.lacks(s, tokens) > h.free() {
		return false
	}
	for i := range h.Groups {
		g := &h.Groups[i]
		blocks, has := (int(tokens)+g.BlockSize-1)/g.BlockSize, len(s.kv.groups.tables[i])
		if h.Groups[i].Aligned() {
			if blocks > has && has > 0 {
				s.kv.groups.lastState[i] = has - 1
			}
			for len(s.kv.groups.tables[i]) < blocks-1 {
				s.kv.groups.tables[i] = append(s.kv.groups.tables[i], 0)
			}
		}
		for len(s.kv.groups.tables[i]) < blocks {
			s.kv.groups.tables[i] = append(s.kv.groups.tables[i], h.pool.pop())
		}
	}
	return true
}

func (h *hybrid) lacks(s *sequence, tokens int32) int {
	sum := 0
	for i := range h.Groups {
		size := h.Groups[i].BlockSize
		more := max(0, (int(tokens)+size-1)/size-len(s.kv.groups.tables[i]))
		if h.Groups[i].Aligned() {
			more = min(more, 1)
		}
		sum += more
	}
	return sum
}

func (h *hybrid) release(s *sequence, ended bool) {
	for i, table := range s.kv.groups.tables {
		h.counted(i, func() { h.pool.release(held(table)) })
	}
	s.kv.groups.reset(len(h.Groups))
}
