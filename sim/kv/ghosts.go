package kv

// RememberedEvictions is the number of evicted blocks that a pool with hashed blocks remembers at least, by their keys,
// which take 16 MB at most. It forgets the older ones before it remembers twice as many. A radix cache remembers none.
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

// keySet is a hash table of keys. The keys are hashes, and those of up to eight neighbouring blocks of a text stand beside each
// other, in one cache line. Whoever finds a slot taken goes on by nine, which comes to every slot in the end, and keeps
// neighbours together.
type keySet struct {
	slots []uint64 // 0 is empty
	n     int
}

// present is how key stands in a slot: 0, which no hash is likely to be, as 1.
func present(key uint64) uint64 { return max(key, 1) }

func (s *keySet) clear() {
	clear(s.slots)
	s.n = 0
}

// place is where key stands, or where it would.
func (s *keySet) place(key uint64) int {
	mask := len(s.slots) - 1
	i := int(uint32(key)) & mask
	for s.slots[i] != 0 && s.slots[i] != key {
		i = (i + 9) & mask
	}
	return i
}

func (s *keySet) has(key uint64) bool {
	return s.n > 0 && s.slots[s.place(present(key))] != 0
}

func (s *keySet) add(key uint64) {
	if 2*s.n >= len(s.slots) {
		s.grow()
	}
	key = present(key)
	if i := s.place(key); s.slots[i] == 0 {
		s.slots[i] = key
		s.n++
	}
}

// grow doubles the table, which stays at least half empty.
func (s *keySet) grow() {
	old := s.slots
	s.slots = make([]uint64, max(64, 2*len(old)))
	for _, key := range old {
		if key != 0 {
			s.slots[s.place(key)] = key
		}
	}
}
