package kv

import (
	"testing"

	"pgregory.net/rapid"
)

// A set of ghosts knows the last keys, and none that was not entered; it forgets in time.
func TestGhosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 40).Draw(t, "most")
		g := ghosts{most: most}
		var added []uint64
		for k, key := range rapid.SliceOf(rapid.Uint64Range(1, 100)).Draw(t, "keys") {
			g.add(key)
			added = append(added, key)
			last := make(map[uint64]bool) // distinct keys, from the last one back
			for i := k; i >= 0; i-- {
				last[added[i]] = true
				if len(last) <= most && !g.has(added[i]) {
					t.Fatalf("after %v the key %d is forgotten", added, added[i])
				}
			}
			for other := uint64(1); other < 102; other++ {
				if g.has(other) && !last[other] {
					t.Fatalf("after %v there is a key %d", added, other)
				}
			}
			if g.young.n > most || g.old.n > most {
				t.Fatalf("after %v there are %d and %d keys, want at most %d", added, g.young.n, g.old.n, most)
			}
		}
	})
}
