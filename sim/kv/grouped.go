package kv

import (
	"slices"

	"clifftop/model"
	"clifftop/workload"
)

// grouped is a pool that KV cache groups with block tables of their own share, and their prefix cache. It does what
// vLLM's KV cache coordinator does with its managers of single types.
type grouped struct {
	GroupedConfig
	pool   *blockPool
	align  int32      // a hit is a multiple of it, in tokens
	kinds  [][]int    // groups that differ only in their layers; full attention comes first
	keysOf []int      // by group: the number of its block size among the different ones
	sizes  []int32    // different block sizes
	full   int        // the first group of full attention, or -1
	shared int64      // references beyond the first to its blocks
	fresh  []uint64   // keys of recurrent states that were registered since the last call of [grouped.Begin]
	found  groupedHit // result of the last lookup
	hits   []int32    // scratch

	tell func(Change)        // see Tell
	told map[uint64]struct{} // keys that it was called for and that can be found; nil without it
}

// GroupedConfig describes a [grouped] pool.
type GroupedConfig struct {
	Groups    []model.CacheGroup
	Retention int // vLLM's prefix_cache_retention_interval; negative: every block can be found
	// Most is the longest sequence in tokens, and InFlight the tokens that can be scheduled and not processed.
	Most, InFlight int
	Caching        bool
	// DropsBlock means that a hit goes without its last block, as drafts of EAGLE and MTP need it.
	DropsBlock bool
}

// groupTables are the block tables of a sequence, and the keys of its blocks.
type groupTables struct {
	Junction int32 // the end of a longer hit of some groups at the last lookup; 0 is none

	tables  [][]int32 // by group: names of blocks; 0 is a block that the sequence does not hold
	entered []int32   // by group: leading blocks that were registered, or left out
	last    []int32   // by group in align mode: the block before the last one that was given; -1 is none
	keys    []sizedKeys
	prompt  int32
	held    int // blocks in all groups
}

// sizedKeys are the keys of blocks of one size.
type sizedKeys struct {
	walk workload.BlockKeys
	keys Keys
}

func (k *sizedKeys) at(i int32) uint64 {
	for k.keys.Len() <= i {
		key, blocks, _ := k.walk.NextRun(i + 1 - k.keys.Len())
		k.keys.Add(key, blocks)
	}
	return k.keys.At(i)
}

// newGrouped returns a grouped pool over the blocks of a pool, which has a prefix cache or only counts.
func newGrouped(pool *blockPool, c GroupedConfig) *grouped {
	g := &grouped{GroupedConfig: c, pool: pool, full: -1}
	gs := model.CacheGroups{Groups: c.Groups}
	g.align = int32(gs.ScheduledBlock())
	g.found.blocks = make([][]int32, len(c.Groups))
	for i := range c.Groups {
		size := int32(c.Groups[i].BlockSize)
		at := slices.Index(g.sizes, size)
		if at < 0 {
			at = len(g.sizes)
			g.sizes = append(g.sizes, size)
		}
		g.keysOf = append(g.keysOf, at)
		if g.full < 0 && c.Groups[i].KeepsAll() {
			g.full = i
		}
	}
	g.kinds = kindsOf(c.Groups)
	return g
}

func (g *grouped) Start(t *groupTables, q *workload.Request) {
	n := len(g.Groups)
	if t.tables == nil {
		t.tables, t.entered, t.last = make([][]int32, n), make([]int32, n), make([]int32, n)
		t.keys = make([]sizedKeys, len(g.sizes))
	}
	g.clear(t)
	t.prompt = q.InputTokens
	for i, size := range g.sizes {
		t.keys[i].keys.Reset()
		t.keys[i].walk = workload.NewBlockKeys(q, size)
	}
	if g.found.of == t {
		g.found.of = nil
	}
}

func (g *grouped) clear(t *groupTables) {
	t.held, t.Junction = 0, 0
	for i := range t.tables {
		t.tables[i], t.entered[i], t.last[i] = t.tables[i][:0], 0, -1
	}
}

func (g *grouped) Begin() { g.fresh = g.fresh[:0] }

