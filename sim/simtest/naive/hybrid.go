package naive

import (
	"slices"

	"clifftop/model"
	"clifftop/sim/engine"
	"clifftop/sim/sched"
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
			k.keys[g] = append(k.keys[g], key^uint64(g+1)*0x9e3779b97f4a7c15)
		}
	}
	return k
}

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
func (h *hybrid) done(*sequence, int32)         {}
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

// hit is the result of a lookup: tokens, the blocks of each group, and the longest hit of some groups, if that is
// longer; else 0.
type hit struct {
	tokens   int
	blocks   [][]int
	junction int32
}

// find looks up the leading tokens of s, at most most. Full attention is looked up first and then cut; the other groups
// are looked up, and cut the hit, until all agree. With two kinds of groups, of which one is full attention, one round
// is enough.
func (h *hybrid) find(s *sequence, most int) hit {
	f := hit{blocks: make([][]int, len(h.Groups))}
	if !h.cfg.PrefixCaching {
		return f
	}
	kinds := h.kinds()
	simple := len(kinds) == 2 && h.Groups[kinds[0][0]].KeepsAll()
	longest, length := 0, most
	fullLength := map[int]int{} // by the first group of the kind
	dropped := map[int]bool{}   // kinds whose hit already goes without its last block
	for {
		now := length
		for _, kind := range kinds {
			g := h.Groups[kind[0]]
			if full, ok := fullLength[kind[0]]; ok {
				now = min(now, full)
				continue
			}
			limit, drop := now, h.cfg.Speculative.DropsBlock() && !dropped[kind[0]]
			if drop {
				limit = min(now+g.BlockSize, most)
			}
			lists, tokens := h.findKind(s, kind, limit, drop)
			if g.KeepsAll() {
				fullLength[kind[0]] = tokens
			}
			switch {
			case drop:
				dropped[kind[0]] = true
			case tokens < now:
				clear(dropped)
			}
			now = tokens
			for i, group := range kind {
				f.blocks[group] = lists[i]
			}
			longest = max(longest, now)
		}
		if now >= length {
			break
		}
		length = now
		if simple {
			break
		}
	}
	for g := range f.blocks {
		if h.Groups[g].KeepsAll() {
			f.blocks[g] = f.blocks[g][:(length+h.Groups[g].BlockSize-1)/h.Groups[g].BlockSize]
		}
	}
	f.tokens = length
	if longest > length && len(h.Groups) > 1 {
		f.junction = int32(longest)
	}
	return f
}

// kinds are the groups, those that differ only in their layers together. Full attention comes first, the others are in
// the order of their first groups.
func (h *hybrid) kinds() (kinds [][]int) {
	kindOf := func(g int) model.CacheGroup {
		k := h.Groups[g]
		k.Layers = 0
		return k
	}
	for g := range h.Groups {
		at := slices.IndexFunc(kinds, func(kind []int) bool { return kindOf(kind[0]) == kindOf(g) })
		if at < 0 {
			kinds = append(kinds, []int{g})
		} else {
			kinds[at] = append(kinds[at], g)
		}
	}
	slices.SortStableFunc(kinds, func(a, b []int) int {
		switch fa, fb := h.Groups[a[0]].KeepsAll(), h.Groups[b[0]].KeepsAll(); {
		case fa && !fb:
			return -1
		case fb && !fa:
			return 1
		}
		return 0
	})
	return kinds
}

// cached is the i-th blocks of s in groups of one kind, if the cache has all of them.
func (h *hybrid) cached(s *sequence, kind []int, i int) (blocks []int, ok bool) {
	for _, g := range kind {
		if i >= len(s.kv.groups.keys[g]) {
			return nil, false
		}
		b, found := h.pool.find(s.kv.groups.keys[g][i])
		if !found {
			return nil, false
		}
		blocks = append(blocks, b)
	}
	return blocks, true
}

// findKind looks up at most most tokens of s in groups of one kind. The lists end with the hit, which is a multiple of
// the scheduler's block. If drop is true, it goes without the last block.
func (h *hybrid) findKind(s *sequence, kind []int, most int, drop bool) (lists [][]int, tokens int) {
	g, align := &h.Groups[kind[0]], h.ScheduledBlock()
	n := most / g.BlockSize
	found := make([][]int, n) // blocks of the groups, by place; nil for none
	length := 0
	switch g.Kind {
	case model.SlidingWindow:
		length = h.findWindow(s, kind, n, found, drop)
	case model.RecurrentState:
		for i := n - 1; i >= 0 && length == 0; i-- {
			if blocks, ok := h.cached(s, kind, i); ok && (i+1)*g.BlockSize%align == 0 {
				found[i], length = blocks, i+1
			}
		}
	default:
		if g.Kind == model.ChunkedLocalAttention {
			length = most / g.Window * g.Window / g.BlockSize // earlier blocks are not attended to
		}
		for ; length < n; length++ {
			blocks, ok := h.cached(s, kind, length)
			if !ok {
				break
			}
			found[length] = blocks
		}
		if g.KeepsAll() {
			if drop {
				length = max(0, length-1)
			}
			length = length * g.BlockSize / align * align / g.BlockSize
		}
	}
	for at := range kind {
		list := make([]int, length)
		for i := range list {
			if found[i] != nil {
				list[i] = found[i][at]
			}
		}
		lists = append(lists, list)
	}
	return lists, length * g.BlockSize
}

