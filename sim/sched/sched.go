// Package sched holds the batching policies, one file each, and the interface between a policy and
// the replica that it runs on.
//
// A policy composes one iteration at a time. It looks at a [View] and acts through the view's verbs;
// it keeps no state of sequences of its own. The replica calls it only when something may have
// changed: between changes it repeats the last decision, many iterations at once.
//
// # Sequences
//
// A request in the running batch is a sequence. It has known tokens, the prompt and the answer so far, and
// computed tokens, whose keys and values are in the KV pool once the iterations in flight have ended. A
// sequence in prefill has more than one known token to compute, or has not come to the end of them since
// its admission; given the last of them it produces the next token of the answer. From the next iteration
// on it decodes: each iteration that gives it one token computes that one and produces another. A
// sequence whose whole answer is on its way, as far as the engine can foresee it, is given nothing more;
// it keeps its seat and its blocks until its last token has been processed.
//
// A token counts as known from the iteration after the one that produces it on, whether or not that iteration
// has ended; so a policy need not know how many iterations are in flight.
//
// # One iteration
//
// A composition gives tokens: to all decoding sequences at once ([View.DecodeAll], [View.DecodeFirst]), to
// single sequences (Grow, then Give), to waiting requests (Admit). No sequence is given tokens
// twice, except that what was given to a sequence that is then preempted returns to the budget. A
// running sequence that is given nothing is held: it keeps its seat and its blocks, and its
// client waits. An iteration in which nobody is given anything is not run: if the composition preempted
// somebody and nothing is in flight, the policy is asked again at the same instant; otherwise at the
// next boundary. A policy must be able to admit, on an idle replica, any request whose declared length fits
// the pool; otherwise the run fails, as it would wait for ever.
//
// Whatever the order of giving, the batch is in running order: so are its rows, and the order in which its
// results are streamed and its sequences end. KV blocks are taken in the order of giving.
//
// A policy that breaks a rule of this package fails the run with an error.
package sched

import (
	"cmp"

	"clifftop/sim/clock"
)

// Seq is a handle to a running sequence. It is valid until the sequence leaves the running batch.
type Seq int32

// None is no sequence.
const None Seq = -1

// Scheduler is a batching policy. It may keep state between iterations, such as a counter or a ratio, as
// long as that depends only on what its views showed. A scheduler serves one replica.
type Scheduler interface {
	// Schedule composes the next iteration.
	Schedule(v View)
	// Repeats says for how many iterations, this one included, Schedule would do the same if it were
	// asked: it is called after a Schedule whose whole effect was one token for every decoding sequence,
	// and perhaps a Pad and a Blocked. The view is as after Schedule; what the policy may ask of it
	// are the questions, not the verbs. At each of these iterations time has advanced, DecodeSteps and
	// what sequences have generated have grown by one, and free blocks are fewer.
	//
	// The replica itself ends the repetition when a sequence leaves, when a prefill chunk that was in flight has
	// been computed, when blocks go free that were kept for KV on its way, when the pool gets short of the next step, when the queue has a new head and, if the policy asked
	// WaitingLen or looked beyond the head in Schedule or here, when anybody joins the queue. A policy
	// that cannot promise more answers 1. A state of the policy that changes with each call of Schedule must be
	// written such that skipped calls make no difference; [View.DecodeSteps] counts for it.
	Repeats(v View) int
	// Validate checks the policy's knobs against the engine that it is to run on.
	Validate(l Limits) error
}

// Limits is what an engine is like, as far as it matters to a policy.
type Limits struct {
	// MaxNumSeqs is the number of seats in the running batch, MaxNumBatchedTokens the token budget of an
	// iteration; the latter is at least the former.
	MaxNumSeqs, MaxNumBatchedTokens int
	// MaxModelLen is the longest sequence, prompt and answer, in tokens.
	MaxModelLen int32
	// BlockSize is the number of tokens in a KV block, NumGPUBlocks the number of blocks as the engine logs
	// it, the null block included; 0 is an unlimited pool.
	BlockSize    int32
	NumGPUBlocks int
	// HostBlocks is the number of KV blocks that host memory has room for; 0 is no swapping.
	HostBlocks int
	// Connector says that KV of waiting requests may lie elsewhere, from where it can be loaded.
	Connector bool
	// PrefixCaching says that requests may find their leading tokens computed; Contiguous that a
	// sequence holds one hole of the pool, so that it must reserve on admission all that it will need.
	PrefixCaching, Contiguous bool
	// Ordered says that the queue has an [Order], so that only its head can be seen.
	Ordered bool
	// Async says that an iteration is composed while the one before it runs.
	Async bool
	// Speculative says that decoding sequences are given drafts, so that each has to be visited: DecodeAll and
	// DecodeFirst give nothing.
	Speculative bool
}

