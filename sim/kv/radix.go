package kv

import "clifftop/workload"

// radix is the KV pool and prefix cache of SGLang: a radix tree over the tokens of sequences.
//
// Every block of the pool is available, private or in the tree. Private blocks belong to a running sequence, which took
// them ([radix.Owe]) and returns them ([radix.Put]). [radix.Insert] moves blocks of a sequence into the tree, from
// which only eviction makes them available again. A block holds the pool's page of tokens, and the tree has only whole
// pages. Blocks have no identity: the tree counts them.
//
// A node of the tree is the tokens between two forks, as the segments that they come from. A running sequence locks the
// path to the last node of its prefix. Nodes without locks can be evicted: leaves first, in [radix.Order], and always a
// whole leaf. A match or an insertion refreshes all nodes on its path, and splits the last one.
//
// A sequence calls [radix.Match] and [radix.Lock] at admission, Owe as tokens are scheduled, [radix.Insert] when a
// prefill chunk has been computed and again at the end, for what later turns may repeat; at the end or at a preemption
// Put for its private blocks, and [radix.Unlock].
//
// Evicted leaves are remembered for a while, so that [radix.Lost] can distinguish them from text that was never cached.
//
// All operations cost O(segments + nodes of the path), independent of the number of tokens; evictions cost O(log
// leaves) each.
type radix struct {
	Order LeafOrder // of evictions, set before the first use

	usable, available, evictable int
	shared                       int64
	page                         int32
	clock, births                uint64
	nodes                        []node
	unused                       []int32        // places in nodes
	children                     map[fork]int32 // by fork
	leaves                       []int32        // evictable leaves: a heap in Order
	text                         []tokenRun     // scratch
	memory                       memory         // of evicted leaves
	tell                         func(Change)
}

// root is the empty prefix. It is never evicted.
const root = 0

// node is an inner node or a leaf of the tree.
type node struct {
	parent, children int32
	refs             int32  // sequences that lock it
	blocks           int32  // length
	place            int32  // among the leaves, or -1
	common           int32  // number of its first blocks that others may request
	remembered       uint32 // by this generation of the memory, if it is evicted
	hits             uint32 // insertions that count
	priority         int32
	matched          uint64 // when it was last matched
	birth            uint64 // orders nodes that were matched at once
	seat             int32  // identifies it; of the children of a node, the one that was added first has the least
	at               fork
	spans            []tokenRun
}

// fork is the place of a node: a hash of its parent and of its first page.
type fork uint64

// below is the fork of a node with a first page below node i.
func below(i int32, page uint64) fork { return fork(page + uint64(i)*0x9e3779b97f4a7c15) }

// tokenRun is a run of tokens of one segment.
type tokenRun struct {
	id           uint64
	from, tokens int32
}

// treePrefix is a path from the root of the tree, as found by [radix.Match] or locked by a sequence. The
// zero treePrefix is the empty one. An unlocked one is valid until blocks are taken.
type treePrefix struct {
	node int32
	// Blocks is its length, and Held how many of them were locked when it was matched, so that
	// locking them takes nothing from the evictable ones.
	Blocks, Held int
	// The generation of the memory that was asked last, and the number of blocks of the text that it has.
	generation uint32
	seen       int32
}

// newRadix returns a pool of usable blocks of a size in tokens, and an empty tree.
func newRadix(usable int, blockSize int32) *radix {
	t := newTree(blockSize)
	t.usable, t.available = usable, usable
	t.memory = memory{most: RememberedLeaves, number: 1}
	return t
}

func newTree(page int32) *radix {
	return &radix{page: page, nodes: make([]node, 1, 64), children: make(map[fork]int32)}
}

// Usable is the number of blocks of the pool.
func (t *radix) Usable() int { return t.usable }

// Available is the number of blocks without an owner, less the blocks owed ([radix.Owe]); Evictable is the number of
// blocks in the tree without a lock.
func (t *radix) Available() int { return t.available }

// Evictable is described at [radix.Available].
func (t *radix) Evictable() int { return t.evictable }

// Free is the number of blocks that can be taken: available and evictable ones.
func (t *radix) Free() int { return t.available + t.evictable }

// Shared is the number of references to blocks beyond the first of each: Σ max(0, locks-1).
func (t *radix) Shared() int64 { return t.shared }

// Epoch changes whenever the result or the effect of a match may change. A match that is repeated in the same epoch has
// the same result and does not change the order of eviction.
func (t *radix) Epoch() uint64 { return t.clock }

