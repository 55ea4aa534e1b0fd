package naive

import (
	"slices"
	"testing"
)

// TestFreeList follows three requests through a pool of 8 blocks: two of two and a half
// blocks, whose full blocks have keys, and then one of four.
func TestFreeList(t *testing.T) {
	for _, test := range []struct {
		name          string
		appendUnkeyed bool
		afterFirst    []int
		afterSecond   []int
		third         []int
		evicted       []uint64
	}{
		{"recent", false, []int{3, 4, 5, 6, 7, 8, 2, 1}, []int{5, 6, 7, 8, 2, 1, 4, 3}, []int{5, 6, 7, 8}, nil},
		{"older", true, []int{4, 5, 6, 7, 8, 3, 2, 1}, []int{7, 8, 3, 2, 1, 6, 5, 4}, []int{7, 8, 3, 2}, []uint64{102}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPool(8, test.appendUnkeyed)
			pop := func(n int) (list []int) {
				for range n {
					list = append(list, p.pop())
				}
				return list
			}
			run := func(first uint64) {
				list := pop(3)
				p.enter(list[0], first)
				p.enter(list[1], first+1)
				p.release(list)
			}
			run(101)
			if got := p.order(); !slices.Equal(got, test.afterFirst) {
				t.Errorf("after the first request: free list %v, want %v", got, test.afterFirst)
			}
			run(201)
			if got := p.order(); !slices.Equal(got, test.afterSecond) {
				t.Errorf("after the second request: free list %v, want %v", got, test.afterSecond)
			}
			if got := pop(4); !slices.Equal(got, test.third) {
				t.Errorf("the third request has blocks %v, want %v", got, test.third)
			}
			for _, key := range []uint64{101, 102, 201, 202} {
				if _, ok := p.find(key); ok == slices.Contains(test.evicted, key) {
					t.Errorf("key %d: found %v, want evicted %v", key, ok, test.evicted)
				}
			}
		})
	}
}

// TestFreedTogether checks the order of blocks without keys, and that a block with two holders
// stays until the second lets go.
func TestFreedTogether(t *testing.T) {
	p := newPool(6, false)
	a := []int{p.pop(), p.pop(), p.pop(), p.pop()}
	p.enter(a[0], 7)
	p.enter(a[1], 8)
	p.take(a[:1])
	p.release(a)
	if got, want := p.order(), []int{4, 3, 5, 6, 2}; !slices.Equal(got, want) {
		t.Errorf("free list %v, want %v", got, want)
	}
	if p.used != 1 || p.shared != 0 || p.free() != 5 {
		t.Errorf("used %d, shared %d, free %d, want 1, 0, 5", p.used, p.shared, p.free())
	}
	p.release(a[:1])
	if got, want := p.order(), []int{4, 3, 5, 6, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("free list %v, want %v", got, want)
	}
}

// TestFirstEnteredIsHit checks that of two blocks with the same key the first is found, then the other.
func TestFirstEnteredIsHit(t *testing.T) {
	p := newPool(2, false)
	a, b := p.pop(), p.pop()
	p.enter(b, 7)
	p.enter(a, 7)
	if got, _ := p.find(7); got != b {
		t.Errorf("found block %d, want %d", got, b)
	}
	p.release([]int{b})
	p.pop()
	if got, ok := p.find(7); !ok || got != a {
		t.Errorf("after the eviction: found block %d, %v, want %d", got, ok, a)
	}
}
