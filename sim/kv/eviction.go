package kv

// Eviction is a rule by which a [Tier] outside the pool makes room. Blocks of a [Pool] are evicted in the order of its
// free list (freelist.go), and leaves of a radix tree by [LeafOrder].
type Eviction uint8

// The rules.
const (
	LRU Eviction = iota
	ARC
)

// evictions holds the names of the rules in scenarios, and how each is made for a tier.
var evictions = [...]struct {
	name string
	of   func(t *Tier) evictor
}{
	LRU: {"lru", func(t *Tier) evictor { return lru{t} }},
	ARC: {"arc", func(t *Tier) evictor { return &arc{Tier: t} }},
}

// evictor is a rule of one tier. It keeps the chunks in the lists of the tier.
type evictor interface {
	// use notes a use of the chunk at a node.
	use(node int32)
	// put enters a chunk that is not in the tier, and returns the one that it evicts.
	put(key uint64) (gone uint64, evicted bool)
}

// Evictions lists the rules.
func Evictions() []Eviction {
	all := make([]Eviction, len(evictions))
	for i := range all {
		all[i] = Eviction(i)
	}
	return all
}

// String is the rule as scenarios name it.
func (e Eviction) String() string { return evictions[e].name }

// lru evicts the least recently used chunk. The recent list holds all chunks, from the least recently used one.
type lru struct{ *Tier }

func (t lru) use(node int32) { t.move(node, recent) }

func (t lru) put(key uint64) (gone uint64, evicted bool) {
	if t.length[recent] == t.capacity {
		gone, evicted = t.drop(recent), true
	}
	t.add(key, recent)
	return gone, evicted
}
