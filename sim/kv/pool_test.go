package kv

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// fill takes n blocks and indexes those that are full.
func fill(p *blockPool, n, full int, key uint64) []int32 {
	names := p.Pop(nil, n)
	var keys Keys
	keys.Add(key, int32(full))
	p.Index(names, &keys, 0, int32(full))
	return names
}

// order is what the free blocks hold, in order of eviction.
func order(p *blockPool, keys ...uint64) string {
	var list []any
	for _, name := range p.list.all() {
		var holds any = "-"
		for _, key := range keys {
			if p.Find(key) == name {
				holds = key
			}
		}
		list = append(list, holds)
	}
	return strings.TrimSpace(fmt.Sprintln(list...))
}

// Three requests of 40, 40 and 64 tokens follow each other in a pool of eight blocks of 16. Where
// freed blocks without content go decides whether the third evicts the first.
func TestEvictionOrder(t *testing.T) {
	for _, c := range []struct {
		appendUnkeyed  bool
		afterA, afterB string
		evicts         bool
	}{
		{false, "- - - - - - 101 100", "- - - - 101 100 201 200", false},
		{true, "- - - - - - 101 100", "- - - 101 100 - 201 200", true},
	} {
		p := newCachingPool(8, c.appendUnkeyed)
		p.Release(fill(p, 3, 2, 100), 2)
		if got := order(p, 100, 101); got != c.afterA {
			t.Errorf("append %v: after A %s, want %s", c.appendUnkeyed, got, c.afterA)
		}
		p.Release(fill(p, 3, 2, 200), 2)
		if got := order(p, 100, 101, 200, 201); got != c.afterB {
			t.Errorf("append %v: after B %s, want %s", c.appendUnkeyed, got, c.afterB)
		}
		fill(p, 4, 4, 300)
		if evicted := p.Find(101) == 0; evicted != c.evicts {
			t.Errorf("append %v: A's second block evicted: %v", c.appendUnkeyed, evicted)
		}
	}
}

// Of blocks with the same content the one registered first is found, until it is evicted.
func TestDuplicates(t *testing.T) {
	p := newCachingPool(4, false)
	names := p.Pop(nil, 3)
	for i := range names {
		var keys Keys
		keys.Add(7, 1)
		p.Index(names[i:i+1], &keys, 0, 1)
	}
	p.Release(names[:1], 1)
	if got := p.Find(7); got != names[0] {
		t.Fatalf("found block %d, want the first, %d", got, names[0])
	}
	p.Pop(nil, 2) // the never used block, then the first
	if got := p.Find(7); got != names[1] {
		t.Fatalf("found block %d after the eviction, want %d", got, names[1])
	}
	if p.Free() != 0 || p.Shared() != 0 {
		t.Fatalf("%d free, %d shared", p.Free(), p.Shared())
	}
	p.Reference(names[1:2])
	if p.Shared() != 1 {
		t.Fatalf("%d shared, want 1", p.Shared())
	}
}

// slow is a pool that searches all its blocks for each operation.
type slow struct {
	free          []*block // in order of eviction
	found         []*block // that can be found, in order of registration
	appendUnkeyed bool
}

type block struct {
	key  uint64
	name int32
	refs int
}

func (s *slow) find(key uint64) *block {
	if i := slices.IndexFunc(s.found, func(b *block) bool { return b.key == key }); i >= 0 {
		return s.found[i]
	}
	return nil
}

func (s *slow) without(list []*block, b *block) []*block {
	return slices.DeleteFunc(list, func(c *block) bool { return c == b })
}

func (s *slow) pop() *block {
	b := s.free[0]
	s.free, s.found = s.free[1:], s.without(s.found, b)
	return &block{name: nameless, refs: 1}
}

func (s *slow) release(blocks []*block, full int) {
	var first []*block
	for i := len(blocks) - 1; i >= 0; i-- {
		b := blocks[i]
		if b.refs--; b.refs > 0 {
			continue
		}
		if i >= full && !slices.Contains(s.found, b) && !s.appendUnkeyed {
			first = append(first, b)
			continue
		}
		s.free = append(s.free, b)
	}
	s.free = append(first, s.free...)
}

