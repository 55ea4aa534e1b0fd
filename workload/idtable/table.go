// Package underway keeps what is known of requests that are under way, by their IDs.
//
// IDs are given one after the other, so that requests under way at the same time have neighbouring ones, but for a few that take
// long. They stand side by side, in pages of which those in use are listed.
package idtable

import "slices"

// Table holds a value for each of some IDs. The zero Table is empty.
type Table[V any] struct {
	pages []*page[V] // nil where none of the IDs is in the table; the first one is not
	first int64      // number of the first page
	n     int
	spare []*page[V]
}

const (
	pageBits = 4
	pageSize = 1 << pageBits
	last     = pageSize - 1
)

type page[V any] struct {
	values [pageSize]V
	live   uint32 // a bit for each value
}

// Len is the number of values.
func (t *Table[V]) Len() int { return t.n }

// Find returns the value of an ID, or nil.
func (t *Table[V]) Find(id int64) *V {
	k := id>>pageBits - t.first
	if uint64(k) >= uint64(len(t.pages)) {
		return nil
	}
	p := t.pages[k]
	if p == nil || p.live>>(id&last)&1 == 0 {
		return nil
	}
	return &p.values[id&last]
}

// Add returns the place of the value of an ID, which stays the same until the ID is removed. It holds anything if the ID is new.
func (t *Table[V]) Add(id int64) *V {
	number := id >> pageBits
	if len(t.pages) == 0 {
		t.first = number
	}
	if before := t.first - number; before > 0 {
		t.pages, t.first = slices.Insert(t.pages, 0, make([]*page[V], before)...), number
	}
	k := int(number - t.first)
	for len(t.pages) <= k {
		t.pages = append(t.pages, nil)
	}
	p := t.pages[k]
	if p == nil {
		if n := len(t.spare); n > 0 {
			p, t.spare = t.spare[n-1], t.spare[:n-1]
		} else {
			p = new(page[V])
		}
		t.pages[k] = p
	}
	if bit := uint32(1) << (id & last); p.live&bit == 0 {
		p.live |= bit
		t.n++
	}
	return &p.values[id&last]
}

// Remove takes out an ID, if it is there. Its value can be read until another ID is added.
func (t *Table[V]) Remove(id int64) {
	if t.Find(id) == nil {
		return
	}
	t.n--
	k := id>>pageBits - t.first
	p := t.pages[k]
	if p.live &^= 1 << (id & last); p.live != 0 {
		return
	}
	// The last pages stay: there the next IDs are, and behind a value that takes long the way to them would be gone again each time.
	t.spare, t.pages[k] = append(t.spare, p), nil
	for len(t.pages) > 0 && t.pages[0] == nil {
		t.pages = t.pages[1:]
		t.first++
	}
}
