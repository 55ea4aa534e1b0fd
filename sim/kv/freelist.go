package kv

// freeList is the ids of free blocks in order of eviction. It is a ring, and not a chain of blocks, because ids that stand side
// by side let the processor fetch many blocks at once. A block that is taken out of the middle leaves 0 in its place.
type freeList struct {
	ring       []int32
	head, tail int // from the place of the first id to that behind the last, both modulo the length of the ring, a power of two
}

func (l *freeList) init(usable int) {
	size := 64
	for size < 2*usable {
		size *= 2
	}
	l.ring = make([]int32, size)
}

// pop takes n ids from the front, which are there, and appends them to ids.
func (l *freeList) pop(ids []int32, n int) []int32 {
	mask := len(l.ring) - 1
	for ; n > 0; l.head++ {
		if id := l.ring[l.head&mask]; id != 0 {
			ids = append(ids, id)
			n--
		}
	}
	return ids
}

// pushBack adds an id behind the others and returns its place. There is room.
func (l *freeList) pushBack(id int32) (place int32) {
	at := l.tail & (len(l.ring) - 1)
	l.ring[at] = id
	l.tail++
	return int32(at)
}

// pushFront adds an id before the others and returns its place. There is room.
func (l *freeList) pushFront(id int32) (place int32) {
	l.head--
	at := l.head & (len(l.ring) - 1)
	l.ring[at] = id
	return int32(at)
}

// take removes the id at a place.
func (l *freeList) take(place int32) { l.ring[place] = 0 }

// room reports whether n ids can be added before the list is compacted.
func (l *freeList) room(n int) bool { return l.tail-l.head+n <= len(l.ring) }

// compact closes the gaps that taken ids have left, at least half of the places, and tells the new places of the others.
func (l *freeList) compact(moved func(id, place int32)) {
	mask, tail := len(l.ring)-1, l.head
	for at := l.head; at < l.tail; at++ {
		if id := l.ring[at&mask]; id != 0 {
			l.ring[tail&mask] = id
			moved(id, int32(tail&mask))
			tail++
		}
	}
	l.tail = tail
}

// all returns the ids in order.
func (l *freeList) all() []int32 {
	var ids []int32
	for at := l.head; at < l.tail; at++ {
		if id := l.ring[at&(len(l.ring)-1)]; id != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}
