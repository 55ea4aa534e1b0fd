package kv_test

import (
	"fmt"
	"strings"
	"testing"

	"clifftop/sim/kv"
	"clifftop/workload"
)

// The order in which a tree evicts five texts. a is entered four times, b twice, c, d and e once; b, d and e have their
// beginning s in common, whose hits are not theirs. The entry of d goes through b, and refreshes it. At last a is
// matched, which is no hit. Priorities: a 1, b -1 and then 3, c 0, d 3, e 2.
func TestLeafOrders(t *testing.T) {
	const s = 9
	names := []string{"a", "b", "c", "d", "e"}
	texts := [][]workload.Segment{text(1, 10), text(s, 5, 2, 10), text(3, 10), text(s, 5, 4, 10), text(s, 5, 5, 10)}
	for _, c := range []struct {
		order kv.LeafOrder
		want  string
	}{
		{kv.LeastRecent, "c b d e a"},
		{kv.FirstAdded, "a b c d e"},
		{kv.MostRecent, "a e d b c"},
		{kv.LastAdded, "e d c b a"},
		{kv.FewestHits, "c d e b a"},     // hits: a 4, b 2, c 1, d 1, e 1
		{kv.OneHitFirst, "c d e b a"},    // b and a are protected, and b was matched before a
		{kv.LowestPriority, "c a e b d"}, // 0, 1, 2, 3 and 3
	} {
		r := kv.NewRadix(100, 1)
		r.Order = c.order
		put := func(k int, priority int32) {
			n := (&workload.Content{Segments: texts[k]}).Tokens()
			r.Take(int(n))
			long := r.Insert(kv.Prefix{}, texts[k], kv.Entry{Tokens: int32(n), Common: int32(n), Counts: true,
				Priority: priority})
			r.Put(int(n) - long.Blocks)
			r.Unlock(long)
		}
		for range 4 {
			put(0, 1)
		}
		put(1, -1)
		put(1, 3)
		put(2, 0)
		put(3, 3)
		put(4, 2)
		r.Match(texts[0], 10)
		var got []string
		left := func() (list []bool) {
			for k := range texts {
				n := (&workload.Content{Segments: texts[k]}).Tokens()
				list = append(list, r.Peek(texts[k], int32(n)) == int(n))
			}
			return list
		}
		for before := left(); r.Evict(1) > 0; {
			now := left()
			for k := range texts {
				if before[k] && !now[k] {
					got = append(got, names[k])
				}
			}
			before = now
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v evicts %v, want %s", c.order, got, c.want)
		}
	}
}

// A split at an insertion leaves the lower part its hits, and gives the upper part those and one more. Of u, which has
// two hits, w shares three tokens: the upper part has three hits, the rest of u two, w one. x then has three hits, and
// is evicted after the rest of u, before the upper part, which has been matched since.
func TestHitsOfSplitLeaf(t *testing.T) {
	r := kv.NewRadix(100, 1)
	r.Order = kv.FewestHits
	put := func(s []workload.Segment) {
		r.Take(10)
		long := r.Insert(kv.Prefix{}, s, kv.Entry{Tokens: 10, Common: 10, Counts: true})
		r.Put(10 - long.Blocks)
		r.Unlock(long)
	}
	u, w, x := text(1, 3, 2, 7), text(1, 3, 3, 7), text(4, 10)
	put(u)
	put(u)
	for range 3 {
		put(x)
	}
	put(w)
	for _, want := range []string{"u 10, w 3, x 10", "u 3, w 3, x 10", "u 3, w 3, x 0", "u 0, w 0, x 0"} {
		r.Evict(1)
		got := fmt.Sprintf("u %d, w %d, x %d", r.Peek(u, 10), r.Peek(w, 10), r.Peek(x, 10))
		if got != want {
			t.Errorf("left %s, want %s", got, want)
		}
	}
}
