package naive

import (
	"cmp"
	"slices"

	"clifftop/sim/kv"
	"clifftop/workload"
)

// TokenTree is the definition of the radix cache, [kv.Radix]: the same tree with every token written
// out, and searched as a whole wherever something is looked for.
type TokenTree struct {
	// Page is the number of tokens of a block, Available the number of blocks that are not allocated.
	Page, Available int
	Order           kv.LeafOrder // of evictions
	root            TokenNode
	clock, births   int
	evicted         []eviction
}

// eviction is a leaf that was evicted: all tokens from the root to its end, those of the leaf from one on.
type eviction struct {
	tokens []Token
	from   int
}

// TokenNode is a node of a [TokenTree].
type TokenNode struct {
	parent         *TokenNode
	children       []*TokenNode
	tokens         []Token
	locks          int // sequences whose path goes through it
	hits, priority int
	matched, birth int
	seat           int // identifies it: among the children of a node, the least was added first
}

// Token is the identity of a token that follows known ones.
type Token struct {
	Segment uint64
	Offset  int32
}

// Tokens returns the first n tokens of a request, prompt and output.
func Tokens(r *workload.Request, n int32) []Token {
	var list []Token
	for _, s := range r.Text(nil) {
		for k := range s.Tokens {
			list = append(list, Token{s.ID, k})
		}
	}
	return list[:n]
}

// NewTokenTree returns an empty tree and a number of available blocks.
func NewTokenTree(blocks, page int) *TokenTree { return &TokenTree{Page: page, Available: blocks} }

// Root is the empty prefix.
func (t *TokenTree) Root() *TokenNode { return &t.root }

// Parent is the node above n.
func (n *TokenNode) Parent() *TokenNode { return n.parent }

// Depth is the number of tokens from the root to the end of n, and how many of them are locked.
func (n *TokenNode) Depth() (tokens, held int) {
	for ; n.parent != nil; n = n.parent {
		tokens += len(n.tokens)
		if n.locks > 0 {
			held += len(n.tokens)
		}
	}
	return tokens, held
}

// Match returns the end of the longest prefix of the tokens that the tree holds, in whole pages.
func (t *TokenTree) Match(tokens []Token) *TokenNode {
	t.clock++
	n, _ := t.descend(tokens)
	return n
}

// descend follows the tokens from the root, and returns the last node and the tokens that are left.
func (t *TokenTree) descend(tokens []Token) (*TokenNode, []Token) {
	n := &t.root
	tokens = tokens[:len(tokens)/t.Page*t.Page]
	for {
		i := slices.IndexFunc(n.children, func(c *TokenNode) bool { return t.common(c.tokens, tokens) > 0 })
		if i < 0 {
			return n, tokens
		}
		c := n.children[i]
		c.matched = t.clock
		common := t.common(c.tokens, tokens)
		tokens = tokens[common:]
		if common < len(c.tokens) {
			t.births++
			up := &TokenNode{parent: n, children: []*TokenNode{c}, tokens: c.tokens[:common], locks: c.locks,
				matched: t.clock, birth: t.births, seat: c.seat,
				hits: c.hits, priority: c.priority}
			n.children[i], c.seat = up, t.births // the upper node takes the place among the children
			c.parent, c.tokens = up, c.tokens[common:]
			return up, tokens
		}
		n = c
	}
}

// common is the number of tokens that lead a and b alike, in whole pages.
func (t *TokenTree) common(a, b []Token) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n / t.Page * t.Page
}

// Lock protects the path to n from eviction; Unlock takes one protection back.
func (t *TokenTree) Lock(n *TokenNode) {
	for ; n.parent != nil; n = n.parent {
		n.locks++
	}
}

// Unlock is described at [TokenTree.Lock].
func (t *TokenTree) Unlock(n *TokenNode) {
	for ; n.parent != nil; n = n.parent {
		n.locks--
	}
}

// Insert enters the tokens of a sequence that holds n locked, and returns the node that it holds
// locked instead. It raises the priorities of all nodes from the root to that one, and counts a hit for them.
func (t *TokenTree) Insert(n *TokenNode, tokens []Token, hit bool, priority int) *TokenNode {
	t.clock++
	before, _ := n.Depth()
	end, rest := t.descend(tokens)
	after, _ := end.Depth()
	t.Available += (after - before) / t.Page
	if len(rest) > 0 {
		t.births++
		leaf := &TokenNode{parent: end, tokens: rest, matched: t.clock, birth: t.births, seat: t.births,
			priority: priority}
		end.children = append(end.children, leaf)
		end = leaf
	}
	for x := end; x.parent != nil; x = x.parent {
		x.priority = max(x.priority, priority)
		if hit {
			x.hits++
		}
	}
	t.Lock(end)
	t.Unlock(n)
	return end
}

