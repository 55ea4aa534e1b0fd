package pq

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestQueueSorts compares the queue with a sorted slice over random calls.
func TestQueueSorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var want []Item[int]
		calls := rapid.SliceOf(rapid.IntRange(0, 9)).Draw(t, "calls")
		for n, call := range calls {
			switch {
			case call < 3 && q.Len() > 0:
				top := *q.Top()
				if got := q.Pop(); got != want[0] || top != got {
					t.Fatalf("popped %v with top %v, want %v", got, top, want[0])
				}
				want = want[1:]
			case call == 3:
				q.Retain(func(i *Item[int]) bool { return i.Value%2 == 0 })
				want = slices.DeleteFunc(want, func(i Item[int]) bool { return i.Value%2 != 0 })
			default:
				item := Item[int]{Key: rapid.Int64Range(-3, 3).Draw(t, "key"), Tie: int64(n), Value: n}
				q.Push(item)
				want = append(want, item)
				slices.SortFunc(want, func(a, b Item[int]) int {
					return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Tie, b.Tie))
				})
			}
			if q.Len() != len(want) {
				t.Fatalf("%d items, want %d", q.Len(), len(want))
			}
		}
	})
}

func BenchmarkPopPush(b *testing.B) {
	for _, n := range []int{4, 256, 100_000} {
		var q Queue[int32]
		random := uint64(1)
		draw := func() int64 {
			random = random*6364136223846793005 + 1442695040888963407
			return int64(random >> 24)
		}
		for range n {
			q.Push(Item[int32]{Key: draw()})
		}
		b.Run("", func(b *testing.B) {
			for b.Loop() {
				item := q.Pop()
				item.Key += draw()
				q.Push(item)
			}
		})
	}
}