// findWindow looks for as many consecutive blocks as the window of one kind has, from the n-th block back, and returns
// the number of blocks of the hit. Fewer are a hit if they are the first ones. If drop is true, it looks for one more,
// which is not part of the hit.
func (h *hybrid) findWindow(s *sequence, kind []int, n int, found [][]int, drop bool) (length int) {
	g, align := &h.Groups[kind[0]], h.ScheduledBlock()
	run, need, end := 0, max(1, g.HitBlocks()), 0
	if drop {
		need, end = need+1, 1
	}
	for i := n - 1; i >= 0; i-- {
		blocks, ok := h.cached(s, kind, i)
		if !ok {
			run = 0
			continue
		}
		if run == 0 && (i+1-end)*g.BlockSize%align != 0 {
			continue
		}
		found[i] = blocks
		if run++; run >= need {
			return i + run - end
		}
	}
	align /= g.BlockSize
	run = run / align * align
	return max(0, run-end) / align * align
}

func (h *hybrid) lookup(s *sequence, most int32) (tokens int32, held int) {
	f := h.find(s, int(most))
	s.kv.groups.junction = f.junction
	return int32(f.tokens), 0
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

// lacks is the number of blocks that s lacks for tokens in all.
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

// known enters full blocks of the first tokens of s into the cache. A hit is a multiple of the scheduler's block, so
// that the blocks behind the last multiple are of no use, except the one that a hit goes without.
func (h *hybrid) known(s *sequence, tokens int32) {
	if !h.cfg.PrefixCaching {
		return
	}
	align := h.ScheduledBlock()
	for i := range h.Groups {
		g := &h.Groups[i]
		useful := int(tokens) / align * align
		if useful > 0 && h.cfg.Speculative.DropsBlock() {
			useful = min(int(tokens), useful+g.BlockSize)
		}
		// The last token of an output has no key.
		full := min(useful/g.BlockSize, len(s.kv.groups.keys[i]))
		for ; s.kv.groups.entered[i] < full; s.kv.groups.entered[i]++ {
			at := s.kv.groups.entered[i]
			b := s.kv.groups.tables[i][at]
			if b == 0 || !h.retained(s, g, at) {
				continue
			}
			h.pool.enter(b, s.kv.groups.keys[i][at])
			if g.Kind == model.RecurrentState {
				h.fresh[s.kv.groups.keys[i][at]] = true
			}
		}
	}
}

// retained reports whether block i of s enters the cache of a group.
func (h *hybrid) retained(s *sequence, g *model.CacheGroup, i int) bool {
	if !g.Sparse() || h.Retention == engine.DenseRetention && g.Kind == model.RecurrentState {
		return true
	}
	align := h.ScheduledBlock()
	segment := h.Retention
	if segment == engine.DenseRetention {
		segment = align
	}
	need, behind := g.HitBlocks(), 0
	if h.cfg.Speculative.DropsBlock() {
		need, behind = need+1, 1 // the block that a hit goes without is behind its end
	}
	// The block is among those that a hit needs that ends at a multiple of the segment.
	if per := segment / g.BlockSize; segment > 0 && (need >= per || i >= behind && (i-behind)%per >= per-need) {
		return true
	}
	stops := []int{int(s.prompt) - 1}
	if s.kv.groups.junction > 0 {
		stops = append(stops, int(s.kv.groups.junction))
	}
	for _, tokens := range stops {
		end := tokens/align*align/g.BlockSize + behind
		if h.Retention != engine.DenseRetention && end-need <= i && i < end {
			return true
		}
	}
	return false
}

func (h *hybrid) release(s *sequence, ended bool) {
	for i, table := range s.kv.groups.tables {
		h.counted(i, func() { h.pool.release(held(table)) })
	}
	s.kv.groups.reset(len(h.Groups))
}

// grouping is the part of a view for KV cache groups.
type grouping struct{ n *Engine }

// Clip cuts a chunk of a running sequence.
func (v grouping) Clip(i sched.Seq, tokens, most int32) int32 {
	s := v.n.byID[int64(i)]
	if v.n.cfg.Hybrid == nil || s == nil {
		return tokens
	}
	return v.clip(s, s.computed, tokens, most)
}

// ClipWaiting cuts the first chunk of a waiting request.
func (v grouping) ClipWaiting(i int, tokens, most int32) int32 {
	s := v.n.place(i)
	if v.n.cfg.Hybrid == nil || s == nil {
		return tokens
	}
	found, _ := v.n.kv.lookup(s, s.known()-1)
	return v.clip(s, found, tokens, most)
}

// clip cuts a chunk of s behind its first start tokens.
func (v grouping) clip(s *sequence, start, tokens, most int32) int32 {
	if limit := int32(v.n.cfg.MaxNumBatchedTokens); most == 0 || most > limit {
		most = limit
	}
	return v.n.cfg.Hybrid.Clip(start, tokens, s.prompt, s.known(), s.kv.groups.junction, most)
}

// Needs is the number of free blocks that an admission takes.
func (v grouping) Needs(i int, tokens int32, whole bool) int {
	s := v.n.place(i)
	h, ok := v.n.kv.(*hybrid)
	if !ok || s == nil {
		return 0
	}
	if whole {
		return h.needs(s, s.known(), true)
	}
	found, _ := h.lookup(s, s.known()-1)
	return h.needs(s, admissionSlots(h.cfg, found+tokens), false)
}
