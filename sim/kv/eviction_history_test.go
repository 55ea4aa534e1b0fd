package kv

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// TestEvictionHistory: the history has the last keys, and none that was not added, and forgets old ones.
func TestEvictionHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const keys = 104
		most := rapid.IntRange(1, 40).Draw(t, "most")
		var g evictionHistory
		g.init(most)
		batch := rapid.IntRange(1, 5).Draw(t, "batch")
		g.batch = make([]historyEntry, 0, batch)
		has := func(key uint64) bool { return g.run(key>>runBits)>>(key%runSize)&1 != 0 }
		var added []uint64
		for range rapid.IntRange(1, 60).Draw(t, "operations") {
			group, ats := rapid.Uint64Range(0, keys/groupSize-1).Draw(t, "group"),
				rapid.Uint8Range(1, 255).Draw(t, "keys of it")
			spread := group << 7 * (group % 3) // some are of one entry, others of one place
			g.add(spread, ats)
			for at := range uint64(groupSize) {
				if ats>>at&1 != 0 {
					added = append(added, spread<<groupBits|at)
				}
			}
			last := make(map[uint64]bool) // distinct keys, from the last one back
			for i := len(added) - 1; i >= 0; i-- {
				last[added[i]] = true
				if len(last) <= most && !has(added[i]) {
					t.Fatalf("after %v the key %d is forgotten", added, added[i])
				}
			}
			young, old, used := 0, 0, 0
			for _, r := range g.entries {
				young += bits.OnesCount64(r.young)
				old += bits.OnesCount64(r.old)
				for at := range uint64(runSize) {
					if key := r.high<<runBits | at; (r.young|r.old)>>at&1 != 0 && !last[key] {
						t.Fatalf("after %v there is a key %d", added, key)
					}
				}
				if !r.empty() {
					used++
				}
			}
			if g.n != young || g.used != used || young >= most+batch*runSize || old >= most+batch*runSize {
				t.Fatalf("after %v there are %d (counted %d) and %d keys in %d entries (counted %d), want fewer than %d", added, young, g.n, old, used, g.used, most+batch*runSize)
			}
		}
	})
}
