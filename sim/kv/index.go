package kv

// index maps keys to blocks: open addressing with linear probing over block ids, at most half full.
// It holds the first registered block of each key; the others hang on a ring behind it.
type index struct {
	slots []int32 // block ids, 0 = empty
	mask  uint64
	items []item // by block id
}

// item is an indexed block.
type item struct {
	key          uint64
	older, newer int32 // neighbours among the blocks of the same key, in order of registration
}

func (x *index) init(blocks int) {
	size := 16
	for size < 2*blocks+2 {
		size *= 2
	}
	x.slots = make([]int32, size)
	x.mask = uint64(size - 1)
	x.items = make([]item, blocks+1)
}

func (x *index) find(key uint64) int32 {
	for i := key & x.mask; ; i = (i + 1) & x.mask {
		id := x.slots[i]
		if id == 0 || x.items[id].key == key {
			return id
		}
	}
}

// insert adds block id behind those already registered under key.
func (x *index) insert(id int32, key uint64) {
	b := &x.items[id]
	b.key = key
	i := key & x.mask
	for x.slots[i] != 0 {
		if first := x.slots[i]; x.items[first].key == key {
			last := x.items[first].older
			b.older, b.newer = last, first
			x.items[last].newer = id
			x.items[first].older = id
			return
		}
		i = (i + 1) & x.mask
	}
	x.slots[i] = id
	b.older, b.newer = id, id
}

// remove takes block id out; the next registered block of the key, if any, takes its place.
func (x *index) remove(id int32) {
	b := &x.items[id]
	i := b.key & x.mask
	for x.slots[i] != id {
		if first := x.slots[i]; x.items[first].key == b.key { // id is further round the ring
			x.items[b.older].newer = b.newer
			x.items[b.newer].older = b.older
			return
		}
		i = (i + 1) & x.mask
	}
	if b.newer != id {
		x.items[b.older].newer = b.newer
		x.items[b.newer].older = b.older
		x.slots[i] = b.newer
		return
	}
	// Close the hole: move up every later entry of the run that probes past it.
	for j := i; ; {
		j = (j + 1) & x.mask
		moved := x.slots[j]
		if moved == 0 {
			break
		}
		home := x.items[moved].key & x.mask
		if (j-home)&x.mask >= (j-i)&x.mask {
			x.slots[i] = moved
			i = j
		}
	}
	x.slots[i] = 0
}
