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
	marks  []uint64 // by bucket: a byte for each slot, 0 where it is empty
	slots  []int32  // block ids, eight for each bucket
	passed []int32  // by bucket: entries that went on to a later one
	mask   uint32
	items  []item // by block id
	rings  []ring // by block id, of those that are indexed; made when there are several blocks of a key for the first time
}

// item is a block. It is kept small, because every block of a busy pool is touched in turn.
type item struct {
	key   uint64 // if it is indexed
	state uint32 // the flags, and above them the slot where it stands, if it is the first of its key
	refs  int32  // the pool's: references; of a free block -1 less its place in the free list
}

// The flags of a block.
const (
	indexed = 1 << iota // it can be found by its key
	behind              // it is indexed, but is not the first of its key
	several             // it is the first of its key, and there may be others
	flags   = iota
)

// ring is the neighbours of a block among those of the same key, in order of registration.
type ring struct{ older, newer int32 }

func (x *index) init(blocks int) {
	size := 2
	for size*8 < 2*blocks {
		size *= 2
	}
	x.marks = make([]uint64, size)
	x.slots = make([]int32, 8*size)
	x.passed = make([]int32, size)
	x.mask = uint32(size - 1)
	x.items = make([]item, blocks+1)
	x.rings = nil
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
			id := x.slots[8*b+uint32(bits.TrailingZeros64(found)/8)]
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
	it.key = key
	if first := x.find(key); first != 0 {
		x.append(id, first)
		return false
	}
	b := x.home(key)
	empty := matches(x.marks[b], 0)
	for empty == 0 {
		x.passed[b]++
		b = (b + 1) & x.mask
		empty = matches(x.marks[b], 0)
	}
	i := uint32(bits.TrailingZeros64(empty)) / 8
	x.marks[b] |= mark(key) << (8 * i)
	x.slots[8*b+i] = id
	it.state = indexed | (8*b+i)<<flags
	return true
}

// append adds block id behind those of the same key, of which one is the first.
func (x *index) append(id, first int32) {
	if x.rings == nil {
		x.rings = make([]ring, len(x.items))
	}
	if it := &x.items[first]; it.state&several == 0 {
		it.state |= several
		x.rings[first] = ring{first, first}
	}
	last := x.rings[first].older
	x.rings[id] = ring{last, first}
	x.rings[last].newer = id
	x.rings[first].older = id
	x.items[id].state = indexed | behind
}

// remove takes block id out; the next registered block of the key, if any, takes its place. It
// reports whether there is none.
func (x *index) remove(id int32) bool {
	it := &x.items[id]
	slot := it.state >> flags
	state := it.state
	it.state = 0
	if state&(behind|several) != 0 {
		r := x.rings[id]
		x.rings[r.older].newer, x.rings[r.newer].older = r.newer, r.older
		if state&behind != 0 {
			return false
		}
		if next := r.newer; next != id {
			x.slots[slot] = next
			x.items[next].state = indexed | several | slot<<flags
			return false
		}
	}
	x.marks[slot/8] &^= 0xff << (slot % 8 * 8)
	for b := x.home(it.key); b != slot/8; b = (b + 1) & x.mask {
		x.passed[b]--
	}
	return true
}
