package kv

// Eviction is a rule by which a [Tier] makes room.
type Eviction uint8

// The rules.
const (
	LRU Eviction = iota // what was used least recently goes
	ARC                 // adaptive replacement: a balance of what was used lately and what is used often
)

// String is the rule as scenarios name it.
func (e Eviction) String() string { return [...]string{"lru", "arc"}[e] }

// Tier is a store of chunks of KV beyond the pool, in host memory, on a disk or elsewhere: who is in it, by the keys of
// their content, and who goes when there is no more room.
//
// With [LRU] the recent list holds all chunks, from the least recently used one. With [ARC] (Megiddo and Modha, FAST
// 2003) it holds those used once and the frequent list those used again, and the lists of ghosts the keys of chunks
// that left each lately; a chunk that comes again while it is a ghost shifts the balance towards the list that lost it.
type Tier struct {
	capacity int
	rule     Eviction
	nodes    []chunk // node k < lists is the end of list k
	vacant   []int32
	place    map[uint64]int32
	length   [lists]int
	target   int // of the recent list
	epoch    uint64
}

// The lists of a tier.
const (
	recent = iota
	frequent
	recentGhosts
	frequentGhosts
	lists
)

// chunk is a node of a list. Next leads from the end to the least recently used one, and on.
type chunk struct {
	key        uint64
	prev, next int32
	list       int32
}

// NewTier returns an empty tier that has room for so many chunks, at least 1.
func NewTier(capacity int, rule Eviction) *Tier {
	t := &Tier{capacity: capacity, rule: rule, place: make(map[uint64]int32)}
	for k := range int32(lists) {
		t.nodes = append(t.nodes, chunk{prev: k, next: k, list: k})
	}
	return t
}

// Len is the number of chunks in the tier.
func (t *Tier) Len() int { return t.length[recent] + t.length[frequent] }

// Epoch changes whenever chunks come or go.
func (t *Tier) Epoch() uint64 { return t.epoch }

// Has reports whether a chunk is in the tier. It is no use of it.
func (t *Tier) Has(key uint64) bool {
	i, ok := t.place[key]
	return ok && t.nodes[i].list <= frequent
}

// Use notes a use of a chunk that is in the tier.
func (t *Tier) Use(key uint64) {
	to := int32(recent)
	if t.rule == ARC {
		to = frequent
	}
	t.move(t.place[key], to)
}

// Put enters a chunk that is not in the tier. Where there is no room another one goes.
func (t *Tier) Put(key uint64) (gone uint64, evicted bool) {
	t.epoch++
	if t.rule == ARC {
		return t.putARC(key)
	}
	if t.length[recent] == t.capacity {
		gone, evicted = t.drop(recent), true
	}
	t.add(key, recent)
	return gone, evicted
}

func (t *Tier) putARC(key uint64) (gone uint64, evicted bool) {
	if i, ok := t.place[key]; ok { // a ghost
		ofRecent, ofFrequent := t.length[recentGhosts], t.length[frequentGhosts]
		fromFrequent := t.nodes[i].list == frequentGhosts
		if fromFrequent {
			t.target = max(0, t.target-max(1, ofRecent/ofFrequent))
		} else {
			t.target = min(t.capacity, t.target+max(1, ofFrequent/ofRecent))
		}
		gone, evicted = t.replace(fromFrequent)
		t.move(i, frequent)
		return gone, evicted
	}
	switch once := t.length[recent] + t.length[recentGhosts]; {
	case once == t.capacity && t.length[recentGhosts] == 0:
		gone, evicted = t.drop(recent), true
	case once == t.capacity:
		t.drop(recentGhosts)
		gone, evicted = t.replace(false)
	case len(t.place) >= t.capacity:
		if len(t.place) == 2*t.capacity {
			t.drop(frequentGhosts)
		}
		gone, evicted = t.replace(false)
	}
	t.add(key, recent)
	return gone, evicted
}

// replace makes a ghost of the chunk that goes next, if the tier is full.
func (t *Tier) replace(fromFrequent bool) (gone uint64, evicted bool) {
	if t.Len() < t.capacity {
		return 0, false
	}
	n, from := t.length[recent], int32(frequent)
	if n > t.target || n > 0 && n == t.target && fromFrequent || t.length[frequent] == 0 {
		from = recent
	}
	i := t.nodes[from].next
	t.move(i, from+recentGhosts)
	return t.nodes[i].key, true
}

// add puts a chunk at the recently used end of a list.
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

// drop forgets the least recently used chunk of a list.
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
