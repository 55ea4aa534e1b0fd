package kv

import "math/bits"

// index maps keys to numbers other than 0.
//
// Neighbouring blocks of a text have consecutive numbers as keys (see [workload.BlockKeys]). The index therefore looks
// up groups of eight keys that differ in their last three bits. Mostly all keys of a group exist, or none. It remembers
// the group that it found last, which mostly has the next key too.
//
// The groups are in a hash table of buckets with eight slots. A word of each bucket has a byte of every slot's key, so
// that one comparison finds the slots to compare. A group whose bucket is full goes into the next one, and the full
// bucket counts it.
type index struct {
	buckets []bucket
	mask    uint32
	groups  []group // group 0 is empty
	vacant  []int32 // numbers of the other empty ones
	last    int32   // number of the group found last
}

// bucket is a part of the table.
type bucket struct {
	marks  uint64           // a byte for each slot, 0 if it is empty
	slots  [groupSize]int32 // numbers of groups
	passed int32            // groups that went into a later bucket
}

// group is eight keys.
type group struct {
	keys   uint64 // the keys without their last bits
	values [groupSize]int32
	held   uint8  // a bit for each key that has a value
	copied uint8  // used by the pool: a bit for each key with duplicate blocks
	slot   uint32 // its place in the table
}

const (
	groupBits = 3
	groupSize = 1 << groupBits
)

// empty reports whether none of the keys is in use.
func (g *group) empty() bool { return g.held|g.copied == 0 }

func (x *index) init() {
	*x = index{groups: make([]group, 1, 16)}
	x.resize(2)
}

// resize makes a table of this many buckets, a power of two.
func (x *index) resize(buckets int) {
	x.buckets, x.mask = make([]bucket, buckets), uint32(buckets-1)
	for n := range x.groups {
		if !x.groups[n].empty() {
			x.enter(int32(n))
		}
	}
}

const everyByte = 0x0101010101010101

// home is the first bucket for a group of keys.
func (x *index) home(keys uint64) uint32 { return uint32(keys) & x.mask }

// mark is the byte of a group in its bucket.
func mark(keys uint64) uint64 { return keys>>(57-groupBits) | 0x80 }

// matches returns a word with the top bit set of every byte of marks that equals mark, and perhaps of some above the
// lowest of these.
func matches(marks, mark uint64) uint64 {
	differ := marks ^ mark*everyByte
	return (differ - everyByte) &^ differ & (0x80 * everyByte)
}

// find returns the number of key, or 0.
func (x *index) find(key uint64) int32 {
	g := &x.groups[x.group(key>>groupBits)]
	if g.held>>(key%groupSize)&1 == 0 {
		return 0
	}
	return g.values[key%groupSize]
}

func (x *index) put(key uint64, value int32) {
	g := &x.groups[x.obtain(key>>groupBits)]
	g.values[key%groupSize] = value
	g.held |= 1 << (key % groupSize)
}

func (x *index) remove(key uint64) {
	n := x.group(key >> groupBits)
	x.groups[n].held &^= 1 << (key % groupSize)
	x.leave(n)
}

// group is the number of the group of keys, or 0 if there is none.
func (x *index) group(keys uint64) int32 {
	if g := &x.groups[x.last]; g.keys == keys && !g.empty() {
		return x.last
	}
	m := mark(keys)
	for i := x.home(keys); ; i = (i + 1) & x.mask {
		b := &x.buckets[i]
		for found := matches(b.marks, m); found != 0; found &= found - 1 {
			n := b.slots[bits.TrailingZeros64(found)/8]
			if x.groups[n].keys == keys {
				x.last = n
				return n
			}
		}
		if b.passed == 0 {
			return 0
		}
	}
}

// obtain is the number of the group of keys, which is created if there is none. The caller adds a key to it.
func (x *index) obtain(keys uint64) int32 {
	if n := x.group(keys); n != 0 {
		return n
	}
	if len(x.groups)-len(x.vacant) > 4*len(x.buckets) {
		x.resize(2 * len(x.buckets))
	}
	n := int32(len(x.groups))
	if last := len(x.vacant) - 1; last >= 0 {
		n, x.vacant = x.vacant[last], x.vacant[:last]
	} else {
		x.groups = append(x.groups, group{})
	}
	x.groups[n].keys = keys
	x.enter(n)
	x.last = n
	return n
}

// enter puts a group into a slot.
func (x *index) enter(n int32) {
	g := &x.groups[n]
	i := x.home(g.keys)
	free := matches(x.buckets[i].marks, 0)
	for free == 0 {
		x.buckets[i].passed++
		i = (i + 1) & x.mask
		free = matches(x.buckets[i].marks, 0)
	}
	at := uint32(bits.TrailingZeros64(free)) / 8
	b := &x.buckets[i]
	b.marks |= mark(g.keys) << (8 * at)
	b.slots[at] = n
	g.slot = 8*i + at
}

// leave removes a group from the table, if it is empty.
func (x *index) leave(n int32) {
	g := &x.groups[n]
	if !g.empty() {
		return
	}
	x.buckets[g.slot/8].marks &^= 0xff << (g.slot % 8 * 8)
	for i := x.home(g.keys); i != g.slot/8; i = (i + 1) & x.mask {
		x.buckets[i].passed--
	}
	x.vacant = append(x.vacant, n)
}
