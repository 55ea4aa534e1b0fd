package kv

// freeList is the names of free blocks in order of eviction. A block that is removed from the middle leaves 0 in its
// place.
type freeList struct {
	ring []int32
	// from the place of the first name to that behind the last, both modulo the length of the ring, a power of two
	head, tail int
}

func (l *freeList) init(usable int) {
	size := 64
	for size < 2*usable {
		size *= 2
	}
	l.ring = make([]int32, size)
}

// pop takes n names from the front, which must exist, and appends them to names.
func (l *freeList) pop(names []int32, n int) []int32 {
	mask := len(l.ring) - 1
	for ; n > 0; l.head++ {
		if name := l.ring[l.head&mask]; name != 0 {
			names = append(names, name)
			n--
		}
	}
	return names
}

// pushBack adds a name at the back and returns its place. There must be room.
func (l *freeList) pushBack(name int32) (place int32) {
	at := l.tail & (len(l.ring) - 1)
	l.ring[at] = name
	l.tail++
	return int32(at)
}

// pushFront adds a name at the front and returns its place. There must be room.
func (l *freeList) pushFront(name int32) (place int32) {
	l.head--
	at := l.head & (len(l.ring) - 1)
	l.ring[at] = name
	return int32(at)
}

func (l *freeList) take(place int32) { l.ring[place] = 0 }

// room reports whether n names can be added before the list is compacted.
func (l *freeList) room(n int) bool { return l.tail-l.head+n <= len(l.ring) }

// compact removes the gaps of taken names, at least half of the places, and reports the new places of the others.
func (l *freeList) compact(moved func(name, place int32)) {
	mask, tail := len(l.ring)-1, l.head
	for at := l.head; at < l.tail; at++ {
		if name := l.ring[at&mask]; name != 0 {
			l.ring[tail&mask] = name
			moved(name, int32(tail&mask))
			tail++
		}
	}
	l.tail = tail
}

// all returns the names in order.
func (l *freeList) all() []int32 {
	var names []int32
	for at := l.head; at < l.tail; at++ {
		if name := l.ring[at&(len(l.ring)-1)]; name != 0 {
			names = append(names, name)
		}
	}
	return names
}
