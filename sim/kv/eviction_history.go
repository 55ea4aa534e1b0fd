package kv

import "math/bits"

// RememberedEvictions is the least number of evicted blocks that a pool with hashed blocks remembers, by their keys;
// the most is about twice that. It takes 2 MB if texts are long, and 50 MB if no two keys are neighbours. For a radix
// cache see [RememberedLeaves].
const RememberedEvictions = 1 << 19

// evictionHistory is a set of recently evicted keys. It has two generations: when the young one is full, it becomes the
// old one, whose keys are forgotten. Both are in one hash table: 64 keys, which are hashes, that differ only in their
// last bits share an entry.
//
// The table is larger than the processor's caches, so that nearly every access to an entry misses them. Evicted keys
// are therefore added in batches, so that the accesses of a batch overlap.
type evictionHistory struct {
	entries []historyEntry // a power of two of them, at least a quarter empty
	used    int
	n       int // keys of the young generation
	most    int // number of keys at which it is full
	batch   []historyEntry
}

// batchSize is the number of entries that are added at a time.
const batchSize = 32

// historyEntry is a set of keys with equal high bits, one bit for each key.
type historyEntry struct {
	high       uint64
	young, old uint64
}

const (
	runBits = 6
	runSize = 1 << runBits
)

func (r *historyEntry) empty() bool { return r.young|r.old == 0 }

func (g *evictionHistory) init(most int) {
	*g = evictionHistory{most: most, entries: make([]historyEntry, 4*batchSize),
		batch: make([]historyEntry, 0, batchSize)}
}

// add adds the keys of a group of the index that have a bit in ats.
func (g *evictionHistory) add(group uint64, ats uint8) {
	high, keys := group>>(runBits-groupBits), uint64(ats)<<(group<<groupBits%runSize)
	n := len(g.batch)
	if n > 0 && g.batch[n-1].high == high {
		g.batch[n-1].young |= keys
		return
	}
	if n == cap(g.batch) {
		g.enter()
	}
	g.batch = append(g.batch, historyEntry{high: high, young: keys})
}

// enter adds the batch to the table.
func (g *evictionHistory) enter() {
	if g.n >= g.most {
		g.age()
	}
	if 4*(g.used+batchSize) > 3*len(g.entries) {
		g.grow()
	}
	var first [batchSize]uint64 // the content of the first place of each entry
	for i := range g.batch {
		first[i] = g.entries[g.home(g.batch[i].high)].high
	}
	for i := range g.batch {
		from := &g.batch[i]
		to := &g.entries[g.home(from.high)]
		if first[i] != from.high || to.high != from.high || to.empty() {
			to = &g.entries[g.place(from.high)]
		}
		if to.empty() {
			to.high = from.high
			g.used++
		}
		before := to.young
		to.young |= from.young
		g.n += bits.OnesCount64(to.young ^ before)
	}
	g.batch = g.batch[:0]
}

// run returns a bit for each key with these high bits.
func (g *evictionHistory) run(high uint64) uint64 {
	r := &g.entries[g.place(high)]
	keys := r.young | r.old
	for i := range g.batch {
		if g.batch[i].high == high {
			keys |= g.batch[i].young
		}
	}
	return keys
}

// none reports whether nothing was evicted yet.
func (g *evictionHistory) none() bool { return g.used+len(g.batch) == 0 }

func (g *evictionHistory) home(high uint64) int { return int(uint32(high)) & (len(g.entries) - 1) }

// place is the place of the entry for high bits, or the free one for it.
func (g *evictionHistory) place(high uint64) int {
	i := g.home(high)
	for r := &g.entries[i]; r.high != high && !r.empty(); r = &g.entries[i] {
		i = (i + 1) & (len(g.entries) - 1)
	}
	return i
}

// age makes the young generation the old one.
func (g *evictionHistory) age() {
	// After an empty entry, every entry that stays finds a place that was emptied before it, or its own.
	from := 0
	for !g.entries[from].empty() {
		from++
	}
	mask := len(g.entries) - 1
	g.n, g.used = 0, 0
	for k := range g.entries {
		r := &g.entries[(from+k)&mask]
		kept := historyEntry{high: r.high, old: r.young}
		*r = historyEntry{}
		g.keep(kept)
	}
}

// grow doubles the table.
func (g *evictionHistory) grow() {
	all := g.entries
	g.entries, g.used = make([]historyEntry, 2*len(all)), 0
	for _, r := range all {
		g.keep(r)
	}
}

// keep adds an entry, unless it is empty.
func (g *evictionHistory) keep(r historyEntry) {
	if !r.empty() {
		g.entries[g.place(r.high)] = r
		g.used++
	}
}
