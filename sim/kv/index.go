package kv

import "math/bits"

// index maps keys to blocks. It holds the first registered block of each key; the others hang on a
// ring behind it.
//
// It is a table of buckets of eight slots. A word for each bucket holds a byte of every slot's key, so
// that one comparison tells which slots are worth a look; these words of a pool of 28,000 blocks
// fit in 64 KB. An entry that finds its bucket full goes to the next one, and the full one counts it.
// The low bits of keys place neighbouring blocks of a text in one bucket.
type index struct {
	marks  []uint64   // by bucket: a byte for each slot, 0 where it is empty
	slots  [][8]int32 // block ids
	passed []int32    // by bucket: entries that went on to a later one
	mask   uint32
	items  []item // by block id
}

// item is an indexed block.
type item struct {
	key          uint64
	older, newer int32 // neighbours among the blocks of the same key, in order of registration
}

func (x *index) init(blocks int) {
	size := 2
	for size*8 < 2*blocks {
		size *= 2
	}
	x.marks = make([]uint64, size)
	x.slots = make([][8]int32, size)
	x.passed = make([]int32, size)
	x.mask = uint32(size - 1)
	x.items = make([]item, blocks+1)
}

const everyByte = 0x0101010101010101

func (x *index) home(key uint64) uint32 { return uint32(key) >> 3 & x.mask }

// mark is the byte of a key that its slot shows.
func mark(key uint64) uint64 { return key>>57 | 0x80 }

// matches has the top bit of every byte of marks that equals mark, and perhaps of some above the
// lowest of these.
func matches(marks, mark uint64) uint64 {
	differ := marks ^ mark*everyByte
	return (differ - everyByte) &^ differ & (0x80 * everyByte)
}

// find returns the first registered block of key, or 0.
func (x *index) find(key uint64) int32 {
	m := mark(key)
	for b := x.home(key); ; b = (b + 1) & x.mask {
		for found := matches(x.marks[b], m); found != 0; found &= found - 1 {
			id := x.slots[b][bits.TrailingZeros64(found)/8]
			if x.items[id].key == key {
				return id
			}
		}
		if x.passed[b] == 0 {
			return 0
		}
	}
}

// insert adds block id behind those already registered under key, and reports whether it is the first.
func (x *index) insert(id int32, key uint64) bool {
	it := &x.items[id]
	if first := x.find(key); first != 0 {
		last := x.items[first].older
		it.key, it.older, it.newer = key, last, first
		x.items[last].newer = id
		x.items[first].older = id
		return false
	}
	it.key, it.older, it.newer = key, id, id
	for b := x.home(key); ; b = (b + 1) & x.mask {
		if empty := matches(x.marks[b], 0); empty != 0 {
			i := bits.TrailingZeros64(empty) / 8
			x.slots[b][i] = id
			x.marks[b] |= mark(key) << (8 * i)
			return true
		}
		x.passed[b]++
	}
}

// remove takes block id out; the next registered block of the key, if any, takes its place. It reports whether there is none.
func (x *index) remove(id int32) bool {
	it := &x.items[id]
	if it.newer != id { // one of several
		x.items[it.older].newer = it.newer
		x.items[it.newer].older = it.older
		if b, i, ok := x.slotOf(id); ok {
			x.slots[b][i] = it.newer
		}
		return false
	}
	at, i, _ := x.slotOf(id)
	x.slots[at][i] = 0
	x.marks[at] &^= 0xff << (8 * i)
	for b := x.home(it.key); b != at; b = (b + 1) & x.mask {
		x.passed[b]--
	}
	return true
}

// slotOf is the place of block id; ok is false when another block of its key stands there.
func (x *index) slotOf(id int32) (b uint32, i int, ok bool) {
	key := x.items[id].key
	m := mark(key)
	for b = x.home(key); ; b = (b + 1) & x.mask {
		for found := matches(x.marks[b], m); found != 0; found &= found - 1 {
			if i = bits.TrailingZeros64(found) / 8; x.slots[b][i] == id {
				return b, i, true
			}
		}
		if x.passed[b] == 0 {
			return b, 0, false
		}
	}
}
