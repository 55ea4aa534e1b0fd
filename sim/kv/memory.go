package kv

import (
	"slices"

	"clifftop/workload"
)

// RememberedLeaves is the number of evicted leaves, of text that others may ask for, that a radix cache remembers at
// least. It forgets the older ones before it remembers twice as many.
const RememberedLeaves = 1 << 14

// memory is what was evicted of a radix tree lately, in two generations: when the young one is full, it takes the place
// of the old one, which is forgotten.
//
// A generation is a tree that is never evicted from, of the texts of evicted leaves from the root on. So what is above
// such a leaf is in it too, though it may not have been evicted. It takes part in nothing: as long as it is in the
// cache nobody asks for it here, and when it is evicted itself, later than the leaf, it is there already.
type memory struct {
	young, old generation
	number     uint32     // of the young one, from 1 on
	most       int        // leaves that either may have
	spans      []tokenRun // scratch
}

type generation struct {
	tree   *Radix // nil for none
	leaves int    // learnt
	ids    idSet  // of all segments in it, and of others
}

// remember notes that leaf i is evicted, of which the young generation does not know.
func (t *Radix) remember(i int32) {
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

// beginning is the text from the root to the end of what others may ask for of node i, and notes that all above it is
// remembered with it.
func (t *Radix) beginning(i int32) tokenReader {
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

// appendReversed appends spans to to, the last one first. Those that follow each other in a segment become one.
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

// learn enters a text. What goes on where a leaf ends makes the leaf longer.
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
			return // it is known, or hides behind another one of the same hash
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

// join appends what is left to walk to spans.
func join(spans []tokenRun, rest tokenReader) []tokenRun {
	s, last := rest.next(), &spans[len(spans)-1]
	if last.id == s.id && last.from+last.tokens == s.from {
		last.tokens += s.tokens
	} else {
		spans = append(spans, s)
	}
	return append(spans, rest.runs[1:]...)
}

// forget empties the generation, and keeps its room.
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

// Lost is how many blocks that follow p, the match of text, would have been found too but for evictions, of at most
// limit tokens with those before: of the last [RememberedLeaves] leaves at least. Others may ask for the first common
// tokens; what of them is remembered is noted in p.
func (t *Radix) Lost(p *Prefix, text []workload.Segment, limit, common int32) int {
	m := &t.memory
	limit = min(limit, common) / t.page
	position := int32(p.Blocks) * t.page
	if m.young.tree == nil || int32(p.Blocks) >= limit {
		return 0
	}
	var next uint64 // the segment that goes on there
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

// idSet is a set of identities, which are hashes, that may know one that it was not given, but not the other way round.
type idSet []uint64

const idWords = 1 << 12

func (s idSet) add(id uint64) { s[id>>6%idWords] |= 1 << (id % 64) }

func (s idSet) has(id uint64) bool { return s != nil && s[id>>6%idWords]>>(id%64)&1 != 0 }
