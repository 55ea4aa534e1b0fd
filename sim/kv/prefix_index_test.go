package kv

import (
	"testing"

	"pgregory.net/rapid"
)

// TestPrefixIndex compares the index with a map of maps.
func TestPrefixIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		caches := rapid.SampledFrom([]int{1, 3, 64, 65, 200}).Draw(t, "caches")
		key := rapid.Custom(func(t *rapid.T) uint64 { // collides in part, and more than the first room holds
			return rapid.Uint64Range(0, 3).Draw(t, "high")<<57 | rapid.Uint64Range(0, 60).Draw(t, "low")
		})
		h, naive := new(PrefixIndex), map[uint64]map[int]bool{}
		places := map[uint64]int32{}
		drop := func(k uint64, c int) {
			if delete(naive[k], c); len(naive[k]) == 0 {
				delete(naive, k)
				delete(places, k)
			}
		}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			k, c := key.Draw(t, "key"), rapid.IntRange(0, caches-1).Draw(t, "cache")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			default:
				place, fresh := h.Add(k, c)
				if fresh == naive[k][c] {
					t.Fatalf("key %x enters cache %d: new %v", k, c, fresh)
				}
				if was, ok := places[k]; ok && was != place {
					t.Fatalf("key %x moves from place %d to %d", k, was, place)
				}
				if naive[k] == nil {
					naive[k] = map[int]bool{}
				}
				naive[k][c], places[k] = true, place
			case 0, 1:
				h.RemoveKey(k, c)
				drop(k, c)
			case 2:
				if place, ok := places[k]; ok {
					h.Remove(place, c)
					drop(k, c)
				}
			case 3:
				if rapid.IntRange(0, 9).Draw(t, "clear") == 0 {
					h.Clear(c)
					for k := range naive {
						drop(k, c)
					}
				}
			}
			if h.Len() != len(naive) {
				t.Fatalf("%d blocks, want %d", h.Len(), len(naive))
			}
			text := rapid.SliceOfN(key, 0, 4).Draw(t, "text")
			held := h.Match(text, nil)
			for c := range caches {
				want := int32(0)
				for int(want) < len(text) && naive[text[want]][c] {
					want++
				}
				got := int32(0)
				if c < len(held) {
					got = held[c]
				}
				if got != want {
					t.Fatalf("cache %d holds %d blocks of %x, want %d", c, got, text, want)
				}
			}
		}
	})
}
