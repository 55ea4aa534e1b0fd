package kv

// table numbers entries from 1 on, some of which have a key and can be found by it. It grows as needed.
type table struct {
	index index
	keys  []entryKey // by entry; 0 is none
	free  []int32
}

// entryKey is the key of an entry, if it has one.
type entryKey struct {
	key  uint64
	some bool
}

// len is the number of entries, and most the highest of their numbers ever.
func (t *table) len() int { return t.most() - len(t.free) }

func (t *table) most() int { return max(0, len(t.keys)-1) }

// find is the entry of a key, or 0.
func (t *table) find(key uint64) int32 {
	if len(t.keys) == 0 {
		return 0
	}
	return t.index.find(key)
}

// add makes an entry for a key that has none.
func (t *table) add(key uint64) int32 {
	i := t.take()
	t.keys[i] = entryKey{key, true}
	t.index.put(key, i)
	return i
}

// take makes an entry without a key.
func (t *table) take() int32 {
	if n := len(t.free); n > 0 {
		i := t.free[n-1]
		t.free = t.free[:n-1]
		return i
	}
	if len(t.keys) == 0 {
		t.index.init()
		t.keys = append(t.keys, entryKey{})
	}
	t.keys = append(t.keys, entryKey{})
	return int32(len(t.keys) - 1)
}

// key is the key of an entry, if it has one.
func (t *table) key(i int32) (key uint64, ok bool) { return t.keys[i].key, t.keys[i].some }

// drop removes an entry.
func (t *table) drop(i int32) {
	if key, ok := t.key(i); ok {
		t.index.remove(key)
		t.keys[i] = entryKey{}
	}
	t.free = append(t.free, i)
}
