package kv

// index maps keys to blocks: open addressing with linear probing over block ids, at most half full.
// It holds the first registered block of each key; the others hang on a ring behind it.
type index struct {
	slots []int32 // block ids, 0 = empty
	mask  uint64
}

func (x *index) init(blocks int) {
	size := 16
	for size < 2*blocks+2 {
		size *= 2
	}
	x.slots = make([]int32, size)
	x.mask = uint64(size - 1)
}

func (x *index) find(blocks []block, key uint64) int32 {
	for i := key & x.mask; ; i = (i + 1) & x.mask {
		id := x.slots[i]
		if id == 0 || blocks[id].key == key {
			return id
		}
	}
}

// insert adds block id behind those already registered under its key.
func (x *index) insert(blocks []block, id int32) {
	b := &blocks[id]
	i := b.key & x.mask
	for x.slots[i] != 0 {
		if first := x.slots[i]; blocks[first].key == b.key {
			last := blocks[first].older
			b.older, b.newer = last, first
			blocks[last].newer = id
			blocks[first].older = id
			return
		}
		i = (i + 1) & x.mask
	}
	x.slots[i] = id
	b.older, b.newer = id, id
}

// remove takes block id out; the next registered block of the key, if any, takes its place.
func (x *index) remove(blocks []block, id int32) {
	b := &blocks[id]
	i := b.key & x.mask
	for x.slots[i] != id {
		if first := x.slots[i]; blocks[first].key == b.key { // id is further round the ring
			blocks[b.older].newer = b.newer
			blocks[b.newer].older = b.older
			return
		}
		i = (i + 1) & x.mask
	}
	if b.newer != id {
		blocks[b.older].newer = b.newer
		blocks[b.newer].older = b.older
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
		home := blocks[moved].key & x.mask
		if (j-home)&x.mask >= (j-i)&x.mask {
			x.slots[i] = moved
			i = j
		}
	}
	x.slots[i] = 0
}
