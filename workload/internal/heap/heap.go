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
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.Before(&s[i], &s[parent]) {
			return
		}
		s[i], s[parent] = s[parent], s[i]
		i = parent
	}
}

// Pop takes out the first item, which must exist.
func (h *Heap[T]) Pop() T {
	s := h.items
	n := len(s) - 1
	top := s[0]
	s[0] = s[n]
	clear(s[n:]) // let go of what it points to
	s = s[:n]
	h.items = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			return top
		}
		if child+1 < n && h.Before(&s[child+1], &s[child]) {
			child++
		}
		if !h.Before(&s[child], &s[i]) {
			return top
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}