// visible is what look-ups return: which blocks are found, and which of them are referenced.
func visible(s *slow) string {
	var list []string
	for _, b := range s.found {
		if s.find(b.key) == b {
			list = append(list, fmt.Sprint(b.name, " ", b.refs > 0))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// TestPool adds, grows and removes random sequences with common prefixes in a pool, and compares it with a slow one:
// which block is found, what is free and in which order, what is lost and what is reported.
func TestPool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const usable, texts, longest = 24, 4, 14
		unkeyed, listens := rapid.Bool().Draw(t, "append unkeyed"), rapid.Bool().Draw(t, "listens")
		p, s := newCachingPool(usable, unkeyed), &slow{appendUnkeyed: unkeyed}
		told, lost, evicted := map[uint64]bool{}, map[uint64]bool{}, 0
		if listens {
			p.LogEvictions()
			p.Tell(func(c Change) {
				if told[c.Key] == c.Stored {
					t.Fatalf("two calls for key %d: %v", c.Key, c.Stored)
				}
				told[c.Key] = c.Stored
			})
		}
		for range usable {
			s.free = append(s.free, &block{name: nameless})
		}
		// the first four blocks are those of all texts, runs begin at numbers that collide
		keyOf := func(text, i int) uint64 {
			if i < 4 {
				text = 0
			}
			return uint64(text)<<40 | uint64(i/6)<<20 | uint64(i%6)
		}
		keysOf := func(text int) *Keys {
			k := new(Keys)
			for i := range longest {
				k.Add(keyOf(text, i), 1)
			}
			return k
		}
		type sequence struct {
			text   int
			names  []int32
			blocks []*block
			full   int
		}
		var live []*sequence
		grow := func(q *sequence, n int) {
			q.names = p.Pop(q.names, n)
			for range n {
				if b := s.free[0]; slices.Contains(s.found, b) {
					lost[b.key] = true
					evicted++
				}
				q.blocks = append(q.blocks, s.pop())
			}
		}
		register := func(q *sequence, to int) {
			p.Index(q.names, keysOf(q.text), int32(q.full), int32(to))
			for i := q.full; i < to; i++ {
				b := q.blocks[i]
				b.key, b.name = keyOf(q.text, i), q.names[i]
				s.found = append(s.found, b)
			}
			q.full = to
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			epoch, before := p.Epoch(), visible(s)
			what := rapid.IntRange(0, 5).Draw(t, "what")
			if what < 3 || len(live) == 0 {
				q := &sequence{text: rapid.IntRange(1, texts).Draw(t, "text")}
				asked := rapid.IntRange(0, longest).Draw(t, "asked")
				q.names = p.Match(keysOf(q.text), int32(asked), nil)
				held := 0
				for i := range asked {
					b := s.find(keyOf(q.text, i))
					if b == nil {
						break
					}
					if i >= len(q.names) || q.names[i] != b.name {
						t.Fatalf("found %v, block %d is %d", q.names, i, b.name)
					}
					if b.refs > 0 {
						held++
					}
					q.blocks = append(q.blocks, b)
				}
				if len(q.names) != len(q.blocks) || p.Referenced(q.names) != held {
					t.Fatalf("found %v, %d of them held; want %d and %d", q.names, p.Referenced(q.names), len(q.blocks),
						held)
				}
				missing := 0
				for i := len(q.names); i < asked; i++ {
					if key := keyOf(q.text, i); !lost[key] && s.find(key) == nil {
						break
					}
					missing++
				}
				if got := p.Lost(keysOf(q.text), int32(len(q.names)), int32(asked)); got != int32(missing) {
					t.Fatalf("of text %d %d blocks from %d on are lost, want %d", q.text, got, len(q.names), missing)
				}
				p.Reference(q.names)
				for _, b := range q.blocks {
					if b.refs == 0 {
						s.free = s.without(s.free, b)
					}
					b.refs++
				}
				q.full = len(q.names)
				live = append(live, q)
			}
			k := rapid.IntRange(0, len(live)-1).Draw(t, "which")
			switch q := live[k]; {
			case what < 3 || what == 3:
				if n := rapid.IntRange(0, min(p.Free(), longest-len(q.names))).Draw(t, "grow"); n > 0 {
					grow(q, n)
				}
				register(q, rapid.IntRange(q.full, len(q.names)).Draw(t, "full"))
			default:
				full := rapid.IntRange(q.full, len(q.names)).Draw(t, "full, though not all can be found")
				p.Release(q.names, int32(full))
				s.release(q.blocks, full)
				live = slices.Delete(live, k, k+1)
			}
			var want []int32
			shared := 0
			for _, b := range s.free {
				want = append(want, b.name)
			}
			for i, b := range s.found {
				if slices.Index(s.found, b) == i {
					shared += max(0, b.refs-1)
				}
			}
			if got := p.list.all(); !slices.Equal(got, want) && len(got)+len(want) > 0 {
				t.Fatalf("free list %v, want %v", got, want)
			}
			if p.Free() != len(want) || p.Shared() != int64(shared) {
				t.Fatalf("%d free, %d shared; want %d and %d", p.Free(), p.Shared(), len(want), shared)
			}
			if epoch == p.Epoch() && visible(s) != before {
				t.Fatalf("the epoch is the same, but not what can be found: %v, then %v", before, visible(s))
			}
			for text := range texts + 1 {
				for i := range longest {
					key, name := keyOf(text, i), int32(0)
					b := s.find(key)
					if b != nil {
						name = b.name
					}
					if got := p.Find(key); got != name || listens && told[key] != (b != nil) {
						t.Fatalf("key %d: found %d (reported %v), want %d", key, got, told[key], name)
					}
				}
			}
		}
		if listens && len(p.Evicted()) != evicted {
			t.Fatalf("wrong evictions (want %d)", evicted)
		}
	})
}

