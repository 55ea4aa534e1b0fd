// Package heap is a binary heap of values.
package heap

// Heap pops its items in the order that Before defines. The zero Heap with Before set is empty.
type Heap[T any] struct {
	Before func(a, b *T) bool
	items  []T
}

// Len is the number of items.
func (h *Heap[T]) Len() int { return len(h.items) }

// Top is the first item, which must exist.
func (h *Heap[T]) Top() *T { return &h.items[0] }

// Push adds an item.
func (h *Heap[T]) Push(item T) {
	h.items = append(h.items, item)
	s := h.items
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h.Before(&item, &s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = item
}

// Pop takes out the first item, which must exist.
func (h *Heap[T]) Pop() T {
	s := h.items
	top, last := s[0], s[len(s)-1]
	clear(s[len(s)-1:]) // let go of what it points to
	s = s[:len(s)-1]
	h.items = s
	if len(s) == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && h.Before(&s[child+1], &s[child]) {
			child++
		}
		if !h.Before(&s[child], &last) {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = last
	return top
}
