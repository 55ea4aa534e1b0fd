package kv

import (
	"slices"

	"clifftop/workload"
)

// RememberedLeaves is the least number of evicted leaves that a radix cache remembers, of text that others may request.
// It forgets the older ones before it remembers twice as many.
const RememberedLeaves = 1 << 14

// memory is the recently evicted leaves of a radix tree, in two generations: when the young one is full, it replaces
// the old one, which is forgotten.
//
// A generation is a tree of the texts of evicted leaves from the root on, without eviction of its own. The nodes above
// such a leaf are therefore in it too, though they may not have been evicted. This has no effect: as long as they are
// in the cache they are not looked up here, and when they are evicted, later than the leaf, they are already in it.
type memory struct {
	young, old generation
	number     uint32     // of the young one, from 1 on
	most       int        // leaves of either generation
	spans      []tokenRun // scratch
}

type generation struct {
	tree   *radix // nil for none
	leaves int    // leaves that were added
	ids    idSet  // of all segments in it; it may contain others
}

// remember adds leaf i, which is evicted and not in the young generation.
func (t *radix) remember(i int32) {
	m := &t.memory
	if m.young.leaves == m.most {
		m.young, m.old = m.old, m.young
		m.young.forget()
		m.number++
	}
	if m.young.tree == nil {
		m.young = generation{tree: newTree(t.page), ids: make(idSet, idWords)}
	}
	m.young.leaves++
	m.young.learn(t.beginning(i))
}

// beginning is the text from the root to the end of the part of node i that others may request. It marks all nodes
// above as remembered.
func (t *radix) beginning(i int32) tokenReader {
	m := &t.memory
	n := &t.nodes[i]
	last := tokenReader{runs: n.spans}
	m.spans = appendReversed(m.spans[:0], last.take(t.text[:0], n.common*t.page))
	for k := n.parent; k != root; k = t.nodes[k].parent {
		t.nodes[k].remembered = m.number
		m.spans = appendReversed(m.spans, t.nodes[k].spans)
	}
	slices.Reverse(m.spans)
	return tokenReader{runs: m.spans}
}

// appendReversed appends spans to to, the last one first. Consecutive spans of a segment are merged.
func appendReversed(to, spans []tokenRun) []tokenRun {
	for k := len(spans) - 1; k >= 0; k-- {
		s := spans[k]
		if n := len(to) - 1; n >= 0 && to[n].id == s.id && s.from+s.tokens == to[n].from {
			to[n].from, to[n].tokens = s.from, s.tokens+to[n].tokens
			continue
		}
		to = append(to, s)
	}
	return to
}

// learn adds a text. A text that continues at the end of a leaf makes the leaf longer.
func (g *generation) learn(text tokenReader) {
	t := g.tree
	i, left := int32(root), text.tokens()
	for {
		next, ok := t.children[below(i, text.page(t.page))]
		if !ok {
			t.grow(i, text, left/t.page)
			break
		}
		common := text.skipCommon(t.nodes[next].spans, t.page)
		if left -= common; left == 0 || common == 0 {
			return // it is known, or has the hash of another one
		}
		i = next
		if blocks := common / t.page; blocks < t.nodes[i].blocks {
			t.grow(t.split(i, blocks), text, left/t.page)
			break
		}
		if n := &t.nodes[i]; n.children == 0 {
			n.blocks += left / t.page
			n.spans = join(n.spans, text)
			break
		}
	}
	for _, s := range text.runs {
		g.ids.add(s.id)
	}
}

// join appends the rest of a walk to spans.
func join(spans []tokenRun, rest tokenReader) []tokenRun {
	s, last := rest.next(), &spans[len(spans)-1]
	if last.id == s.id && last.from+last.tokens == s.from {
		last.tokens += s.tokens
	} else {
		spans = append(spans, s)
	}
	return append(spans, rest.runs[1:]...)
}

// forget empties the generation, and keeps its memory.
func (g *generation) forget() {
	t := g.tree
	if t == nil {
		return
	}
	clear(t.children)
	clear(g.ids)
	g.leaves, t.unused = 0, t.unused[:0]
	for i := len(t.nodes) - 1; i > root; i-- {
		t.unused = append(t.unused, int32(i))
	}
	t.nodes[root].children = 0
}

// Lost is the number of blocks after p, the match of text, that would have been found too but for evictions, at most
// limit tokens with those before: of at least the last [RememberedLeaves] leaves. Others may request the first common
// tokens; p caches what the memory has of them.
func (t *radix) Lost(p *treePrefix, text []workload.Segment, limit, common int32) int {
	m := &t.memory
	limit = min(limit, common) / t.page
	position := int32(p.Blocks) * t.page
	if m.young.tree == nil || int32(p.Blocks) >= limit {
		return 0
	}
	var next uint64 // the segment that continues there
	for _, s := range text {
		if next = s.ID; position < s.Tokens {
			break
		}
		position -= s.Tokens
	}
	seen := int32(0)
	if m.young.ids.has(next) {
		seen = m.young.tree.peek(t.cut(text, 0, common/t.page*t.page))
		p.generation, p.seen = m.number, seen
	}
	if m.old.ids.has(next) {
		seen = max(seen, m.old.tree.peek(t.cut(text, 0, limit*t.page)))
	}
	return max(0, int(min(seen, limit))-p.Blocks)
}

// idSet is a set of identities, which are hashes. It may contain some that were not added, but never misses one.
type idSet []uint64

const idWords = 1 << 12

func (s idSet) add(id uint64) { s[id>>6%idWords] |= 1 << (id % 64) }

func (s idSet) has(id uint64) bool { return s != nil && s[id>>6%idWords]>>(id%64)&1 != 0 }
