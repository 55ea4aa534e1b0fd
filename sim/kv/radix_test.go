package kv_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim/kv"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

// text is a text of segments, named by small numbers.
func text(pairs ...int) (list []workload.Segment) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, workload.Segment{ID: uint64(pairs[i]), Tokens: int32(pairs[i+1])})
	}
	return list
}

// whole is the entry of a text of n tokens that others may repeat.
func whole(n int64) kv.Entry { return kv.Entry{Tokens: int32(n), Common: int32(n)} }

// enter computes a whole text and leaves it in the tree, unlocked.
func enter(t *kv.Radix, s []workload.Segment) {
	n := (&workload.Content{Segments: s}).Tokens()
	p := t.Match(s, int32(n)-1)
	t.Lock(p)
	private := int(n) - p.Blocks
	t.Take(private)
	long := t.Insert(p, s, whole(n))
	t.Put(private - (long.Blocks - p.Blocks))
	t.Unlock(long)
}

func counts(t *kv.Radix) string {
	return fmt.Sprintf("%d available, %d evictable, %d shared", t.Available(), t.Evictable(), t.Shared())
}

// Two texts of a common beginning, s, go on as u and v. Sixty tokens are asked for: the older leaf does
// not suffice, both leaves go as a whole, and their parent stays.
func TestRadixEvictsWholeLeaves(t *testing.T) {
	const s, u, v = 1, 2, 3
	r := kv.NewRadix(180, 1)
	enter(r, text(s, 100, u, 50))
	enter(r, text(s, 100, v, 30))
	if got := counts(r); got != "0 available, 180 evictable, 0 shared" {
		t.Fatal(got)
	}
	r.Match(text(s, 100, v, 30), 130)
	r.Match(text(s, 100), 100)
	r.Take(60)
	if got := counts(r); got != "20 available, 100 evictable, 0 shared" {
		t.Fatal(got)
	}
	if p := r.Match(text(s, 100, u, 50, v, 1), 150); p.Blocks != 100 {
		t.Fatalf("%d blocks of the parent are left, want 100", p.Blocks)
	}
	r.Take(40) // the parent is a leaf now
	if got := counts(r); got != "80 available, 0 evictable, 0 shared" {
		t.Fatal(got)
	}
}

// A path that is locked is not evicted, even where it was matched longest ago; it is when the lock goes.
func TestRadixLocks(t *testing.T) {
	r := kv.NewRadix(100, 1)
	enter(r, text(1, 40))
	enter(r, text(2, 40))
	p := r.Match(text(1, 30, 9, 30), 59)
	if p.Blocks != 30 || p.Held != 0 {
		t.Fatalf("%+v, want 30 blocks, none held", p)
	}
	r.Lock(p)
	if q := r.Match(text(1, 20, 9, 30), 49); q.Blocks != 20 || q.Held != 20 {
		t.Fatalf("%+v, want 20 blocks, all held", q)
	}
	r.Lock(r.Match(text(1, 20, 9, 30), 49))
	if got := counts(r); got != "20 available, 50 evictable, 20 shared" {
		t.Fatal(got)
	}
	r.Take(70)
	if q := r.Match(text(1, 40), 39); q.Blocks != 30 {
		t.Fatalf("%+v, want the 30 locked blocks", q)
	}
	r.Unlock(p)
	if got := counts(r); got != "0 available, 10 evictable, 0 shared" {
		t.Fatal(got)
	}
}

// Pages are whole: a prompt of 64 tokens that is cached leaves its last page to compute.
func TestRadixPages(t *testing.T) {
	r := kv.NewRadix(10, 16)
	first := text(1, 40, 2, 30)
	r.Take(5)
	p := r.Insert(kv.Prefix{}, first, whole(70))
	if p.Blocks != 4 {
		t.Fatalf("%d pages entered, want 4", p.Blocks)
	}
	for _, c := range []struct {
		text   []workload.Segment
		limit  int32
		blocks int
	}{
		{first, 63, 3},
		{first, 64, 4},
		{text(1, 40, 3, 30), 69, 2}, // they part in the third page
		{text(1, 20, 1, 20), 39, 1}, // a segment that starts anew is another text
		{text(3, 40), 39, 0},
	} {
		if q := r.Match(c.text, c.limit); q.Blocks != c.blocks || q.Held != c.blocks {
			t.Errorf("%v: %+v, want %d blocks, all held", c.text, q, c.blocks)
		}
	}
}