// Take takes blocks that the tree then owns no longer, evicting leaves as long as they are short.
func (t *TokenTree) Take(blocks int) {
	t.Available -= blocks
	t.Cover()
}

// Cover evicts leaves until no blocks are owed.
func (t *TokenTree) Cover() {
	for t.Available < 0 {
		t.evictOne()
	}
}

// Evict evicts leaves until that has freed so many blocks, or there is none left.
func (t *TokenTree) Evict(blocks int) {
	for until := t.Available + blocks; t.Available < until && t.evictOne(); {
	}
}

// evictOne evicts a leaf, if there is one.
func (t *TokenTree) evictOne() bool {
	leaf := t.next(&t.root)
	if leaf == nil {
		return false
	}
	t.evicted = append(t.evicted, eviction{leaf.path(), len(leaf.parent.path())})
	leaf.parent.children = slices.DeleteFunc(leaf.parent.children, func(n *TokenNode) bool { return n == leaf })
	t.Available += len(leaf.tokens) / t.Page
	return true
}

// path is all tokens from the root to the end of n.
func (n *TokenNode) path() (list []Token) {
	for ; n.parent != nil; n = n.parent {
		list = append(slices.Clone(n.tokens), list...)
	}
	return list
}

// Lost is up to where a match of the tokens would go but for evictions, in whole pages, and from where on. It refreshes
// nothing.
func (t *TokenTree) Lost(tokens []Token) (from, to int) {
	for n := &t.root; n != nil; {
		var next *TokenNode
		for _, c := range n.children {
			if common := t.common(c.tokens, tokens[from:]); common > 0 {
				if from += common; common == len(c.tokens) {
					next = c
				}
				break
			}
		}
		n = next
	}
	for to = from; to+t.Page <= len(tokens) && t.wasEvicted(tokens[:to+t.Page]); {
		to += t.Page
	}
	return from, to
}

// wasEvicted reports whether the last page of the tokens was in a leaf that was evicted.
func (t *TokenTree) wasEvicted(tokens []Token) bool {
	last := len(tokens) - t.Page
	return slices.ContainsFunc(t.evicted, func(e eviction) bool {
		return e.from <= last && len(e.tokens) >= len(tokens) && slices.Equal(e.tokens[:len(tokens)], tokens)
	})
}

// Put returns blocks.
func (t *TokenTree) Put(blocks int) { t.Available += blocks }

// next is the unlocked leaf below n that is evicted next.
func (t *TokenTree) next(n *TokenNode) *TokenNode {
	if n.locks > 0 && len(n.children) == 0 {
		return nil
	}
	if len(n.children) == 0 && n.parent != nil {
		return n
	}
	var first *TokenNode
	for _, c := range n.children {
		if leaf := t.next(c); leaf != nil && (first == nil || t.before(leaf, first)) {
			first = leaf
		}
	}
	return first
}

// before reports whether leaf a is evicted before leaf b.
func (t *TokenTree) before(a, b *TokenNode) bool {
	byAge, byMatch := cmp.Compare(a.birth, b.birth), cmp.Compare(a.matched, b.matched)
	byHits, byPriority := cmp.Compare(a.hits, b.hits), cmp.Compare(a.priority, b.priority)
	bySegment := cmp.Compare(min(a.hits/2, 1), min(b.hits/2, 1))
	return [...]int{
		kv.LeastRecent: cmp.Or(byMatch, byAge), kv.FirstAdded: byAge,
		kv.MostRecent: -cmp.Or(byMatch, byAge), kv.LastAdded: -byAge,
		kv.FewestHits: cmp.Or(byHits, byMatch, byAge), kv.OneHitFirst: cmp.Or(bySegment, byMatch, byAge),
		kv.LowestPriority: cmp.Or(byPriority, byMatch, byAge),
	}[t.Order] < 0
}

// Count returns the blocks of the tree that can be evicted, those that cannot, and the
// references to these beyond the first of each.
func (t *TokenTree) Count() (evictable, locked, shared int) { return t.root.count(t.Page) }

func (n *TokenNode) count(page int) (evictable, locked, shared int) {
	blocks := len(n.tokens) / page
	if n.locks == 0 {
		evictable = blocks
	} else {
		locked, shared = blocks, (n.locks-1)*blocks
	}
	for _, c := range n.children {
		e, l, s := c.count(page)
		evictable, locked, shared = evictable+e, locked+l, shared+s
	}
	return evictable, locked, shared
}
