package kv

import (
	"slices"

	"clifftop/model"
	"clifftop/workload"
)

// Grouped is a pool that KV cache groups with block tables of their own share, and their prefix cache. It does what
// vLLM's KV cache coordinator does with its managers of single types.
type Grouped struct {
	GroupedConfig
	pool   *Pool
	align  int32      // a hit is a multiple of it, in tokens
	kinds  [][]int    // groups that differ only in their layers; full attention comes first
	keysOf []int      // by group: the number of its block size among the different ones
	sizes  []int32    // different block sizes
	full   int        // the first group of full attention, or -1
	shared int64      // references beyond the first to its blocks
	fresh  []uint64   // keys of recurrent states that were registered since the last call of [Grouped.Begin]
	found  groupedHit // result of the last lookup
	hits   []int32    // scratch
}

// GroupedConfig describes a [Grouped] pool.
type GroupedConfig struct {
	Groups    []model.CacheGroup
	Retention int // vLLM's prefix_cache_retention_interval; negative: every block can be found
	// Most is the longest sequence in tokens, and InFlight the tokens that can be scheduled and not processed.
	Most, InFlight int
	Caching        bool
	// DropsBlock means that a hit goes without its last block, as drafts of EAGLE and MTP need it.
	DropsBlock bool
}

// GroupTables are the block tables of a sequence, and the keys of its blocks.
type GroupTables struct {
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

// at returns the key of block i.
func (k *sizedKeys) at(i int32) uint64 {
	for k.keys.Len() <= i {
		key, blocks, _ := k.walk.NextRun(i + 1 - k.keys.Len())
		k.keys.Add(key, blocks)
	}
	return k.keys.At(i)
}

// groupedHit is the result of a lookup.
type groupedHit struct {
	of     *GroupTables
	epoch  uint64
	most   int32
	tokens int32
	blocks [][]int32 // by group
	full   []int32   // hits of the kinds of full attention, before they were cut
}

// NewGrouped returns a grouped pool over the blocks of a pool, which has a prefix cache or only counts.
func NewGrouped(pool *Pool, c GroupedConfig) *Grouped {
	g := &Grouped{GroupedConfig: c, pool: pool, full: -1}
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

// kindsOf returns the groups that differ only in their layers together, those of full attention first.
func kindsOf(groups []model.CacheGroup) (kinds [][]int) {
	same := func(a, b model.CacheGroup) bool {
		a.Layers, b.Layers = 0, 0
		return a == b
	}
	for _, full := range []bool{true, false} {
		for i := range groups {
			if groups[i].KeepsAll() != full {
				continue
			}
			at := slices.IndexFunc(kinds, func(kind []int) bool { return same(groups[kind[0]], groups[i]) })
			if at < 0 {
				at = len(kinds)
				kinds = append(kinds, nil)
			}
			kinds[at] = append(kinds[at], i)
		}
	}
	return kinds
}

// Start makes t the empty tables of a request.
func (g *Grouped) Start(t *GroupTables, q *workload.Request) {
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

// clear makes the tables empty.
func (g *Grouped) clear(t *GroupTables) {
	t.held, t.Junction = 0, 0
	for i := range t.tables {
		t.tables[i], t.entered[i], t.last[i] = t.tables[i][:0], 0, -1
	}
}

// Begin begins an iteration.
func (g *Grouped) Begin() { g.fresh = g.fresh[:0] }

// Shared returns the references beyond the first to blocks of the first group of full attention, in tokens.
func (g *Grouped) Shared() int64 {
	if g.full < 0 {
		return 0
	}
	return g.shared * int64(g.Groups[g.full].BlockSize)
}

// Held returns the number of blocks that the sequence of t holds in all groups.
func (t *GroupTables) Held() int { return t.held }

// key returns the key of block i of t in a group: in the first group of full attention that of its content.
// Neighbouring keys stay neighbours.
func (g *Grouped) key(t *GroupTables, group int, i int32) uint64 {
	key := t.keys[g.keysOf[group]].at(i)
	if group == g.full {
		return key
	}
	const spread = 0x9e3779b97f4a7c15 &^ (groupSize - 1)
	return key + uint64(group+1)*spread
}

// Find looks up the leading tokens of t, at most most, and returns how many the cache holds. Full attention is looked
// up first and then cut. The other groups cut the hit until all agree; with full attention and one other kind, one
// round is enough.
func (g *Grouped) Find(t *GroupTables, most int32) int32 {
	f := &g.found
	if f.of == t && f.epoch == g.pool.Epoch() && f.most == most {
		return f.tokens
	}
	f.of, f.epoch, f.most, f.tokens = t, g.pool.Epoch(), most, 0
	t.Junction = 0
	for i := range f.blocks {
		f.blocks[i] = f.blocks[i][:0]
	}
	if !g.Caching {
		return 0
	}
	longest, length := int32(0), most
	f.full = f.full[:0]
	simple := len(g.kinds) == 2 && g.full >= 0
	dropped := uint64(0) // the kinds whose hit already goes without its last block
	for again := true; again; {
		now := length
		for k, kind := range g.kinds {
			if k < len(f.full) {
				now = min(now, f.full[k])
				continue
			}
			limit, drop := now, g.DropsBlock && dropped&(1<<k) == 0
			if drop {
				limit = min(now+int32(g.Groups[kind[0]].BlockSize), most)
			}
			found := g.findKind(t, kind, limit, drop)
			if drop {
				dropped |= 1 << k
			} else if found < now {
				dropped = 0
			}
			now = found
			if g.Groups[kind[0]].KeepsAll() {
				f.full = append(f.full, now)
			}
			longest = max(longest, now)
		}
		again = now < length && !simple
		length = now
	}
	for i := range f.blocks {
		if size := int32(g.Groups[i].BlockSize); g.Groups[i].KeepsAll() {
			f.blocks[i] = f.blocks[i][:(length+size-1)/size]
		}
	}
	f.tokens = length
	if longest > length && len(g.Groups) > 1 {
		t.Junction = longest
	}
	return length
}

// findKind looks up at most most tokens of t in groups of one kind, and returns the hit, a multiple of align. If drop
// is true, it goes without the last block that was found. findKind sets the blocks of the groups.
func (g *Grouped) findKind(t *GroupTables, kind []int, most int32, drop bool) (tokens int32) {
	spec := &g.Groups[kind[0]]
	size := int32(spec.BlockSize)
	n, length := most/size, int32(0)
	first := int32(0) // of the blocks of the hit, where earlier ones are not needed
	switch spec.Kind {
	case model.SlidingWindow:
		first, length = g.findWindow(t, kind, n, drop)
	case model.RecurrentState:
		for length = n; length > 0 && (length*size%g.align != 0 || !g.has(t, kind, length-1)); {
			length--
		}
		first = max(0, length-1)
	case model.ChunkedLocalAttention:
		first = most / int32(spec.Window) * int32(spec.Window) / size
		for length = first; length < n && g.has(t, kind, length); {
			length++
		}
	default:
		for length < n && g.has(t, kind, length) {
			length++
		}
		if drop && length > 0 {
			length--
		}
		length = length * size / g.align * g.align / size
	}
	for _, group := range kind {
		list := g.found.blocks[group][:0]
		for range first {
			list = append(list, 0)
		}
		for i := first; i < length; i++ {
			list = append(list, g.pool.Find(g.key(t, group, i)))
		}
		g.found.blocks[group] = list
	}
	return length * size
}

// has reports whether all groups of a kind have block i of t.
func (g *Grouped) has(t *GroupTables, kind []int, i int32) bool {
	for _, group := range kind {
		if g.pool.Find(g.key(t, group, i)) == 0 {
			return false
		}
	}
	return true
}

// findWindow looks for as many consecutive blocks as the window has, from block n back. Fewer are a hit if they are the
// first ones. If drop is true, it looks for one more, which the hit leaves out.
func (g *Grouped) findWindow(t *GroupTables, kind []int, n int32, drop bool) (first, length int32) {
	size, need := int32(g.Groups[kind[0]].BlockSize), max(1, int32(g.Groups[kind[0]].HitBlocks()))
	more := int32(0)
	if drop {
		more = 1
	}
	run := int32(0)
	for i := n - 1; i >= 0; i-- {
		if run == 0 && (i+1-more)*size%g.align != 0 {
			continue
		}
		if !g.has(t, kind, i) {
			run = 0
			continue
		}
		if run++; run >= need+more {
			return i, i + run - more
		}
	}
	run -= run * size % g.align / size
	if run > 0 && drop {
		run--
		run -= run * size % g.align / size
	}
	return 0, run
}

// Needs returns the number of free blocks that the admission of t takes to hold tokens, with what Find found. If capped
// is true, groups count at most what a sequence holds at a time.
func (g *Grouped) Needs(t *GroupTables, tokens int32, capped bool) (sum int) {
	f := &g.found
	for i := range g.Groups {
		spec, list := &g.Groups[i], f.blocks[i]
		blocks := int(tokens+int32(spec.BlockSize)-1) / spec.BlockSize
		if n := int32(len(list)); spec.Kind == model.RecurrentState && n > 0 &&
			slices.Contains(g.fresh, g.key(t, i, n-1)) {
			return g.pool.Usable() + 2 // the state is computed in this iteration
		}
		skipped := spec.Skipped(int(f.tokens)) / spec.BlockSize
		if capped && spec.Recycles() {
			blocks = min(blocks, spec.Most(g.Most, g.InFlight))
		}
		more := max(0, blocks-max(skipped, len(list)))
		if spec.Aligned() {
			more, skipped = min(more, 1), 0
		}
		sum += more
		for _, name := range list[min(skipped, len(list)):] {
			if name != 0 && *g.pool.state(name) < 0 {
				sum++
			}
		}
	}
	return sum
}

// Take makes t hold what Find found, except blocks that no further token attends to, and returns the number of tokens.
func (g *Grouped) Take(t *GroupTables) int32 {
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
func (g *Grouped) countShared(group int, before int64) {
	if group == g.full {
		g.shared += g.pool.shared - before
	}
}

// Grow gives t the blocks for tokens in all, and reports whether there were enough. First it frees those that no
// further token attends to. processed tokens are computed, and no longer in flight.
func (g *Grouped) Grow(t *GroupTables, tokens, processed int32) bool {
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
func (g *Grouped) drop(t *GroupTables, group, to int) {
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
func (g *Grouped) release(t *GroupTables, group int, names []int32) {
	before := g.pool.shared
	n := g.pool.drop(names, g.Caching)
	t.held -= n
	g.countShared(group, before)
	clear(names)
}

// Register makes the full blocks among the first tokens of t findable, if the cache keeps them. Blocks behind the last
// multiple of align are of no use, except the one that a hit goes without.
func (g *Grouped) Register(t *GroupTables, tokens int32) {
	if !g.Caching {
		return
	}
	aligned := tokens - tokens%g.align
	for i := range g.Groups {
		spec := &g.Groups[i]
		useful := aligned
		if g.DropsBlock && aligned > 0 {
			useful = min(tokens, aligned+int32(spec.BlockSize))
		}
		for full := useful / int32(spec.BlockSize); t.entered[i] < full; t.entered[i]++ {
			at := t.entered[i]
			if t.tables[i][at] == 0 || !g.retains(t, spec, int(at)) {
				continue
			}
			key := g.key(t, i, at)
			t.tables[i][at] = g.pool.register(key)
			if spec.Kind == model.RecurrentState {
				g.fresh = append(g.fresh, key)
			}
		}
	}
}

// retains reports whether the cache keeps block i of t in a group.
func (g *Grouped) retains(t *GroupTables, spec *model.CacheGroup, i int) bool {
	if !spec.Sparse() || g.Retention < 0 && spec.Kind == model.RecurrentState {
		return true
	}
	need, behind, segment := spec.HitBlocks(), 0, g.Retention
	if g.DropsBlock {
		need, behind = need+1, 1 // the block that a hit goes without is behind its end
	}
	if segment < 0 {
		segment = int(g.align)
	}
	if per := segment / spec.BlockSize; per > 0 && (need >= per || i >= behind && (i-behind)%per >= per-need) {
		return true
	}
	align := int(g.align)
	ends := func(tokens int32) bool {
		end := int(tokens)/align*align/spec.BlockSize + behind
		return end-need <= i && i < end
	}
	return g.Retention >= 0 && (ends(t.prompt-1) || t.Junction > 0 && ends(t.Junction))
}

// Hashed returns the size of the blocks whose keys are those of their content, in tokens; 0 is none.
func (g *Grouped) Hashed() int32 {
	if g.full < 0 || !g.Caching {
		return 0
	}
	return int32(g.Groups[g.full].BlockSize)
}

// Warm adds the first tokens of an earlier request to the prefix cache, as far as a sequence of that length could.
func (g *Grouped) Warm(q *workload.Request, tokens int32) {
	var t GroupTables
	g.Start(&t, q)
	g.Find(&t, tokens)
	g.Take(&t)
	if g.Grow(&t, tokens, 0) {
		g.Register(&t, tokens)
	}
	g.Free(&t)
}

// Free frees all blocks of t, one group after the other.
func (g *Grouped) Free(t *GroupTables) {
	for i := range t.tables {
		g.release(t, i, t.tables[i])
	}
	g.clear(t)
}