// actor is a running sequence in both trees.
type actor struct {
	request  *workload.Request
	prefix   kv.Prefix
	node     *naive.TokenNode
	computed int32
	private  int
}

// trees runs the same operations on both trees.
type trees struct {
	fast *kv.Radix
	slow *naive.TokenTree
	page int32
}

func (w *trees) tokens(a *actor) int32 { return a.request.InputTokens + a.request.OutputTokens - 1 }

// match says whether the pool has room for the whole request.
func (w *trees) match(t *rapid.T, a *actor) bool {
	known := a.request.InputTokens
	a.prefix = w.fast.Match(a.request.Text(nil), known-1)
	a.node = w.slow.Match(naive.Tokens(a.request, known-1))
	tokens, held := a.node.Depth()
	if int32(tokens) != int32(a.prefix.Blocks)*w.page || int32(held) != int32(a.prefix.Held)*w.page {
		t.Fatalf("matched %+v, want %d tokens, %d held", a.prefix, tokens, held)
	}
	path := w.fast.Path(a.prefix, nil)
	for n := a.node; n != w.slow.Root(); n = n.Parent() {
		path = path[:len(path)-1]
	}
	if len(path) != 0 {
		t.Fatalf("the path has %d nodes more", len(path))
	}
	from, to := w.slow.Lost(naive.Tokens(a.request, known-1))
	if lost := w.fast.Lost(&a.prefix, a.request.Text(nil), known-1,
		common(a.request)); int32(lost)*w.page != int32(to-from) || from != tokens {
		t.Fatalf("%d blocks behind %d tokens are lost, want the tokens from %d to %d", lost, tokens, from, to)
	}
	blocks := int((w.tokens(a) + w.page - 1) / w.page)
	return blocks-a.prefix.Held <= w.fast.Free()
}

func (w *trees) admit(a *actor) {
	w.fast.Lock(a.prefix)
	w.slow.Lock(a.node)
	a.computed = int32(a.prefix.Blocks) * w.page
}

// compute gives a sequence n tokens.
func (w *trees) compute(a *actor, n int32) bool {
	blocks := int((a.computed + n + w.page - 1) / w.page)
	take := blocks - a.prefix.Blocks - a.private
	if take > w.fast.Free() {
		return false
	}
	w.fast.Take(take)
	w.slow.Take(take)
	a.private += take
	a.computed += n
	return true
}

func (w *trees) insert(a *actor, hit bool) {
	priority := a.request.Priority
	long := w.fast.Insert(a.prefix, a.request.Text(nil), kv.Entry{Tokens: a.computed, Common: common(a.request),
		Counts: hit, Priority: int32(priority)})
	a.node = w.slow.Insert(a.node, naive.Tokens(a.request, a.computed), hit, int(priority))
	a.private -= long.Blocks - a.prefix.Blocks
	a.prefix = long
}

func (w *trees) leave(a *actor) {
	w.fast.Put(a.private)
	w.slow.Put(a.private)
	w.fast.Unlock(a.prefix)
	w.slow.Unlock(a.node)
}

func (w *trees) compare(t *rapid.T, running []*actor) {
	evictable, locked, shared := w.slow.Count()
	if w.fast.Available() != w.slow.Available || w.fast.Evictable() != evictable || w.fast.Shared() != int64(shared) {
		t.Fatalf("%s, want %d available, %d evictable, %d shared", counts(w.fast), w.slow.Available, evictable, shared)
	}
	private := 0
	for _, a := range running {
		private += a.private
	}
	if sum := w.fast.Free() + locked + private; sum != w.fast.Usable() {
		t.Fatalf("%d blocks of %d are in some hand", sum, w.fast.Usable())
	}
}

