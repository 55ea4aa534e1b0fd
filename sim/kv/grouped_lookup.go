package kv

import (
	"slices"

	"clifftop/model"
)

// groupedHit is the result of a lookup.
type groupedHit struct {
	of     *groupTables
	epoch  uint64
	most   int32
	tokens int32
	blocks [][]int32 // by group
	full   []int32   // hits of the kinds of full attention, before they were cut
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

// key returns the key of block i of t in a group: in the first group of full attention that of its content.
// Neighbouring keys stay neighbours.
func (g *grouped) key(t *groupTables, group int, i int32) uint64 {
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
func (g *grouped) Find(t *groupTables, most int32) int32 {
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
func (g *grouped) findKind(t *groupTables, kind []int, most int32, drop bool) (tokens int32) {
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

func (g *grouped) has(t *groupTables, kind []int, i int32) bool {
	for _, group := range kind {
		if g.pool.Find(g.key(t, group, i)) == 0 {
			return false
		}
	}
	return true
}

// findWindow looks for as many consecutive blocks as the window has, from block n back. Fewer are a hit if they are the
// first ones. If drop is true, it looks for one more, which the hit leaves out.
func (g *grouped) findWindow(t *groupTables, kind []int, n int32, drop bool) (first, length int32) {
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
func (g *grouped) Needs(t *groupTables, tokens int32, capped bool) (sum int) {
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
