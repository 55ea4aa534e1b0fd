package kv

import (
	"testing"

	"pgregory.net/rapid"
)

// A tally counts like a map.
func TestCounter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tally Counter
		want := map[uint64]int{}
		for range rapid.IntRange(1, 200).Draw(t, "operations") {
			number := rapid.Uint64Range(0, 40).Draw(t, "number")
			if rapid.Bool().Draw(t, "add") {
				tally.Add(number)
				want[number]++
			} else if got := tally.Take(number); got != (want[number] > 0) {
				t.Fatalf("%d was there: %v, want a count of %d", number, got, want[number])
			} else if want[number]--; want[number] <= 0 {
				delete(want, number)
			}
			if tally.Len() != len(want) {
				t.Fatalf("%d numbers, want %d", tally.Len(), len(want))
			}
		}
		for number, count := range want {
			for ; count > 0; count-- {
				if !tally.Take(number) {
					t.Fatalf("%d is missing (want %d times more)", number, count)
				}
			}
		}
		if tally.Len() != 0 {
			t.Fatalf("%d numbers are left", tally.Len())
		}
	})
}