// common is how many of the first tokens of a request others may begin with.
func common(r *workload.Request) int32 {
	n := min(int32(r.Content.Tokens()), r.InputTokens)
	if n == r.InputTokens && r.Session > 0 {
		n += r.OutputTokens
	}
	return n
}

// draw draws a request: of a conversation, with a shared beginning, or alone.
func draw(t *rapid.T, id int64) *workload.Request {
	r := &workload.Request{ID: id, OutputTokens: rapid.Int32Range(1, 12).Draw(t, "answer"),
		Priority: rapid.Int16Range(-2, 2).Draw(t, "priority")}
	length := rapid.Int32Range(1, 14)
	r.Session = rapid.Int32Range(0, 3).Draw(t, "session")
	var s []workload.Segment
	if r.Session > 0 {
		r.Turn = rapid.Int32Range(0, 2).Draw(t, "turn")
		for k := range r.Turn {
			s = append(s, workload.Segment{ID: uint64(100*r.Session + k), Tokens: 5},
				workload.Segment{ID: workload.OutputID(r.Session, k), Tokens: length.Draw(t, "earlier answer")})
		}
		s = append(s, workload.Segment{ID: uint64(100*r.Session + r.Turn), Tokens: 5})
	} else {
		for range rapid.IntRange(0, 3).Draw(t, "segments") {
			s = append(s, workload.Segment{ID: rapid.Uint64Range(1, 3).Draw(t, "segment"),
				Tokens: length.Draw(t, "length")})
		}
	}
	r.Content = &workload.Content{Segments: s}
	r.InputTokens = max(1, int32(r.Content.Tokens())+rapid.Int32Range(-2, 3).Draw(t, "unique"))
	return r
}

// The tree does what the tree with every token written out does.
func TestRadixTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := rapid.SampledFrom([]int32{1, 1, 2, 5}).Draw(t, "page")
		usable := rapid.IntRange(20, 80).Draw(t, "pool")
		w := &trees{fast: kv.NewRadix(usable, page), slow: naive.NewTokenTree(usable, int(page)), page: page}
		w.fast.Order = rapid.SampledFrom(kv.LeafOrders()).Draw(t, "order")
		w.slow.Order = w.fast.Order
		var running []*actor
		for k := range rapid.IntRange(1, 120).Draw(t, "operations") {
			if len(running) == 0 || rapid.IntRange(0, 3).Draw(t, "new") == 0 {
				if a := (&actor{request: draw(t, int64(k))}); w.match(t, a) &&
					rapid.IntRange(0, 2).Draw(t, "only looked at") > 0 {
					w.admit(a)
					running = append(running, a)
				}
				w.compare(t, running)
				continue
			}
			i := rapid.IntRange(0, len(running)-1).Draw(t, "sequence")
			a := running[i]
			left := w.tokens(a) - a.computed
			if left > 0 && rapid.IntRange(0, 4).Draw(t, "preempted") > 0 {
				n := rapid.Int32Range(1, left).Draw(t, "tokens")
				if w.compute(a, n) && rapid.Bool().Draw(t, "insert") {
					w.insert(a, rapid.Bool().Draw(t, "hit"))
				}
			} else {
				if left == 0 {
					w.insert(a, true)
				}
				w.leave(a)
				running = append(running[:i], running[i+1:]...)
			}
			w.compare(t, running)
		}
	})
}

// A request of a conversation: match, lock, chunk, end.
func BenchmarkRadix(b *testing.B) {
	r := kv.NewRadix(400_000, 1)
	texts := make([][]workload.Segment, 4096)
	for i := range texts {
		texts[i] = text(1, 500, i+10, 800, i+10_000, 300, i+20_000, 200)
	}
	for i := 0; b.Loop(); i++ {
		s := texts[i*2654435761%len(texts)]
		p := r.Match(s, 1599)
		r.Lock(p)
		private := 1800 - p.Blocks
		r.Take(private)
		prompt := r.Insert(p, s, kv.Entry{Tokens: 1600, Common: 1800, Counts: true})
		long := r.Insert(prompt, s, kv.Entry{Tokens: 1800, Common: 1800, Counts: true})
		r.Put(private - (long.Blocks - p.Blocks))
		r.Unlock(long)
	}
}