// Take takes n private blocks, which must be free, and evicts leaves as needed.
func (t *radix) Take(n int) {
	t.Owe(n)
	t.Cover()
}

// Owe takes n private blocks, which must be free. The number of available blocks may become negative until
// [radix.Evict] or [radix.Cover] evict leaves.
func (t *radix) Owe(n int) { t.available -= n }

// Cover evicts leaves until the number of available blocks is not negative.
func (t *radix) Cover() {
	for t.available < 0 && len(t.leaves) > 0 {
		t.evict()
	}
}

// Evict evicts leaves until it has freed n blocks or more, or there is none left, and returns how many it has freed.
func (t *radix) Evict(n int) (freed int) {
	before := t.available
	for t.available-before < n && len(t.leaves) > 0 {
		t.evict()
	}
	return t.available - before
}

// Put returns n private blocks.
func (t *radix) Put(n int) { t.available += n }

// Match returns the longest prefix of text that the tree holds, of at most limit tokens. The limit of a request is one
// less than its known tokens, since one must be computed.
func (t *radix) Match(text []workload.Segment, limit int32) treePrefix {
	rest := t.cut(text, 0, limit/t.page*t.page)
	t.clock++
	p, _ := t.descend(treePrefix{}, &rest, nil)
	return p
}

// Peek is the number of blocks that [radix.Match] would find. It refreshes no node.
func (t *radix) Peek(text []workload.Segment, limit int32) int {
	return int(t.peek(t.cut(text, 0, limit/t.page*t.page)))
}

// peek is how many of the blocks of rest the tree holds.
func (t *radix) peek(rest tokenReader) int32 {
	at, blocks, most := int32(root), int32(0), rest.tokens()/t.page
	for blocks < most {
		i, ok := t.children[below(at, rest.page(t.page))]
		if !ok {
			break
		}
		common := rest.skipCommon(t.nodes[i].spans, t.page) / t.page
		blocks += common
		if common < t.nodes[i].blocks {
			break
		}
		at = i
	}
	return blocks
}

// Lock protects the path of p from eviction. Unlock removes one such protection.
func (t *radix) Lock(p treePrefix) {
	t.clock++
	for i := p.node; i != root; i = t.nodes[i].parent {
		n := &t.nodes[i]
		if n.refs == 0 {
			t.evictable -= int(n.blocks)
			t.dropLeaf(i)
		} else {
			t.shared += int64(n.blocks)
		}
		n.refs++
	}
}

// Unlock is described at [radix.Lock].
func (t *radix) Unlock(p treePrefix) {
	t.clock++
	for i := p.node; i != root; i = t.nodes[i].parent {
		n := &t.nodes[i]
		n.refs--
		if n.refs > 0 {
			t.shared -= int64(n.blocks)
			continue
		}
		t.evictable += int(n.blocks)
		t.offerLeaf(i)
	}
}

// treeEntry is an insertion into the tree.
type treeEntry struct {
	// Tokens is the number of tokens that are added. Other sequences may begin with at most the first Common of them:
	// these are remembered if they are evicted.
	Tokens, Common int32
	// Counts means that the insertion is a hit for [FewestHits] and [OneHitFirst].
	Counts bool
	// Priority is that of the request for [LowestPriority]; a higher one is evicted later.
	Priority int32
}

// Insert adds the first tokens of text, which a sequence that holds p locked has computed. The sequence's private
// blocks of the full pages after p move into the tree or, where the tree has them already, become available. It returns
// the longer prefix, which the sequence now holds locked instead of p; blocks of the sequence beyond it stay private.
func (t *radix) Insert(p treePrefix, text []workload.Segment, e treeEntry) treePrefix {
	t.clock++
	for i := p.node; i != root; i = t.nodes[i].parent {
		t.touch(i)
		t.count(i, &e)
	}
	whole, common := e.Tokens/t.page*t.page, e.Common
	rest := t.cut(text, int32(p.Blocks)*t.page, whole)
	long, left := t.descend(p, &rest, &e)
	t.available += long.Blocks - p.Blocks // duplicates
	if left > 0 {
		long.node = t.grow(long.node, rest, left/t.page)
		t.nodes[long.node].priority = e.Priority
		t.count(long.node, &e)
		t.nodes[long.node].common = min(max(common/t.page-int32(long.Blocks), 0), left/t.page)
		long.Blocks += int(left / t.page)
		if long.generation == t.memory.number && min(int32(long.Blocks), common/t.page) <= long.seen {
			t.nodes[long.node].remembered = long.generation
		}
		t.evictable += int(left / t.page)
		t.offerLeaf(long.node)
		if t.tell != nil {
			t.tellNode(long.node, true)
		}
	}
	if long.node != p.node {
		t.Lock(long)
		t.Unlock(p)
	}
	return long
}