// View is what a policy sees of its replica, and the verbs by which it acts. Tokens are counted in
// int32, as lengths of sequences are. Unless a comment says otherwise every method costs the same however
// many sequences run or wait.
type View interface {
	// Now is the instant at which the iteration is composed.
	Now() clock.Time
	// Budget is what is left of the iteration's tokens (max_num_batched_tokens at first).
	Budget() int32
	// Seats is how many more sequences may join the running batch (max_num_seqs less its length).
	Seats() int
	// RunningLen is the length of the running batch, Decoding the number of sequences in it that decode:
	// those that are given one token in this iteration or could be. One whose prefill ends in this
	// iteration is not among them yet, and one whose whole answer is on its way no longer.
	//
	// Context is the number of tokens that those who decode had computed before this iteration, in all.
	RunningLen() int
	Decoding() int
	Context() int64

	// Blocks is the size N of the KV pool as the engine logs it, FreeBlocks the blocks that nobody
	// references, and BlocksFor the number that a sequence of the given tokens takes, the charge for
	// windowed layers included.
	Blocks() int
	FreeBlocks() int
	BlocksFor(tokens int32) int
	// Slots is the number of tokens that a sequence takes room for, by Grow or Admit, when it is given tokens up to
	// so many in all: more than these where the drafts of speculative decoding need slots ahead of them.
	Slots(tokens int32) int32
	// LargestFree is the most blocks that one sequence can take at once: FreeBlocks, or the largest hole of a
	// contiguous pool. It may walk the holes.
	LargestFree() int
	// Promised is the number of blocks that running sequences were promised and have not taken.
	Promised() int

	// DecodeSteps is the number of iterations so far in which at least one sequence decoded, without the one
	// being composed. Departures is the number of times that a sequence has left the running batch:
	// because it ended, was cancelled, or was preempted; those of this composition are included.
	DecodeSteps() int64
	Departures() int64

	// First and Next walk the running batch in order of admission, Last and Prev against it; None ends
	// it. Next and Prev may also be asked of the sequence that was taken out of the batch last,
	// as long as none was taken out or admitted since; so a walk survives the preemption of any sequence.
	First() Seq
	Next(s Seq) Seq
	Last() Seq
	Prev(s Seq) Seq
	// NextPrefill is the next sequence in prefill after s in running order; it starts at None and ends with
	// it. It never walks decoding sequences. s may have been given its last chunk meanwhile.
	NextPrefill(s Seq) Seq
	// Missing is how many known tokens of s are neither computed nor given in this iteration: 1 for a
	// sequence that decodes, and the drafts to verify beside it, the rest of its known tokens for one in prefill, and 0 for one that has been given
	// its token, or whose whole answer is on its way.
	Missing(s Seq) int32
	// Progress tells how far s has come, and whose it is.
	Progress(s Seq) Progress
	// Urgency is the place that s would have in the order of the queue if it returned now with all that it has
	// computed before this iteration. Without an [Order] the key is 0.
	Urgency(s Seq) Urgency
	// Remaining is the sum of min(MaxTokens-Generated, limit) over the running sequences that may be given
	// tokens: the most that they can still produce, as far as the engine knows. It costs more only where
	// some sequence is above the limit.
	Remaining(limit int32) int64

	// DecodeAll gives one token to every sequence that decodes, if they all stand before the first
	// one in prefill and the pool and the budget have room for all; otherwise it gives nothing.
	// It returns the first sequence not dealt with: the first in prefill, or None; or, when it gave
	// nothing to sequences that decode, First(). With speculative decoding it gives nothing: sequences have
	// drafts of different numbers, and progress by as many tokens as are accepted.
	//
	// DecodeAll and DecodeFirst come before anything is given in this composition; each may
	// be called again after it gave nothing. When one of them has given, the decoding sequences
	// are not given anything else.
	DecodeAll() Seq
	// DecodeFirst gives one token to every sequence that decodes, wherever it stands, if the pool and
	// the budget have room for all, and reports whether it did; otherwise it gives nothing. It
	// succeeds when nobody decodes.
	DecodeFirst() bool
	// Grow makes room in the KV pool for n more tokens of s, and reports whether there was any. Give
	// must follow, unless s is taken out of the batch.
	Grow(s Seq, n int32) bool
	// Give schedules n tokens of s in this iteration: at least 1, at most Missing and Budget. It is called
	// after Grow, once for each sequence.
	Give(s Seq, n int32)

	// Preempt takes s out of the running batch, frees its blocks and puts it at the head of the
	// queue, or where the order says. Tokens given to it in this iteration return to the budget, tokens
	// of its answer in flight are delivered. When it is admitted again its known tokens, the answer so
	// far included, are computed again. One whose whole answer is on its way does not come back: it ends when its
	// last token is processed.
	Preempt(s Seq)
	// PreemptToTail is Preempt, to the tail of the queue or where the order says.
	PreemptToTail(s Seq)
	// SwapOut is Preempt, but what s has computed goes to host memory and is not lost: the iteration lasts longer,
	// and s waits with Computed tokens. It is false, and does nothing, when host memory has no
	// room for the blocks of its computed tokens, and for a sequence that has computed nothing, or whose
	// whole answer is on its way.
	SwapOut(s Seq) bool

	// A look at a request refreshes what a radix cache holds of it, so that it is evicted later. Hence Repeats may only
	// look at requests that Schedule has just looked at.
	//
	// WaitingLen is the length of the queue. Waiting looks at its i-th request, from 0; ok is false when
	// there is none. i > 0 is allowed only without an [Order], and costs in proportion to i.
	WaitingLen() int
	Waiting(i int) (w Waiting, ok bool)
	// Beginning identifies the first known tokens of the i-th request of the queue: of requests whose keys are
	// equal they are the same. ok is false when there are not as many. Path appends to to the nodes of a
	// radix cache, from the root on, that hold what is cached of the request, and nothing without one; their
	// numbers tell nodes apart within an iteration. Both cost as Waiting does.
	Beginning(i int, tokens int32) (key uint64, ok bool)
	Path(i int, to []int32) []int32
	// Admit moves the i-th request of the queue to the end of the running batch, gives it n tokens, takes the
	// blocks for them, and returns its handle; the requests behind it move up. n is at least 1 and at most
	// Known-Cached, or Known-Computed for one that was swapped out or loaded, which resumes where it was; and there must be
	// a seat, budget and blocks. What the prefix cache holds of the request is taken from there.
	Admit(i int, n int32) Seq
	// Load begins to bring the Loadable tokens of the i-th request of the queue into the pool, and reports whether it
	// did. It takes blocks for all Known tokens, as far as they are not Held; where there are too few, or the replica
	// takes in no more for the time being, it does nothing. The request leaves the queue; when its KV is there it
	// comes back, ahead of all that were not loaded, whatever the order, and waits with the tokens that it has then as
	// Computed ones, and its blocks as Held ones. No token of the budget and no seat is taken, and nobody can preempt it.
	Load(i int) bool
	// Reserve takes blocks so that s has room for so many tokens in all, and reports whether there were enough;
	// growth within them takes nothing. In a contiguous pool the blocks are one hole, the first that is large
	// enough, and Reserve must follow the Admit of s at once; the blocks that s took then return
	// to the pool before. A sequence there cannot grow beyond its hole.
	Reserve(s Seq, tokens int32) bool
	// Promise books blocks for so many tokens of s in all, without taking them. It replaces an earlier promise
	// to s, and ends when s leaves the running batch. A promise does not bind the replica: it only counts in
	// Promised, as far as s has not taken it.
	Promise(s Seq, tokens int32)
	// Blocked says why the head of the queue is not admitted, for the accounting of gap time. It does nothing
	// when nobody waits.
	Blocked(why Cause)

	// Pad makes the iteration cost as if so many more sequences, whose KV lengths sum to context, decoded and
	// produced tokens: static batching computes finished rows until the batch ends. When the iteration
	// repeats, context grows by rows each time. It is called at most once.
	Pad(rows int, context int64)
	// PadChunks makes every chunk of this iteration cost as much as one of so many new tokens, which is at least
	// what the longest has: prompts padded to a common length.
	PadChunks(to int32)
}

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
	// Loadable is the number of tokens behind the cached ones whose KV lies elsewhere, from where [View.Load] brings it.
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
