package kv

import (
	"testing"

	"clifftop/workload"
)

// A memory of four leaves knows the last four that were evicted, and none but the last eight. What comes back and is
// evicted again is not forgotten.
func TestRadixForgets(t *testing.T) {
	const pool, most = 10, 4 // room for one text: each evicts the one before
	r := newRadix(pool, 1)
	r.memory.most = most
	text := func(id int) []workload.Segment { return []workload.Segment{{ID: uint64(id) << 6, Tokens: pool}} }
	lost := func(id int) int {
		p := r.Match(text(id), pool)
		if p.Blocks > 0 {
			t.Fatalf("text %d is in the cache", id)
		}
		return r.Lost(&p, text(id), pool, pool)
	}
	enter := func(id int) {
		p := r.Match(text(id), pool)
		r.Lock(p)
		r.Lost(&p, text(id), pool, pool)
		r.Take(pool - p.Blocks)
		r.Unlock(r.Insert(p, text(id), treeEntry{Tokens: pool, Common: pool}))
	}
	const often = 1000
	forgotten := 0
	for id := range 60 {
		enter(often)
		enter(id)
		for k := range 60 {
			switch old := id - 1 - k; {
			case old < 0:
			case k < most/2 && lost(old) != pool:
				t.Fatalf("text %d is forgotten after %d others", old, 2*k)
			case k >= 2*most && lost(old) != 0:
				t.Fatalf("text %d is not forgotten after %d others", old, 2*k)
			case lost(old) == 0:
				forgotten++
			}
		}
		if lost(often) != pool {
			t.Fatal("what comes back again and again is forgotten")
		}
		if m := &r.memory; m.young.leaves > most || m.old.leaves > most {
			t.Fatalf("%d and %d leaves are remembered", m.young.leaves, m.old.leaves)
		}
	}
	if nodes := len(r.memory.young.tree.nodes); forgotten == 0 || nodes > 2*most+2 {
		t.Errorf("%d nodes, and %d texts are forgotten", nodes, forgotten)
	}
}

// Nobody asks for text of one's own again: it is not remembered.
func TestRadixKeepsCommonPrefix(t *testing.T) {
	r := newRadix(30, 1)
	text := []workload.Segment{{ID: 1, Tokens: 10}, {ID: 2, Tokens: 20}}
	r.Take(30)
	r.Unlock(r.Insert(treePrefix{}, text, treeEntry{Tokens: 30, Common: 10}))
	r.Take(30) // evicts it
	p := r.Match(text, 30)
	if lost := r.Lost(&p, text, 30, 30); p.Blocks != 0 || lost != 10 {
		t.Errorf("%d blocks are found and %d lost, want none and 10", p.Blocks, lost)
	}
	if lost := r.Lost(&p, text, 7, 30); lost != 7 {
		t.Errorf("%d blocks of 7 tokens are lost", lost)
	}
}
