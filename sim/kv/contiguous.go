package kv

import "slices"

// contiguous is a contiguous KV pool: the blocks of a sequence are one run, and the free blocks are
// gaps between runs, so that free blocks may be too fragmented to be used.
type contiguous struct {
	gaps []gap // in order of start; no two of them touch
}

type gap struct{ start, length int }

// newContiguous returns a pool of usable blocks, which are numbered from 0.
func newContiguous(usable int) *contiguous { return &contiguous{[]gap{{0, usable}}} }

// Largest is the length of the longest free run, in blocks.
func (h *contiguous) Largest() int {
	most := 0
	for _, x := range h.gaps {
		most = max(most, x.length)
	}
	return most
}

// Take takes n blocks from the start of the first free run that is long enough; ok is false if none is.
func (h *contiguous) Take(n int) (start int, ok bool) {
	if n == 0 {
		return 0, true
	}
	for i := range h.gaps {
		x := &h.gaps[i]
		if x.length < n {
			continue
		}
		start = x.start
		x.start, x.length = x.start+n, x.length-n
		if x.length == 0 {
			h.gaps = slices.Delete(h.gaps, i, i+1)
		}
		return start, true
	}
	return 0, false
}

// Put frees the n blocks from start on, and merges them with adjacent free runs.
func (h *contiguous) Put(start, n int) {
	if n == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(h.gaps, start, func(x gap, at int) int { return x.start - at })
	h.gaps = slices.Insert(h.gaps, i, gap{start, n})
	if i+1 < len(h.gaps) && start+n == h.gaps[i+1].start {
		h.gaps[i].length += h.gaps[i+1].length
		h.gaps = slices.Delete(h.gaps, i+1, i+2)
	}
	if i > 0 && h.gaps[i-1].start+h.gaps[i-1].length == start {
		h.gaps[i-1].length += h.gaps[i].length
		h.gaps = slices.Delete(h.gaps, i, i+1)
	}
}
