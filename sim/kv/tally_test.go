package kv

import (
	"testing"

	"pgregory.net/rapid"
)

// A tally counts like a map.
func TestTally(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tally Tally
		want := map[uint64]int32{}
		for range rapid.IntRange(1, 100).Draw(t, "operations") {
			number := rapid.Uint64Range(0, 40).Draw(t, "number")
			n := rapid.Int32Range(-want[number], 3).Draw(t, "n")
			if want[number] += n; want[number] == 0 {
				delete(want, number)
			}
			if got := tally.Add(number, n); got != want[number] {
				t.Fatalf("%d more of %d makes %d, want %d", n, number, got, want[number])
			}
			for number := range uint64(42) {
				if got := tally.Of(number); got != want[number] || tally.Len() != len(want) {
					t.Fatalf("%d of %d, and %d numbers; want %d and %d", got, number, tally.Len(), want[number], len(want))
				}
			}
		}
	})
}
