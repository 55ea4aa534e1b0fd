package route

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// prompt is a request whose prompt is made of named parts of four tokens each, and of some that no other request has.
func prompt(id int64, unique int32, names ...string) *workload.Request {
	r := &workload.Request{ID: id, InputTokens: unique, OutputTokens: 1}
	var c workload.Content
	for _, n := range names {
		c.Segments = append(c.Segments, workload.Segment{ID: workload.SegmentID(n), Tokens: 4})
		r.InputTokens += 4
	}
	if len(names) > 0 {
		r.Content = &c
	}
	return r
}

// plain is the same as prefixes, written for clarity: a list of blocks for each replica, the least recently used first.
type plain struct {
	*prefixes
	lists [][]plainBlock
}

type plainBlock struct {
	text string // empty if no other request can have it
	at   clock.Time
}

// texts are the blocks of a prompt as chains of names.
func texts(r *workload.Request, names []string) (list []string) {
	chain := "/"
	for _, n := range names {
		chain += n + "/"
		list = append(list, chain)
	}
	for len(list) < int(r.InputTokens/4) {
		list = append(list, "")
	}
	return list
}

func (p *plain) match(now clock.Time, texts []string, replica int) (n int32) {
	for _, t := range texts {
		if t == "" || !slices.ContainsFunc(p.lists[replica], func(b plainBlock) bool {
			return b.text == t && (p.ttl == 0 || b.at.Add(p.ttl) > now)
		}) {
			break
		}
		n++
	}
	return n
}

func (p *plain) add(now clock.Time, texts []string, replica int) {
	texts = slices.Clone(texts)
	if !p.roots {
		slices.Reverse(texts)
	}
	l := &p.lists[replica]
	*l = slices.DeleteFunc(*l, func(b plainBlock) bool { return p.ttl > 0 && b.at.Add(p.ttl) <= now })
	for _, t := range texts {
		if t != "" {
			*l = slices.DeleteFunc(*l, func(b plainBlock) bool { return b.text == t })
		}
		*l = append(*l, plainBlock{t, now})
	}
	if p.bound > 0 && len(*l) > int(p.bound) {
		*l = (*l)[len(*l)-int(p.bound):]
	}
}

// TestPrefixes compares the index with plain lists.
func TestPrefixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.SampledFrom([]int{1, 3, 70}).Draw(t, "replicas")
		x := &prefixes{
			tokens: 4, counts: true, roots: rapid.Bool().Draw(t, "roots first"),
			bound: rapid.SampledFrom([]int64{0, 3, 8}).Draw(t, "bound"),
			ttl:   clock.Duration(rapid.SampledFrom([]int64{0, 5}).Draw(t, "ttl")),
		}
		p := &plain{x, make([][]plainBlock, replicas)}
		now := clock.Time(0)
		for id := range rapid.IntRange(1, 40).Draw(t, "requests") {
			now += clock.Time(rapid.Int64Range(0, 3).Draw(t, "gap"))
			names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 4).Draw(t, "prompt")
			r := prompt(int64(id), rapid.Int32Range(0, 9).Draw(t, "unique"), names...)
			x.match(now, r, 0)
			blocks := texts(r, names)
			for i := range replicas {
				want := p.match(now, blocks, i)
				if got := x.of(i); got != want {
					t.Fatalf("request %d, replica %d: %d blocks of %q, want %d", id, i, got, blocks, want)
				}
			}
			if int(x.blocks()) != len(blocks) {
				t.Fatalf("request %d: %d blocks, want %d", id, x.blocks(), len(blocks))
			}
			to := rapid.IntRange(0, replicas-1).Draw(t, "to")
			x.add(now, to)
			p.add(now, blocks, to)
			if rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
				x.removeReplica(to)
				p.lists[to] = nil
			}
			if got, want := x.size(to), int64(len(p.lists[to])); got != want {
				t.Fatalf("request %d: replica %d holds %d blocks, want %d", id, to, got, want)
			}
		}
	})
}

// TestPrefixesForget: without a bound nothing is counted, and blocks that no replica holds leave no trace.
func TestPrefixesForget(t *testing.T) {
	x := &prefixes{tokens: 4, bound: 2}
	for i := range 100 {
		r := prompt(int64(i), 0, "head", string(rune('a'+i%26)), string(rune('A'+i%20)))
		x.match(0, r, 0)
		x.add(0, i%2)
	}
	if n := x.holders.Len(); n > 4 {
		t.Errorf("two replicas of two blocks each have %d blocks", n)
	}
}
