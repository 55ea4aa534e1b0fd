package network

import "clifftop/sim/clock"

// tagged is an entry of the order of a route.
type tagged struct {
	tag      clock.Uint128
	serial   int64
	transfer int32
}

func (a *tagged) before(b *tagged) bool {
	if c := a.tag.Cmp(b.tag); c != 0 {
		return c < 0
	}
	return a.serial < b.serial
}

// tags is a binary min-heap of entries, by tag and then by serial number.
type tags []tagged

// top returns the first entry. There must be one.
func (q tags) top() *tagged { return &q[0] }

func (q *tags) push(x tagged) {
	s := append(*q, x)
	i := len(s) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !x.before(&s[parent]) {
			break
		}
		s[i] = s[parent]
		i = parent
	}
	s[i] = x
	*q = s
}

// pop removes the first entry.
func (q *tags) pop() {
	s := *q
	n := len(s) - 1
	last := s[n]
	s = s[:n]
	*q = s
	i := 0
	for n > 0 {
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
	if n > 0 {
		s[i] = last
	}
}
