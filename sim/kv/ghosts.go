package kv

// RememberedEvictions is the number of evicted blocks that a pool with hashed blocks remembers at least, by their keys. It forgets
// the older ones before it remembers twice as many. That takes 2 MB where texts are long, and 32 MB if all keys are far from each
// other. What a radix cache remembers is [RememberedLeaves].
const RememberedEvictions = 1 << 19

// ghosts is a set of keys that were evicted lately. It has two generations: when the young one is full, it takes the
// place of the old one, which is forgotten.
type ghosts struct {
	young, old keySet
	most       int // keys of a generation
}

func (g *ghosts) add(key uint64) {
	if g.young.n == g.most {
		g.young, g.old = g.old, g.young
		g.young.clear()
	}
	g.young.add(key)
}

func (g *ghosts) has(key uint64) bool { return g.young.has(key) || g.old.has(key) }

func (g *ghosts) empty() bool { return g.young.n+g.old.n == 0 }

// keySet is a hash table of keys, which are hashes: 64 of them that differ in their last bits are an entry.
type keySet struct {
	entries []run // as many as a power of two, at least a quarter of them empty
	used    int
	last    int // the entry come to last, where the next key mostly is
	n       int // keys
}

// run is the keys of the same high bits.
type run struct {
	high uint64
	low  uint64 // a bit for each; 0 in an empty entry
}

const runBits = 6

func (s *keySet) clear() {
	clear(s.entries)
	s.used, s.n = 0, 0
}

// entry is where the keys of high bits stand, or where they would.
func (s *keySet) entry(high uint64) *run {
	if e := &s.entries[s.last]; e.high == high && e.low != 0 {
		return e
	}
	mask := len(s.entries) - 1
	for i := int(uint32(high)) & mask; ; i = (i + 1) & mask {
		if e := &s.entries[i]; e.high == high || e.low == 0 {
			s.last = i
			return e
		}
	}
}

func (s *keySet) has(key uint64) bool {
	return s.n > 0 && s.entry(key>>runBits).low>>(key%(1<<runBits))&1 != 0
}

func (s *keySet) add(key uint64) {
	if 4*s.used >= 3*len(s.entries) {
		s.grow()
	}
	e := s.entry(key >> runBits)
	if e.low == 0 {
		e.high = key >> runBits
		s.used++
	}
	if bit := uint64(1) << (key % (1 << runBits)); e.low&bit == 0 {
		e.low |= bit
		s.n++
	}
}

// grow doubles the table.
func (s *keySet) grow() {
	old := s.entries
	s.entries, s.last = make([]run, max(64, 2*len(old))), 0
	for _, e := range old {
		if e.low != 0 {
			*s.entry(e.high) = e
		}
	}
}
