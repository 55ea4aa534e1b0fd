package naive

import (
	"slices"

	"clifftop/model"
	"clifftop/sim/engine"
)

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
