package kv_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim/kv"
	"clifftop/sim/simtest/naive"
)

// use is what a tier sees of an access: a use of a chunk that it has, or the chunk's coming.
func use(t *kv.Tier, key uint64) (evicted string) {
	if t.Has(key) {
		t.Use(key)
		return ""
	}
	if gone, ok := t.Put(key); ok {
		return fmt.Sprintf("%c", rune(gone))
	}
	return ""
}

func TestTierEvictions(t *testing.T) {
	for _, c := range []struct {
		rule     kv.Eviction
		accesses string
		evicted  string
	}{
		{kv.LRU, "abcd", "a"},
		{kv.LRU, "abcad", "b"},
		{kv.LRU, "abcadbe", "bca"},
		// A scan of chunks that come once leaves those in place that were used twice: c, d and e go through one seat.
		{kv.ARC, "aabbcde", "cd"},
		{kv.LRU, "aabbcde", "ab"},
		// c was evicted lately and comes again: the recent list grows, and the frequent list loses a.
		{kv.ARC, "aabbcdc", "ca"},
	} {
		t.Run(c.rule.String()+" "+c.accesses, func(t *testing.T) {
			tier := kv.NewTier(3, c.rule)
			got := ""
			for _, key := range c.accesses {
				got += use(tier, uint64(key))
			}
			if got != c.evicted {
				t.Errorf("evicted %q, want %q", got, c.evicted)
			}
		})
	}
}

// TestTierTruth compares tiers with plain ones.
func TestTierTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom(kv.Evictions()).Draw(t, "rule")
		capacity := rapid.IntRange(1, 8).Draw(t, "capacity")
		tier, plain := kv.NewTier(capacity, rule), &naive.Tier{Capacity: capacity, Rule: rule}
		for range rapid.IntRange(1, 200).Draw(t, "accesses") {
			key := rapid.Uint64Range(1, 20).Draw(t, "key")
			if tier.Has(key) != plain.Has(key) {
				t.Fatalf("chunk %d is there: %v, want %v", key, tier.Has(key), plain.Has(key))
			}
			if tier.Has(key) {
				tier.Use(key)
				plain.Use(key)
				continue
			}
			gone, evicted := tier.Put(key)
			want := plain.Put(key)
			if evicted != (len(want) > 0) || evicted && gone != want[0] || tier.Len() != plain.Len() ||
				tier.Len() > capacity {
				t.Fatalf("chunk %d comes, and %d, %v goes of %d; want %v of %d", key, gone, evicted, tier.Len(), want,
					plain.Len())
			}
		}
	})
}
