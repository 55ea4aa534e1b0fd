package sim

import (
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/kv"
	"clifftop/sim/route"
	"clifftop/workload"
)

// cacheIndex is what routers and observers may know of the current content of prefix caches, as KV events report it.
type cacheIndex struct {
	watched   bool           // some router looks into caches
	observed  bool           // some observer gets their changes
	holders   kv.PrefixIndex // replicas by hash of a block that their caches hold
	blockSize []int32        // by replica; 0 if its blocks are not found by hashes
	behind    []int32        // replicas whose cohorts may owe blocks
	isBehind  []bool         // by replica

	changes []event.CacheChange // by replica: those that were not reported yet
	changed []int32             // the replicas that have some
}

func newCacheIndex(n int, watched, observed bool) cacheIndex {
	c := cacheIndex{watched: watched, observed: observed, blockSize: make([]int32, n), isBehind: make([]bool, n)}
	if observed {
		c.changes = make([]event.CacheChange, n)
	}
	return c
}

// followed reports whether the caches must be up to date after every event.
func (c *cacheIndex) followed() bool { return c.watched || c.observed }

// watch subscribes to the cache of a new replica, which is empty. restarted means that it replaces another one.
func (c *cacheIndex) watch(r *Replica, restarted bool) {
	i := r.Index()
	c.blockSize[i] = r.KV().HashedBlocks()
	watched := c.watched && c.blockSize[i] > 0
	if watched {
		c.holders.Clear(i)
	}
	if !watched && !c.observed {
		return
	}
	size := r.TellBlocks(func(b kv.Change) {
		switch {
		case !watched:
		case b.Stored:
			c.holders.Add(b.Key, i)
		default:
			c.holders.RemoveKey(b.Key, i)
		}
		if c.observed {
			x := c.change(i)
			x.Blocks = append(x.Blocks, event.CacheBlock{Key: b.Key, Parent: b.Parent, Place: b.Place,
				Stored: b.Stored})
		}
	})
	if c.observed && size > 0 {
		c.changes[i].BlockSize = size
		if restarted {
			x := c.change(i)
			x.Reset, x.Blocks = true, x.Blocks[:0]
		}
	}
}

// change returns the change of the cache of replica i that the current event makes.
func (c *cacheIndex) change(i int) *event.CacheChange {
	x := &c.changes[i]
	if !x.Reset && len(x.Blocks) == 0 {
		c.changed = append(c.changed, int32(i))
	}
	return x
}

// reportCaches reports the changes of caches by the event at the instant at to observers.
func (f *fleet) reportCaches(at clock.Time) {
	f.settleCaches()
	c := &f.caches
	for _, i := range c.changed {
		x := &c.changes[i]
		x.At, x.Replica = at, int(i)
		f.obs.CacheChanged(x)
		x.Reset, x.Blocks = false, x.Blocks[:0]
	}
	c.changed = c.changed[:0]
}

// fallsBehind notes that the cohort of a replica has not yet taken all its blocks.
func (c *cacheIndex) fallsBehind(r *Replica) {
	if !c.isBehind[r.Index()] && r.KV().Unsettled() {
		c.isBehind[r.Index()] = true
		c.behind = append(c.behind, int32(r.Index()))
	}
}

// settleCaches makes all cohorts take their blocks. Few of many replicas have iterated since the last request.
func (f *fleet) settleCaches() {
	c := &f.caches
	for _, i := range c.behind {
		f.replicas[i].KV().Settle()
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
		return t.fleet.replicas[i].KV().Peek(q)
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
