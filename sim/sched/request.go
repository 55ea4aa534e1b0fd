package sched

import "cmp"

// Progress is how far a request has come.
type Progress struct {
	// Request is its ID; User, Session, Class and Priority are those of [clifftop/workload.Request].
	Request       int64
	User, Session int32
	Class         uint16
	Priority      int16
	// Prompt is the length of the prompt and Generated that of the answer so far, in tokens.
	// MaxTokens is the longest that the answer may get, as the client declared it: the answer may end before.
	Prompt, Generated, MaxTokens int32
}

// Waiting is a request in the queue.
type Waiting struct {
	Progress
	// Known is the length of the sequence: the prompt, and the answer so far of one that was preempted.
	Known int32
	// Cached is the number of its leading tokens that the prefix cache holds now, at most Known-1.
	Cached int32
	// Computed is the number of its leading tokens whose KV is in host memory, because it was swapped out, or in blocks
	// of its own, because it was loaded; of a running sequence that is shown to an [Order], those in the pool.
	Computed int32
	// Loadable is the number of tokens behind the cached ones whose KV lies elsewhere, from where [Admitter.Load]
	// brings it.
	Loadable int32
	// Answer is the true length of the answer in tokens, cut at the longest sequence. No engine knows it: it is
	// there for oracles, and for predictors that blur it.
	Answer int32
	// Preempted says that it has run before.
	Preempted bool
	// Live says that the tokens may still come into the cache from an answer that is being
	// generated, so that Cached can grow while the running batch stays the same.
	Live bool
	// Held is the number of its cached blocks that are referenced by running sequences, so that
	// taking them needs no free block; of a request that was loaded, all that it has.
	Held int
	// Urgency is its place in the order of the queue.
	Urgency Urgency
}

// Urgency is a sort key: Key first, which is the [Order]'s, then Arrival, then Request.
type Urgency struct {
	Key     int64
	Arrival int64
	Request int64
}

// Less reports whether u goes before w.
func (u Urgency) Less(w Urgency) bool {
	if u.Key != w.Key {
		return u.Key < w.Key
	}
	if u.Arrival != w.Arrival {
		return u.Arrival < w.Arrival
	}
	return u.Request < w.Request
}

// compare is negative, 0 or positive as u goes before w, is w, or goes after it.
func (u Urgency) compare(w Urgency) int {
	return cmp.Or(cmp.Compare(u.Key, w.Key), cmp.Compare(u.Arrival, w.Arrival), cmp.Compare(u.Request, w.Request))
}
