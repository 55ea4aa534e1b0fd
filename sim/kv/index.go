package kv

// index maps keys to blocks: open addressing with linear probing, at most half full. It holds the
// first registered block of each key; the others hang on a ring behind it.
//
// A slot keeps 32 bits of the key, so that probing stays within the slots.
type index struct {
	slots []slot
	mask  uint32
	items []item // by block id
}

// slot is empty when its block is 0.
type slot struct {
	tag   uint32 // low half of the key
	block int32
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
	x.slots = make([]slot, size)
	x.mask = uint32(size - 1)
	x.items = make([]item, blocks+1)
}

// place returns the slot of key, or the empty one where it belongs.
func (x *index) place(key uint64) uint32 {
	tag := uint32(key)
	for i := tag & x.mask; ; i = (i + 1) & x.mask {
		s := x.slots[i]
		if s.block == 0 || s.tag == tag && x.items[s.block].key == key {
			return i
		}
	}
}

func (x *index) find(key uint64) int32 { return x.slots[x.place(key)].block }

// insert adds block id behind those already registered under key.
func (x *index) insert(id int32, key uint64) {
	b := &x.items[id]
	b.key = key
	i := x.place(key)
	if first := x.slots[i].block; first != 0 {
		last := x.items[first].older
		b.older, b.newer = last, first
		x.items[last].newer = id
		x.items[first].older = id
		return
	}
	x.slots[i] = slot{uint32(key), id}
	b.older, b.newer = id, id
}

// remove takes block id out; the next registered block of the key, if any, takes its place.
func (x *index) remove(id int32) {
	b := &x.items[id]
	tag := uint32(b.key)
	i := tag & x.mask
	for x.slots[i].block != id {
		if s := x.slots[i]; s.tag == tag && x.items[s.block].key == b.key { // id is further round the ring
			x.items[b.older].newer = b.newer
			x.items[b.newer].older = b.older
			return
		}
		i = (i + 1) & x.mask
	}
	if b.newer != id {
		x.items[b.older].newer = b.newer
		x.items[b.newer].older = b.older
		x.slots[i].block = b.newer
		return
	}
	// Close the hole: move up every later entry of the run that probes past it.
	for j := i; ; {
		j = (j + 1) & x.mask
		moved := x.slots[j]
		if moved.block == 0 {
			break
		}
		if (j-moved.tag)&x.mask >= (j-i)&x.mask {
			x.slots[i] = moved
			i = j
		}
	}
	x.slots[i] = slot{}
}
