package kv

import "math/bits"

// index maps keys to blocks. It holds the first registered block of each key; the others hang on a
// ring behind it.
//
// Neighbouring blocks of a text have consecutive numbers for keys (see [workload.BlockKeys]), so what the index looks up is
// a group of eight keys that differ in their last three bits, of which most are there or none. It remembers the
// group that it came to last, where the next key mostly is.
//
// The groups stand in a table of buckets of eight slots. A word for each bucket holds a byte of every slot's key, so that one
// comparison tells which slots are worth a look. A group that finds its bucket full goes to the next one, and the full one
// counts it.
type index struct {
	buckets []bucket
	mask    uint32
	groups  []group
	vacant  []int32 // numbers of groups that hold nothing
	last    int32   // number of the group that was found last
	items   []item  // by block id
	rings   []ring  // by block id, of those that are indexed; made when there are several blocks of a key for the first time
}

// bucket is a part of the table.
type bucket struct {
	marks  uint64           // a byte for each slot, 0 where it is empty
	slots  [groupSize]int32 // numbers of groups
	passed int32            // groups that went on to a later bucket
}

// group is the first registered blocks of eight keys.
type group struct {
	keys  uint64 // the keys but for their last bits
	first [groupSize]int32
	held  int32  // keys that have a block
	slot  uint32 // where it stands
}

const (
	groupBits = 3
	groupSize = 1 << groupBits
)

// item is a block. It is kept small, because every block of a busy pool is touched in turn.
type item struct {
	group int32  // if it is indexed
	state uint32 // the flags, and above them the last bits of its key
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
	*x = index{items: make([]item, blocks+1), groups: make([]group, 1, 16)}
	x.resize(2)
}

// resize makes a table of so many buckets, a power of two.
func (x *index) resize(buckets int) {
	x.buckets, x.mask = make([]bucket, buckets), uint32(buckets-1)
	for n := range x.groups {
		if x.groups[n].held > 0 {
			x.enter(int32(n))
		}
	}
}

const everyByte = 0x0101010101010101

// home is the bucket where a group of keys is sought first.
func (x *index) home(keys uint64) uint32 { return uint32(keys) & x.mask }

// mark is the byte of a group that its slot shows.
func mark(keys uint64) uint64 { return keys>>(57-groupBits) | 0x80 }

// matches has the top bit of every byte of marks that equals mark, and perhaps of some above the
// lowest of these.
func matches(marks, mark uint64) uint64 {
	differ := marks ^ mark*everyByte
	return (differ - everyByte) &^ differ & (0x80 * everyByte)
}

// key is that of an indexed block.
func (x *index) key(id int32) uint64 {
	it := &x.items[id]
	return x.groups[it.group].keys<<groupBits | uint64(it.state>>flags)
}

// find returns the first registered block of key, or 0.
func (x *index) find(key uint64) int32 { return x.groups[x.group(key>>groupBits)].first[key%groupSize] }

// group is the number of a group that holds something, or 0, which holds nothing.
func (x *index) group(keys uint64) int32 {
	if g := &x.groups[x.last]; g.keys == keys && g.held > 0 {
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

// insert adds block id behind those already registered under key, and reports whether it is the first.
func (x *index) insert(id int32, key uint64) bool {
	n := x.group(key >> groupBits)
	if n == 0 {
		n = x.add(key >> groupBits)
	}
	at := key % groupSize
	x.items[id].group, x.items[id].state = n, indexed|uint32(at)<<flags
	g := &x.groups[n]
	if first := g.first[at]; first != 0 {
		x.append(id, first)
		return false
	}
	g.first[at] = id
	g.held++
	return true
}

// add makes a group.
func (x *index) add(keys uint64) int32 {
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

// enter gives a group a slot.
func (x *index) enter(n int32) {
	g := &x.groups[n]
	i := x.home(g.keys)
	empty := matches(x.buckets[i].marks, 0)
	for empty == 0 {
		x.buckets[i].passed++
		i = (i + 1) & x.mask
		empty = matches(x.buckets[i].marks, 0)
	}
	at := uint32(bits.TrailingZeros64(empty)) / 8
	b := &x.buckets[i]
	b.marks |= mark(g.keys) << (8 * at)
	b.slots[at] = n
	g.slot = 8*i + at
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
	x.items[id].state |= behind
}

// remove takes block id out; the next registered block of the key, if any, takes its place. It
// reports whether there is none.
func (x *index) remove(id int32) bool {
	it := &x.items[id]
	state := it.state
	it.state = 0
	g := &x.groups[it.group]
	if state&(behind|several) != 0 {
		r := x.rings[id]
		x.rings[r.older].newer, x.rings[r.newer].older = r.newer, r.older
		if state&behind != 0 {
			return false
		}
		if next := r.newer; next != id {
			g.first[state>>flags] = next
			x.items[next].state = state
			return false
		}
	}
	g.first[state>>flags] = 0
	if g.held--; g.held == 0 {
		x.drop(it.group)
	}
	return true
}

// drop takes a group that holds nothing out of the table.
func (x *index) drop(n int32) {
	g := &x.groups[n]
	x.buckets[g.slot/8].marks &^= 0xff << (g.slot % 8 * 8)
	for i := x.home(g.keys); i != g.slot/8; i = (i + 1) & x.mask {
		x.buckets[i].passed--
	}
	x.vacant = append(x.vacant, n)
}
