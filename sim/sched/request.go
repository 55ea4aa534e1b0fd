package sched

import "cmp"

// Progress is the state of a request.
type Progress struct {
	// Request is its ID; User, Session, Class and Priority are those of [clifftop/workload.Request].
	Request       int64
	User, Session int32
	Class         uint16
	Priority      int16
	// Prompt is the length of the prompt and Generated that of the output so far, in tokens. MaxTokens is the longest
	// output, as the client declared it; the output may end before.
	Prompt, Generated, MaxTokens int32
	// Adapter is the LoRA adapter of [clifftop/workload.Request].
	Adapter int32
	// InFlight means that a waiting request was preempted and an iteration in flight still computes for it, so that it
	// cannot be admitted yet. It occurs with pipeline stages.
	InFlight bool
}

// Waiting is a request in the queue.
type Waiting struct {
	Progress
	// Known is the length of the sequence: the prompt, and the output so far of one that was preempted.
	Known int32
	// Cached is the number of its leading tokens that the prefix cache holds now, at most Known-1.
	Cached int32
	// Computed is the number of its leading tokens whose KV is in host memory, because it was swapped out, or in blocks
	// of its own, because it was loaded; of a running sequence that is shown to an [Order], those in the pool.
	Computed int32
	// Loadable is the number of tokens after the cached ones whose KV [Admitter.Load] can load from a tier or another
	// replica.
	Loadable int32
	// TrueOutput is the true length of the output in tokens, cut at the maximum model length. No real engine knows it.
	// It is for oracles, and for predictors that add an error.
	TrueOutput int32
	// Preempted means that it has run before.
	Preempted bool
	// Live means that the tokens may still enter the cache from an output that is being generated, so that Cached can
	// grow while the running batch stays the same.
	Live bool
	// Held is the number of its cached blocks that are referenced by running sequences, so that taking them needs no
	// free block; for a request that was loaded, all its blocks.
	Held int
	// Grouped means that there are KV cache groups with block tables of their own: [Grouping] says what an admission
	// takes, and Held is not set.
	Grouped bool
	// Padding is the number of dummy drafts that [Admitter.Admit] accepts in addition to the last missing token, so
	// that a decode batch stays uniform; 0 if more than one token is missing, or if the engine does not pad.
	Padding int32
	// Urgency is its place in the order of the queue.
	Urgency Urgency
}

// Urgency is a sort key: Key first, which is the [Order]'s, then the later one of Arrival and Returned, then Returned,
// then Request.
type Urgency struct {
	Key     int64
	Arrival int64
	// Returned is when the request last went to the tail of the queue (View.PreemptToTail); 0 is never.
	Returned int64
	Request  int64
}

// Less reports whether u comes before w.
func (u Urgency) Less(w Urgency) bool {
	if u.Key != w.Key {
		return u.Key < w.Key
	}
	if x, y := u.queued(), w.queued(); x != y {
		return x < y
	}
	if u.Returned != w.Returned {
		return u.Returned < w.Returned
	}
	return u.Request < w.Request
}

// compare returns a negative number, 0 or a positive number if u comes before w, is w, or comes after it.
func (u Urgency) compare(w Urgency) int {
	return cmp.Or(cmp.Compare(u.Key, w.Key), cmp.Compare(u.queued(), w.queued()),
		cmp.Compare(u.Returned, w.Returned), cmp.Compare(u.Request, w.Request))
}

// queued is the instant at which the request joined the queue behind its equals.
func (u Urgency) queued() int64 { return max(u.Arrival, u.Returned) }