// Shared returns the references beyond the first to blocks of the first group of full attention, in tokens.
func (g *grouped) Shared() int64 {
	if g.full < 0 {
		return 0
	}
	return g.shared * int64(g.Groups[g.full].BlockSize)
}

// Held returns the number of blocks that the sequence of t holds in all groups.
func (t *groupTables) Held() int { return t.held }

// Take makes t hold what Find found, except blocks that no further token attends to, and returns the number of tokens.
func (g *grouped) Take(t *groupTables) int32 {
	tokens, junction := g.found.tokens, t.Junction
	g.clear(t)
	t.Junction = junction
	for i := range g.Groups {
		list, before := append(t.tables[i], g.found.blocks[i]...), g.pool.shared
		skipped := min(len(list), g.Groups[i].Skipped(int(tokens))/g.Groups[i].BlockSize)
		clear(list[:skipped])
		g.hits = g.hits[:0]
		for _, name := range list {
			if name != 0 {
				g.hits = append(g.hits, name)
			}
		}
		t.held += len(g.hits)
		g.pool.Reference(g.hits)
		g.countShared(i, before)
		t.tables[i], t.entered[i] = list, int32(len(list))
	}
	g.found.of = nil
	return tokens
}

// countShared counts references to blocks of a group after a change. before is the number in the pool.
func (g *grouped) countShared(group int, before int64) {
	if group == g.full {
		g.shared += g.pool.shared - before
	}
}

// Grow gives t the blocks for tokens in all, and reports whether there were enough. First it frees those that no
// further token attends to. processed tokens are computed, and no longer in flight.
func (g *grouped) Grow(t *groupTables, tokens, processed int32) bool {
	need := 0
	for i := range g.Groups {
		spec := &g.Groups[i]
		g.drop(t, i, spec.Skipped(int(processed))/spec.BlockSize)
		if last := t.last[i]; spec.Aligned() && last >= 0 && int(last) < (int(processed)-1)/spec.BlockSize &&
			t.tables[i][last] != 0 {
			g.release(t, i, t.tables[i][last:last+1])
		}
		need += lacks(spec, len(t.tables[i]), tokens)
	}
	if need > g.pool.free {
		return false
	}
	for i := range g.Groups {
		spec := &g.Groups[i]
		n := lacks(spec, len(t.tables[i]), tokens)
		if n == 0 {
			continue
		}
		if has := len(t.tables[i]); spec.Aligned() {
			if has > 0 {
				t.last[i] = int32(has - 1)
			}
			for len(t.tables[i]) < (int(tokens)-1)/spec.BlockSize {
				t.tables[i] = append(t.tables[i], 0)
			}
		}
		t.held += n
		if g.Caching {
			t.tables[i] = g.pool.Pop(t.tables[i], n)
			continue
		}
		g.pool.TakeCount(n)
		for range n {
			t.tables[i] = append(t.tables[i], nameless)
		}
	}
	return true
}

// lacks returns the number of blocks that a table of a group lacks for tokens. In align mode blocks that are skipped
// are not given.
func lacks(spec *model.CacheGroup, has int, tokens int32) int {
	more := max(0, (int(tokens)+spec.BlockSize-1)/spec.BlockSize-has)
	if spec.Aligned() {
		return min(more, 1)
	}
	return more
}

// drop frees the blocks of a group before block to, back to the first that t does not hold.
func (g *grouped) drop(t *groupTables, group, to int) {
	table := t.tables[group]
	to = min(to, len(table))
	first := to
	for first > 0 && table[first-1] != 0 {
		first--
	}
	if first < to {
		g.release(t, group, table[first:to])
	}
}

// release frees blocks of a table of a group, from the last one to the first.
func (g *grouped) release(t *groupTables, group int, names []int32) {
	before := g.pool.shared
	n := g.pool.drop(names, g.Caching)
	t.held -= n
	g.countShared(group, before)
	clear(names)
}

// Free frees all blocks of t, one group after the other.
func (g *grouped) Free(t *groupTables) {
	for i := range t.tables {
		g.release(t, i, t.tables[i])
	}
	g.clear(t)
}
