package idtable

import (
	"testing"

	"pgregory.net/rapid"
)

// TestTable: a table returns the same values as a map for any order of additions and removals, and does not move
// values.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table Table[int64]
		want, places := map[int64]int64{}, map[int64]*int64{}
		for n := range rapid.Int64Range(1, 200).Draw(t, "operations") {
			id := rapid.Int64Range(-20, 400).Draw(t, "ID")
			if _, ok := want[id]; ok || rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				table.Remove(id)
				delete(want, id)
				delete(places, id)
			} else {
				places[id] = table.Add(id)
				if again := table.Add(id); again != places[id] {
					t.Fatalf("ID %d has the places %v and %v", id, places[id], again)
				}
				*places[id], want[id] = n, n
			}
			for id := int64(-40); id < 410; id++ {
				value, ok := want[id]
				if got := table.Find(id); got != places[id] || ok && *got != value {
					t.Fatalf("ID %d: found %v, want %v with %d", id, got, places[id], value)
				}
			}
			if len(table.pages) > 0 && table.pages[0] == nil {
				t.Fatalf("%d pages, of which the first is not used", len(table.pages))
			}
			if table.Len() != len(want) || len(want) == 0 && len(table.pages) > 0 {
				t.Fatalf("%d values on %d pages, want %d", table.Len(), len(table.pages), len(want))
			}
		}
	})
}

// TestLongOne: while one old ID remains, the pages up to the latest ID are allocated once, not again for each ID that
// is added and removed.
func TestLongOne(t *testing.T) {
	var table Table[int]
	table.Add(3)
	for id := int64(1); id < 10_000; id++ {
		table.Add(id * pageSize)
		if table.Remove(id * pageSize); int64(len(table.pages)) != id+1 {
			t.Fatalf("%d pages are left after ID %d", len(table.pages), id*pageSize)
		}
	}
	if table.Remove(3); len(table.pages) != 0 {
		t.Errorf("%d pages of nothing", len(table.pages))
	}
}
