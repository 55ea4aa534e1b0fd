// Package idtable stores values by request ID.
//
// IDs are assigned in sequence, so that active requests have neighbouring IDs except for a few that take long.
// Values are stored in pages; a list holds the pages in use.
package idtable

import "slices"

// Table maps IDs to values. The zero Table is empty.
type Table[V any] struct {
	pages []*page[V] // nil if the page has no IDs; the first one is not nil
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

// Add returns the value of an ID, whose address stays the same until the ID is removed. The value of a new ID is
// undefined.
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

// Remove removes an ID if it is present. Its value stays readable until the next Add.
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
	// Keep the trailing pages: the next IDs will use them, and a long-lived value in front would otherwise make every
	// Add\n	// grow the list again.
	t.spare, t.pages[k] = append(t.spare, p), nil
	for len(t.pages) > 0 && t.pages[0] == nil {
		t.pages = t.pages[1:]
		t.first++
	}
}