// Path appends to to the nodes of p from the root down, without the root. Their numbers identify nodes until the tree
// changes. Of the children of a node, those that were added earlier have lower numbers.
func (t *radix) Path(p treePrefix, to []int32) []int32 {
	first := len(to)
	for i := p.node; i != root; i = t.nodes[i].parent {
		to = append(to, t.nodes[i].seat)
	}
	for i, j := first, len(to)-1; i < j; i, j = i+1, j-1 {
		to[i], to[j] = to[j], to[i]
	}
	return to
}

// descend follows rest from the end of p as far as the tree matches, splits the last node, and refreshes the nodes on
// the path. It counts e, if there is one, for these nodes, but not for the lower part of one that it splits. It returns
// the prefix so far and how many tokens remain.
func (t *radix) descend(p treePrefix, rest *tokenReader, e *treeEntry) (treePrefix, int32) {
	left := rest.tokens() / t.page * t.page
	for left > 0 {
		i, ok := t.children[below(p.node, rest.page(t.page))]
		if !ok {
			break
		}
		common := rest.skipCommon(t.nodes[i].spans, t.page)
		if common == 0 {
			break // another text with the same hash
		}
		left -= common
		t.touch(i)
		blocks := common / t.page
		if blocks < t.nodes[i].blocks {
			i = t.split(i, blocks)
		}
		if e != nil {
			t.count(i, e)
		}
		p.node = i
		p.Blocks += int(blocks)
		if t.nodes[i].refs > 0 {
			p.Held += int(blocks)
		}
		if t.nodes[i].children == 0 {
			break
		}
	}
	return p, left
}

// split moves the first blocks of node i to a new node above it, which it returns. Node i keeps its number and the
// rest, so that locked paths to it stay valid.
func (t *radix) split(i, blocks int32) int32 {
	up := t.newNode()
	n, u := &t.nodes[i], &t.nodes[up]
	u.parent, u.children, u.refs, u.blocks = n.parent, 1, n.refs, blocks
	u.common, u.remembered = min(n.common, blocks), n.remembered
	u.hits, u.priority = n.hits, n.priority
	u.matched, u.at = n.matched, n.at
	u.seat, n.seat = n.seat, u.seat // the upper node takes the place among the children
	rest := tokenReader{runs: n.spans}
	u.spans = rest.take(u.spans, blocks*t.page)
	n.spans = append(n.spans[:0], rest.rest()...)
	n.parent = up
	n.blocks -= blocks
	n.common -= u.common
	n.at = below(up, tokenReader{runs: n.spans}.page(t.page))
	t.children[u.at] = up
	t.children[n.at] = i
	return up
}

// grow adds a leaf for the rest of a text, with its number of blocks, below node i.
func (t *radix) grow(i int32, rest tokenReader, blocks int32) int32 {
	leaf := t.newNode()
	n := &t.nodes[leaf]
	n.parent, n.children, n.refs, n.blocks, n.common, n.remembered = i, 0, 0, blocks, 0, 0
	n.matched, n.hits = t.clock, 0
	n.at = below(i, rest.page(t.page))
	n.spans = rest.take(n.spans, blocks*t.page)
	t.children[n.at] = leaf
	t.nodes[i].children++
	t.dropLeaf(i)
	return leaf
}

func (t *radix) newNode() int32 {
	i := int32(len(t.nodes))
	if k := len(t.unused); k > 0 {
		i = t.unused[k-1]
		t.unused = t.unused[:k-1]
	} else {
		t.nodes = append(t.nodes, node{})
	}
	n := &t.nodes[i]
	t.births++
	n.birth, n.seat, n.place, n.spans = t.births, int32(t.births), -1, n.spans[:0]
	return i
}

// evict evicts the first leaf.
func (t *radix) evict() {
	i := t.leaves[0]
	t.dropLeaf(i)
	t.clock++
	n := &t.nodes[i]
	if n.common > 0 && n.remembered != t.memory.number {
		t.remember(i)
	}
	if t.tell != nil {
		t.tellNode(i, false)
	}
	t.available += int(n.blocks)
	t.evictable -= int(n.blocks)
	if t.children[n.at] == i {
		delete(t.children, n.at)
	}
	t.nodes[n.parent].children--
	t.offerLeaf(n.parent)
	t.unused = append(t.unused, i)
}
