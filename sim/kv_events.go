package sim

import (
	"slices"

	"clifftop/sim/route"
	"clifftop/workload"
)

// What routers may know of prefix caches, as KV events tell it: what is in them now.

// peeks reports whether a router looks into prefix caches.
func (f *Fleet) peeks() bool {
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

// cold notes that the caches of a replica are empty, which is new or starts anew, and makes them tell what comes into
// them.
func (e *Simulation) cold(r *Replica) {
	routers := e.routers
	if e.disaggregated != nil {
		routers = append(slices.Clone(routers), e.disaggregated.decoders...)
	}
	for _, t := range routers {
		t.rule.CacheReset(r.Index())
	}
	if !e.watchesCaches || r.HashedBlocks() == 0 {
		return
	}
	e.holders.Clear(r.Index())
	r.TellBlocks(func(key uint64, held bool) {
		if held {
			e.holders.Add(key, r.Index())
		} else {
			e.holders.RemoveKey(key, r.Index())
		}
	})
}

// Cached implements [route.View]. It is what an admission would reuse now, and moves nothing in the order of eviction.
// That holds for replicas that are stepped singly, whose blocks are those of now.
func (t *router) Cached(k int, q *workload.Request) int32 {
	if !q.SharesPrompt() {
		return 0
	}
	i := t.choices[k]
	size := t.hashed[i]
	if size == 0 {
		return t.replicas[i].Peek(q)
	}
	if t.asked != size {
		t.ask(q, size)
	}
	if int(i) >= len(t.held) {
		return 0
	}
	return min(t.held[i], (q.InputTokens-1)/size) * size // one token is always computed
}

// ask finds what the caches with blocks of a size hold of a prompt.
func (t *router) ask(q *workload.Request, size int32) {
	t.catchUp()
	t.asked, t.path = size, t.path[:0]
	walk := workload.NewBlockKeys(q, size)
	for range q.InputTokens / size {
		key, private := walk.Next()
		if private {
			break
		}
		t.path = append(t.path, key)
	}
	t.held = t.holders.Match(t.path, t.held)
}

// fallsBehind notes that the cohort of a replica owes blocks that routers may ask about.
func (e *Simulation) fallsBehind(r *Replica) {
	if !e.isBehind[r.Index()] && r.Unsettled() {
		e.isBehind[r.Index()] = true
		e.behind = append(e.behind, int32(r.Index()))
	}
}

// catchUp makes all cohorts take the blocks that they owe. Few of many replicas have iterated since the last request.
func (e *Simulation) catchUp() {
	for _, i := range e.behind {
		e.replicas[i].Settle()
		e.isBehind[i] = false
	}
	e.behind = e.behind[:0]
}
