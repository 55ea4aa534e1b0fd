package kv

// Tier is a store of KV chunks outside the pool, in host memory, on a disk or remote: which chunks it holds, by the
// keys of their content, and which it evicts when it is full.
type Tier struct {
	capacity int
	rule     evictor
	nodes    []chunk // node k < lists is the end of list k
	vacant   []int32
	place    map[uint64]int32
	length   [lists]int
	epoch    uint64
}

// The lists of a tier. Ghosts are keys of recently evicted chunks.
const (
	recent = iota
	frequent
	recentGhosts
	frequentGhosts
	lists
)

// chunk is a node of a list. next leads from the end of the list to its least recently used chunk, and on to newer
// ones.
type chunk struct {
	key        uint64
	prev, next int32
	list       int32
}

// NewTier returns an empty tier with room for this many chunks, at least 1.
func NewTier(capacity int, rule Eviction) *Tier {
	t := &Tier{capacity: capacity, place: make(map[uint64]int32)}
	t.rule = evictions[rule].of(t)
	for k := range int32(lists) {
		t.nodes = append(t.nodes, chunk{prev: k, next: k, list: k})
	}
	return t
}

func (t *Tier) Len() int { return t.length[recent] + t.length[frequent] }

// Epoch changes whenever chunks are added or removed.
func (t *Tier) Epoch() uint64 { return t.epoch }

// Has reports whether a chunk is in the tier. It does not count as a use.
func (t *Tier) Has(key uint64) bool {
	i, ok := t.place[key]
	return ok && t.nodes[i].list <= frequent
}

// Use notes a use of a chunk that is in the tier.
func (t *Tier) Use(key uint64) { t.rule.use(t.place[key]) }

// Put adds a chunk that is not in the tier. If there is no room, it evicts another one.
func (t *Tier) Put(key uint64) (gone uint64, evicted bool) {
	t.epoch++
	return t.rule.put(key)
}

// add adds a chunk at the recently used end of a list.
func (t *Tier) add(key uint64, list int32) {
	i := int32(len(t.nodes))
	if n := len(t.vacant); n > 0 {
		i, t.vacant = t.vacant[n-1], t.vacant[:n-1]
		t.nodes[i] = chunk{key: key}
	} else {
		t.nodes = append(t.nodes, chunk{key: key})
	}
	t.place[key] = i
	t.link(i, list)
}

// drop removes the least recently used chunk of a list.
func (t *Tier) drop(list int32) (key uint64) {
	i := t.nodes[list].next
	t.unlink(i)
	key = t.nodes[i].key
	delete(t.place, key)
	t.vacant = append(t.vacant, i)
	return key
}

// move takes node i to the recently used end of a list.
func (t *Tier) move(i, list int32) {
	t.unlink(i)
	t.link(i, list)
}

func (t *Tier) link(i, list int32) {
	last := t.nodes[list].prev
	t.nodes[i].prev, t.nodes[i].next, t.nodes[i].list = last, list, list
	t.nodes[last].next, t.nodes[list].prev = i, i
	t.length[list]++
}

func (t *Tier) unlink(i int32) {
	c := &t.nodes[i]
	t.nodes[c.prev].next, t.nodes[c.next].prev = c.next, c.prev
	t.length[c.list]--
}
