package heap

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestHeapSorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Heap[int]{Before: func(a, b *int) bool { return *a < *b }}
		var in []int
		for _, x := range rapid.SliceOf(rapid.IntRange(-20, 20)).Draw(t, "items") {
			if x%5 == 0 && h.Len() > 0 { // take one out in between
				least := slices.Min(in)
				if got := h.Pop(); got != least {
					t.Fatalf("popped %d, want %d", got, least)
				}
				in = slices.Delete(in, slices.Index(in, least), slices.Index(in, least)+1)
			}
			h.Push(x)
			in = append(in, x)
		}
		slices.Sort(in)
		for _, want := range in {
			if top := *h.Top(); top != want {
				t.Fatalf("top is %d, want %d", top, want)
			}
			if got := h.Pop(); got != want {
				t.Fatalf("popped %d, want %d", got, want)
			}
		}
	})
}
