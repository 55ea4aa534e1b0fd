package kv

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// fill takes n blocks and indexes those that are full.
func fill(p *Pool, n, full int, key uint64) []int32 {
	ids := p.Pop(nil, n)
	for i := range full {
		p.Index(ids[i:i+1], []uint64{key + uint64(i)})
	}
	return ids
}

// Three requests of 40, 40 and 64 tokens follow each other in a pool of eight blocks of 16. Where
// freed blocks without content go decides whether the third evicts the first.
func TestEvictionOrder(t *testing.T) {
	for _, c := range []struct {
		appendUnkeyed  bool
		afterA, afterB string
		evicts         bool
	}{
		{false, "[3 4 5 6 7 8 2 1]", "[5 6 7 8 2 1 4 3]", false},
		{true, "[4 5 6 7 8 3 2 1]", "[7 8 3 2 1 6 5 4]", true},
	} {
		p := NewCache(8, c.appendUnkeyed)
		p.Release(fill(p, 3, 2, 100), 2)
		if got := fmt.Sprint(p.FreeList()); got != c.afterA {
			t.Errorf("append %v: after A %s, want %s", c.appendUnkeyed, got, c.afterA)
		}
		p.Release(fill(p, 3, 2, 200), 2)
		if got := fmt.Sprint(p.FreeList()); got != c.afterB {
			t.Errorf("append %v: after B %s, want %s", c.appendUnkeyed, got, c.afterB)
		}
		fill(p, 4, 4, 300)
		if evicted := p.Find(101) == 0; evicted != c.evicts {
			t.Errorf("append %v: A's second block evicted: %v", c.appendUnkeyed, evicted)
		}
	}
}

// Of two blocks with the same content the one registered first is found, until it is evicted.
func TestDuplicates(t *testing.T) {
	p := NewCache(4, false)
	ids := p.Pop(nil, 3)
	for _, id := range ids {
		p.Index([]int32{id}, []uint64{7})
	}
	p.Release(ids[:1], 1)
	if got := p.Find(7); got != ids[0] {
		t.Fatalf("found block %d, want the first, %d", got, ids[0])
	}
	p.Pop(nil, 2) // the never used block, then ids[0]
	if got := p.Find(7); got != ids[1] {
		t.Fatalf("found block %d after the eviction, want %d", got, ids[1])
	}
	if p.Free() != 0 || p.Shared() != 0 {
		t.Fatalf("%d free, %d shared", p.Free(), p.Shared())
	}
	p.Reference(ids[1])
	if p.Shared() != 1 {
		t.Fatalf("%d shared, want 1", p.Shared())
	}
}

// keyOf makes keys of which many have the same bucket and slot.
func keyOf(k int) uint64 { return uint64(k/5)<<32 | uint64(k%5)*11 }

const keys = 60

// The index answers like a map of lists, whatever collides.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const blocks = 24
		var x index
		x.init(blocks)
		model := map[uint64][]int32{}
		in := map[int32]uint64{}
		for range rapid.IntRange(1, 200).Draw(t, "operations") {
			id := int32(rapid.IntRange(1, blocks).Draw(t, "block"))
			if key, ok := in[id]; ok {
				x.remove(id)
				delete(in, id)
				model[key] = slices.DeleteFunc(model[key], func(i int32) bool { return i == id })
			} else {
				key := keyOf(rapid.IntRange(0, keys-1).Draw(t, "key"))
				x.insert(id, key)
				in[id] = key
				model[key] = append(model[key], id)
			}
			for k := range keys {
				key := keyOf(k)
				want := int32(0)
				if list := model[key]; len(list) > 0 {
					want = list[0]
				}
				if got := x.find(key); got != want {
					t.Fatalf("key %d: found block %d, want %d", key, got, want)
				}
			}
		}
	})
}