// keyFor makes keys of which many have the same bucket and slot.
func keyFor(k int) uint64 { return uint64(k/5)<<32 | uint64(k%5)*11 }

// TestIndex compares the index with a map, with many collisions.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const keys = 60
		var x index
		x.init()
		model := map[uint64]int32{}
		for n := range rapid.IntRange(1, 200).Draw(t, "operations") {
			key := keyFor(rapid.IntRange(0, keys-1).Draw(t, "key"))
			if _, ok := model[key]; ok && rapid.Bool().Draw(t, "remove") {
				x.remove(key)
				delete(model, key)
			} else {
				x.put(key, int32(n+1))
				model[key] = int32(n + 1)
			}
			for k := range keys {
				if key := keyFor(k); x.find(key) != model[key] {
					t.Fatalf("key %d: found %d, want %d", key, x.find(key), model[key])
				}
			}
		}
	})
}

// TestKeys: keys are those that were added, in runs of any length, and a walk yields each of them once.
func TestKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k Keys
		var want []uint64
		for range rapid.IntRange(0, 8).Draw(t, "runs") {
			first, blocks := rapid.Uint64Range(0, 100).Draw(t, "first"), rapid.Int32Range(1, 20).Draw(t, "blocks")
			if len(want) > 0 && rapid.Bool().Draw(t, "goes on") {
				first = want[len(want)-1] + 1
			}
			k.Add(first, blocks)
			for i := range uint64(blocks) {
				want = append(want, first+i)
			}
		}
		if int(k.Len()) != len(want) {
			t.Fatalf("%d blocks, want %d", k.Len(), len(want))
		}
		for i, key := range want {
			if got := k.At(int32(i)); got != key {
				t.Fatalf("block %d of %v has key %d", i, want, got)
			}
		}
		from, to := rapid.IntRange(0, len(want)).Draw(t, "from"), rapid.IntRange(0, len(want)).Draw(t, "to")
		size := rapid.SampledFrom([]uint64{1, 8, 64}).Draw(t, "size")
		walk := k.walk(int32(from), int32(to))
		var got []uint64
		for key, blocks := walk.next(size); blocks > 0; key, blocks = walk.next(size) {
			if key/size != (key+uint64(blocks)-1)/size {
				t.Fatalf("%d keys from %d on are not of one group of %d", blocks, key, size)
			}
			for i := range uint64(blocks) {
				got = append(got, key+i)
			}
		}
		if !slices.Equal(got, want[from:max(from, to)]) && len(got) > 0 {
			t.Fatalf("from %d to %d of %v: %v", from, to, want, got)
		}
		if len(got) != max(0, to-from) {
			t.Fatalf("from %d to %d: %d keys", from, to, len(got))
		}
	})
}
