package sim

import (
	"slices"

	"clifftop/sim/kv"
	"clifftop/sim/route"
	"clifftop/workload"
)

// cacheIndex is what routers may know of the current content of prefix caches, as KV events report it.
type cacheIndex struct {
	watched   bool           // some router looks into caches
	holders   kv.PrefixIndex // replicas by hash of a block that their caches hold
	blockSize []int32        // by replica; 0 if its blocks are not found by hashes
	behind    []int32        // replicas whose cohorts may owe blocks
	isBehind  []bool         // by replica
}

func newCacheIndex(n int, watched bool) cacheIndex {
	return cacheIndex{watched: watched, blockSize: make([]int32, n), isBehind: make([]bool, n)}
}

// watch subscribes to the cache of a new replica, which is empty.
func (c *cacheIndex) watch(r *Replica) {
	i := r.Index()
	c.blockSize[i] = r.HashedBlocks()
	if !c.watched || c.blockSize[i] == 0 {
		return
	}
	c.holders.Clear(i)
	r.TellBlocks(func(key uint64, held bool) {
		if held {
			c.holders.Add(key, i)
		} else {
			c.holders.RemoveKey(key, i)
		}
	})
}

// fallsBehind notes that the cohort of a replica has not yet taken all its blocks.
func (c *cacheIndex) fallsBehind(r *Replica) {
	if !c.isBehind[r.Index()] && r.Unsettled() {
		c.isBehind[r.Index()] = true
		c.behind = append(c.behind, int32(r.Index()))
	}
}

// settleCaches makes all cohorts take their blocks. Few of many replicas have iterated since the last request.
func (f *fleet) settleCaches() {
	c := &f.caches
	for _, i := range c.behind {
		f.replicas[i].Settle()
		c.isBehind[i] = false
	}
	c.behind = c.behind[:0]
}

// watchesCaches reports whether a router looks into prefix caches.
func (f *Fleet) watchesCaches() bool {
	rules := f.Routers
	if f.Disaggregation != nil {
		rules = append(slices.Clone(rules), f.Disaggregation.Decoders...)
	}
	for _, rule := range rules {
		if bound := route.Bind(rule); bound.Requirements().Events {
			return true
		}
	}
	return false
}

// Cached implements [route.View]. It returns the tokens that an admission would reuse now, and does not change the
// order of eviction. Replicas that are watched run without spans, so that their blocks are up to date.
func (t *router) Cached(k int, q *workload.Request) int32 {
	if !q.SharesPrompt() {
		return 0
	}
	i := t.choices[k]
	size := t.fleet.caches.blockSize[i]
	if size == 0 {
		return t.fleet.replicas[i].Peek(q)
	}
	if t.asked != size {
		t.ask(q, size)
	}
	if int(i) >= len(t.held) {
		return 0
	}
	return min(t.held[i], (q.InputTokens-1)/size) * size // one token is always computed
}

// ask looks up a prompt in the caches with blocks of a size.
func (t *router) ask(q *workload.Request, size int32) {
	t.fleet.settleCaches()
	t.asked, t.path = size, t.path[:0]
	walk := workload.NewBlockKeys(q, size)
	for range q.InputTokens / size {
		key, private := walk.Next()
		if private {
			break
		}
		t.path = append(t.path, key)
	}
	t.held = t.fleet.caches.holders.Match(t.path, t.held)
}
