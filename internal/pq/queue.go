// Package pq has the priority queue of the simulator and of the traffic sources.
package pq

// Item is an entry of a [Queue]. The item with the lower Key comes first; of two items with the same Key, the one with
// the lower Tie.
type Item[V any] struct {
	Value V
	// Key is the primary sort key, usually an instant in picoseconds.
	Key int64
	// Tie orders items that have the same Key. Items with equal Key and Tie come in an order that depends only on the
	// calls so far.
	Tie int64
}

// Queue is a binary min-heap of values. The keys are stored with the values, so that a comparison is two
// integer comparisons without an indirect call. The zero Queue is empty and ready to use.
type Queue[V any] struct{ items []Item[V] }

func (a *Item[V]) before(b *Item[V]) bool {
	return a.Key < b.Key || a.Key == b.Key && a.Tie < b.Tie
}

func (q *Queue[V]) Len() int { return len(q.items) }

// Top returns the first item, valid until the next call of Push, Pop or Retain. The queue must not be empty.
func (q *Queue[V]) Top() *Item[V] { return &q.items[0] }

// Push adds an item.
func (q *Queue[V]) Push(item Item[V]) {
	q.items = append(q.items, item)
	s := q.items
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !item.before(&s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = item
}

// Pop removes and returns the first item. The queue must not be empty.
func (q *Queue[V]) Pop() Item[V] {
	s := q.items
	n := len(s) - 1
	top, last := s[0], s[n]
	s[n] = Item[V]{} // release pointers to the garbage collector
	s = s[:n]
	q.items = s
	if n == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if right := child + 1; right < n && s[right].before(&s[child]) {
			child = right
		}
		if !s[child].before(&last) {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = last
	return top
}

// Retain removes the items for which keep returns false.
func (q *Queue[V]) Retain(keep func(*Item[V]) bool) {
	all := q.items
	q.items = all[:0]
	for i := range all {
		if item := all[i]; keep(&item) {
			q.Push(item)
		}
	}
	clear(all[len(q.items):])
}

// Contains reports whether matches returns true for an item.
func (q *Queue[V]) Contains(matches func(*Item[V]) bool) bool {
	for i := range q.items {
		if matches(&q.items[i]) {
			return true
		}
	}
	return false
}

// Clear removes all items.
func (q *Queue[V]) Clear() {
	clear(q.items)
	q.items = q.items[:0]
}
