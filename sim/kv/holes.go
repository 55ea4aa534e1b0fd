package kv

import "slices"

// Holes is a contiguous KV pool: what a sequence holds is one run of blocks, and what nobody holds is
// holes between runs, so that free blocks may be too scattered to be of use.
type Holes struct {
	list []hole // in order of start; no two of them touch
}

type hole struct{ start, length int }

// NewHoles returns a pool of usable blocks, which are numbered from 0.
func NewHoles(usable int) *Holes { return &Holes{[]hole{{0, usable}}} }

// Largest is the length of the largest hole, in blocks.
func (h *Holes) Largest() int {
	most := 0
	for _, x := range h.list {
		most = max(most, x.length)
	}
	return most
}

// Take takes n blocks from the beginning of the first hole that is large enough; ok is false if none is.
func (h *Holes) Take(n int) (start int, ok bool) {
	if n == 0 {
		return 0, true
	}
	for i := range h.list {
		x := &h.list[i]
		if x.length < n {
			continue
		}
		start = x.start
		x.start, x.length = x.start+n, x.length-n
		if x.length == 0 {
			h.list = slices.Delete(h.list, i, i+1)
		}
		return start, true
	}
	return 0, false
}

// Put returns the n blocks from start on, and joins them with the holes beside them.
func (h *Holes) Put(start, n int) {
	if n == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(h.list, start, func(x hole, at int) int { return x.start - at })
	h.list = slices.Insert(h.list, i, hole{start, n})
	if i+1 < len(h.list) && start+n == h.list[i+1].start {
		h.list[i].length += h.list[i+1].length
		h.list = slices.Delete(h.list, i+1, i+2)
	}
	if i > 0 && h.list[i-1].start+h.list[i-1].length == start {
		h.list[i-1].length += h.list[i].length
		h.list = slices.Delete(h.list, i, i+1)
	}
}
