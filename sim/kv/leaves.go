package kv

// LeafOrder is the order in which a radix tree evicts leaves (SGLang's radix_eviction_policy,
// mem_cache/evict_policy.py).
type LeafOrder uint8

// The orders: the least recently matched leaf first (lru), the first one that was added (fifo), the most recently
// matched one (mru), the last one that was added (filo), the one with the fewest hits (lfu), those with one hit at most
// before the others (slru), and the one with the lowest priority (priority). A leaf that is split was added at that
// time with its upper part; the lower part keeps its age. Of equal leaves the least recently matched one is first.
//
// SGLang counts hits since March 2026. A hit is an insertion at the end of a prefill or of a request that goes through
// the node or adds it; a match is none. The upper part of a leaf that is split has the hits and the priority of the
// leaf. The priority of a node is the highest among the requests whose insertions went through it or added it.
const (
	LeastRecent LeafOrder = iota
	FirstAdded
	MostRecent
	LastAdded
	FewestHits
	OneHitFirst
	LowestPriority
)

// LeafOrders lists the orders.
func LeafOrders() []LeafOrder {
	return []LeafOrder{LeastRecent, FirstAdded, MostRecent, LastAdded, FewestHits, OneHitFirst, LowestPriority}
}

// String returns SGLang's name for the order.
func (o LeafOrder) String() string {
	return [...]string{"lru", "fifo", "mru", "filo", "lfu", "slru", "priority"}[o]
}

// protectedHits is the number of hits from which [OneHitFirst] protects a leaf.
const protectedHits = 2

// The evictable leaves of a radix tree are a binary heap of node numbers with the one that is evicted next first. Each
// node has its place, so that a match can move it.

// offerLeaf adds node i if it is a leaf without locks.
func (t *radix) offerLeaf(i int32) {
	if n := &t.nodes[i]; i != root && n.children == 0 && n.refs == 0 && n.place < 0 {
		n.place = int32(len(t.leaves))
		t.leaves = append(t.leaves, i)
		t.rise(n.place)
	}
}

// dropLeaf removes node i if it is there.
func (t *radix) dropLeaf(i int32) {
	at := t.nodes[i].place
	if i == root || at < 0 {
		return
	}
	t.nodes[i].place = -1
	last := int32(len(t.leaves) - 1)
	moved := t.leaves[last]
	t.leaves = t.leaves[:last]
	if at == last {
		return
	}
	t.leaves[at] = moved
	t.nodes[moved].place = at
	t.rise(at)
	t.sink(t.nodes[moved].place)
}

// touch notes that node i was matched now.
func (t *radix) touch(i int32) {
	n := &t.nodes[i]
	n.matched = t.clock
	t.reorder(i)
}

// count notes that an insertion went through node i, or added it.
func (t *radix) count(i int32, e *treeEntry) {
	n := &t.nodes[i]
	if e.Counts {
		n.hits++
	}
	n.priority = max(n.priority, e.Priority)
	t.reorder(i)
}

// reorder moves node i to its place among the leaves, if it is there.
func (t *radix) reorder(i int32) {
	if n := &t.nodes[i]; n.place >= 0 {
		t.rise(n.place)
		t.sink(n.place)
	}
}

// before reports whether node i is evicted before node j.
func (t *radix) before(i, j int32) bool {
	a, b := &t.nodes[i], &t.nodes[j]
	switch t.Order {
	case FirstAdded:
		return a.birth < b.birth
	case LastAdded:
		return a.birth > b.birth
	case MostRecent:
		a, b = b, a
	case FewestHits:
		if a.hits != b.hits {
			return a.hits < b.hits
		}
	case OneHitFirst:
		if once := a.hits < protectedHits; once != (b.hits < protectedHits) {
			return once
		}
	case LowestPriority:
		if a.priority != b.priority {
			return a.priority < b.priority
		}
	}
	if a.matched != b.matched {
		return a.matched < b.matched
	}
	return a.birth < b.birth
}

func (t *radix) rise(at int32) {
	for at > 0 {
		up := (at - 1) / 2
		if !t.before(t.leaves[at], t.leaves[up]) {
			return
		}
		t.swap(at, up)
		at = up
	}
}

func (t *radix) sink(at int32) {
	for {
		down := 2*at + 1
		if down >= int32(len(t.leaves)) {
			return
		}
		if right := down + 1; right < int32(len(t.leaves)) && t.before(t.leaves[right], t.leaves[down]) {
			down = right
		}
		if !t.before(t.leaves[down], t.leaves[at]) {
			return
		}
		t.swap(at, down)
		at = down
	}
}

func (t *radix) swap(a, b int32) {
	t.leaves[a], t.leaves[b] = t.leaves[b], t.leaves[a]
	t.nodes[t.leaves[a]].place = a
	t.nodes[t.leaves[b]].place = b
}
