package kv

import (
	"testing"

	"pgregory.net/rapid"
)

// TestContiguous compares a contiguous pool with a row of blocks that is searched from its start.
func TestContiguous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const usable = 20
		h := newContiguous(usable)
		var row [usable + 1]bool // the last block is taken, always
		row[usable] = true
		type run struct{ start, n int }
		var runs []run
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			if len(runs) > 0 && rapid.Bool().Draw(t, "put") {
				k := rapid.IntRange(0, len(runs)-1).Draw(t, "run")
				x := runs[k]
				runs = append(runs[:k], runs[k+1:]...)
				h.Put(x.start, x.n)
				for i := range x.n {
					row[x.start+i] = false
				}
			} else {
				n := rapid.IntRange(1, 7).Draw(t, "blocks")
				at, length, most := -1, 0, 0
				for i, taken := range row {
					if taken {
						most, length = max(most, length), 0
						continue
					}
					if length++; length == n && at < 0 {
						at = i - n + 1
					}
				}
				if got := h.Largest(); got != most {
					t.Fatalf("the longest free run has %d blocks, want %d", got, most)
				}
				start, ok := h.Take(n)
				if ok != (at >= 0) || ok && start != at {
					t.Fatalf("%d blocks at %d (%v), want %d", n, start, ok, at)
				}
				if ok {
					runs = append(runs, run{start, n})
					for i := range n {
						row[start+i] = true
					}
				}
			}
		}
	})
}
