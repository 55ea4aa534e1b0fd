package kv

// table numbers entries from 1 on, some of which have a key and can be found by it. It grows as needed.
type table struct {
	index index
	room  int // entries that the index has
	used  int // entries ever used
	free  []int32
}

// len is the number of entries.
func (t *table) len() int { return t.used - len(t.free) }

// find is the entry of a key, or 0.
func (t *table) find(key uint64) int32 {
	if t.room == 0 {
		return 0
	}
	return t.index.find(key)
}

// add makes an entry for a key that has none.
func (t *table) add(key uint64) int32 {
	i := t.take()
	t.index.insert(i, key)
	return i
}

// take makes an entry without a key.
func (t *table) take() int32 {
	if n := len(t.free); n > 0 {
		i := t.free[n-1]
		t.free = t.free[:n-1]
		return i
	}
	if t.used == t.room {
		t.grow()
	}
	t.used++
	return int32(t.used)
}

// keyed reports whether an entry has a key, which is key.
func (t *table) keyed(i int32) bool { return t.index.items[i].state&indexed != 0 }

func (t *table) key(i int32) uint64 { return t.index.key(i) }

// drop removes an entry.
func (t *table) drop(i int32) {
	if t.keyed(i) {
		t.index.remove(i)
	}
	t.free = append(t.free, i)
}

func (t *table) grow() {
	old := t.index
	t.room = max(64, 2*t.room)
	t.index.init(t.room)
	for i := range old.items {
		if old.items[i].state&indexed != 0 {
			t.index.insert(int32(i), old.key(int32(i)))
		}
	}
}
