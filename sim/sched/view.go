package sched

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

// View is what a policy sees of its engine, and the methods by which it acts. It is composed of small interfaces, one
// for each subject. A simple policy needs [Iteration], [Batch], [Decoding], [Queue] and [Admitter].
//
// Tokens are counted in int32, as lengths of sequences are. Unless a comment says otherwise, the cost of a method does
// not depend on the number of sequences that run or wait.
type View interface {
	Iteration
	Batch
	Walk
	Decoding
	Preemption
	Queue
	QueueText
	Admitter
	KVSpace
	Grouping
	Reservation
}

// Iteration is the iteration that is being composed.
type Iteration interface {
	// Now is the instant at which the iteration is composed.
	Now() clock.Time
	// Budget is the number of tokens that the iteration can still take. It is max_num_batched_tokens at first.
	Budget() int32
	// DecodeSteps is the number of earlier iterations in which at least one sequence decoded.
	DecodeSteps() int64
	// Pad makes the iteration cost as much as with rows more sequences that decode, whose KV lengths sum to context.
	// Static batching needs it, which computes finished rows until the batch ends. When the iteration repeats, context
	// grows by rows each time. Call it at most once.
	Pad(rows int, context int64)
	// PadChunks makes every chunk of the iteration cost as much as one with to new tokens, for prompts that are
	// padded to a common length. It must be at least the length of the longest chunk.
	PadChunks(to int32)
}

// Batch is the running batch as a whole.
type Batch interface {
	// RunningLen is the number of sequences in the running batch.
	RunningLen() int
	// Seats is the number of sequences that may still join it: max_num_seqs less RunningLen.
	Seats() int
	// Decoding is the number of sequences that decode: they get one token in this iteration, or could get one. A
	// sequence whose prefill ends in this iteration does not count yet. One whose whole output is scheduled no longer
	// counts.
	Decoding() int
	// Context is the number of tokens that the decoding sequences had computed before this iteration, in all.
	Context() int64
	// Remaining is the sum of min(MaxTokens-Generated, limit) over the running sequences that can still get tokens: an
	// upper bound of their future output. The cost grows with the batch if some sequence is above the limit.
	Remaining(limit int32) int64
	// Departures counts the times that a sequence left the running batch because it ended, was cancelled, or was
	// preempted. Those of this iteration count.
	Departures() int64
}

// Walk goes through the running sequences one by one.
type Walk interface {
	// First and Next walk the running batch in order of admission; [None] ends the walk. Next and Prev accept also the
	// sequence that was taken out of the batch last, as long as no other was taken out or admitted since: a walk
	// survives the preemption of any sequence.
	First() Seq
	Next(s Seq) Seq
	// Last and Prev walk the batch in the opposite order.
	Last() Seq
	Prev(s Seq) Seq
	// NextPrefill returns the next sequence in prefill after s in running order. The walk begins and ends with [None],
	// and never visits decoding sequences. s may have been given its last chunk meanwhile.
	NextPrefill(s Seq) Seq
	// Missing is the number of known tokens of s that are neither computed nor given in this iteration: of a sequence
	// in prefill the rest of its known tokens, of a decoding one 1 and the drafts to verify, and 0 once it has been
	// given its token, or if its whole output is scheduled.
	Missing(s Seq) int32
	// Progress returns how far s has come, and to which user, session and class it belongs.
	Progress(s Seq) Progress
	// Given is the number of tokens that s was given in this iteration.
	Given(s Seq) int32
	// Urgency is the place that s would have in the queue if it returned there now, with all that it computed before
	// this iteration. Without an [Order] its key is 0.
	Urgency(s Seq) Urgency
}

// Decoding gives tokens to running sequences.
type Decoding interface {
	// DecodeAll gives one token to every decoding sequence, if they all stand before the first sequence in prefill, and
	// the pool and the budget have room for all of them. Otherwise it gives nothing. It returns the first sequence that
	// is not dealt with: the first in prefill, or None; if it gave nothing although sequences decode, First(). With
	// speculative decoding it gives nothing, because sequences have different numbers of drafts.
	//
	// Call DecodeAll or DecodeFirst before anything else is given in this iteration. Each may be called again after it
	// gave nothing. After one of them has given tokens, decoding sequences get nothing else.
	DecodeAll() Seq
	// DecodeFirst gives one token to every decoding sequence, wherever it stands, if the pool and the budget have room
	// for all of them, and reports whether it did. It reports true when no sequence decodes.
	DecodeFirst() bool
	// Grow allocates KV blocks for n more tokens of s and reports whether there were enough. Give must follow, unless s
	// is taken out of the batch.
	Grow(s Seq, n int32) bool
	// Give schedules n tokens of s in this iteration: at least 1, at most Missing and Budget. Call it after Grow, once
	// for each sequence.
	Give(s Seq, n int32)
}

// Preemption takes sequences out of the running batch.
type Preemption interface {
	// Preempt takes s out of the running batch, frees its blocks and puts it at the head of the queue, or where the
	// [Order] says. Tokens that it was given in this iteration return to the budget; tokens of its output in flight are
	// delivered. When it is admitted again, its known tokens are computed again, the output so far included. A sequence
	// whose whole output is scheduled does not return: it ends when its last token is processed.
	Preempt(s Seq)
	// PreemptToTail is Preempt to the tail of the queue, or where the [Order] says.
	PreemptToTail(s Seq)
	// SwapOut is Preempt, but the KV of s goes to host memory. The iteration takes longer, and s waits with Computed
	// tokens. It returns false and does nothing if host memory has no room for the blocks of its computed tokens, if s
	// has computed nothing, or if its whole output is scheduled.
	SwapOut(s Seq) bool
}

// Queue is the waiting queue.
//
// A look at a request refreshes what a radix cache holds of it, so that it is evicted later. Therefore Repeats may look
// only at requests at which Schedule has just looked.
type Queue interface {
	// WaitingLen is the length of the queue.
	WaitingLen() int
	// Waiting returns the request at place i of the queue, from 0; ok is false if there is none. Places above 0 are
	// allowed only without an [Order]. The cost grows with i.
	Waiting(i int) (w Waiting, ok bool)
	// Peek is Waiting without a lookup in the prefix cache. Only Peek sets InFlight.
	Peek(i int) (p Progress, ok bool)
	// Skip passes over the head of the queue, if there is one, in this iteration: the requests behind it move up. After
	// the iteration all that were passed over are at the front of the queue again, in the order that they had. Without
	// an [Order] they stay ahead of sequences that are preempted later, as in vLLM.
	Skip()
	// Blocked records why the head of the queue is not admitted, for the accounting of waiting time. It does nothing if
	// the queue is empty.
	Blocked(why Cause)
}

// QueueText is what the waiting requests begin with.
type QueueText interface {
	// Beginning returns a key of the first known tokens of the request at place i: requests that begin alike have equal
	// keys. ok is false if the request has fewer tokens. It costs as much as Waiting.
	Beginning(i int, tokens int32) (key uint64, ok bool)
	// Path appends to to the nodes of a radix cache, from the root on, that hold known tokens of the request at place
	// i, the last one included, although it is always computed. It appends nothing without a radix cache. A number
	// stands for the same node within one iteration. Of the children of a node, those that were added earlier have
	// lower numbers. It costs as much as Waiting.
	Path(i int, to []int32) []int32
}

// Admitter moves requests from the queue into the running batch.
type Admitter interface {
	// Admit moves the request at place i of the queue to the end of the running batch, gives it n tokens and the blocks
	// for them, and returns its handle. The requests behind it move up. n is at least 1 and at most Known-Cached, or
	// Known-Computed for a request that was swapped out or loaded and resumes there. A seat, budget and blocks must be
	// available. Cached tokens come from the prefix cache. Where one token is missing, n may also be 1 and Padding: the
	// dummy drafts are computed and rejected.
	Admit(i int, n int32) Seq
	// Load begins to load the Loadable tokens of the request at place i into the pool and reports whether it did. It
	// takes blocks for all Known tokens that are not Held. It does nothing if there are too few, or if the engine loads
	// no more for the time being. The request leaves the queue. When its KV has arrived it returns ahead of all
	// requests that were not loaded, even with an [Order], with these tokens as Computed and its blocks as Held. Load
	// takes no budget and no seat, and the request cannot be preempted meanwhile.
	Load(i int) bool
}

// KVSpace is the space in the KV pool.
type KVSpace interface {
	// Blocks is the size of the KV pool as the engine logs it, the null block included; 0 is an unlimited pool.
	Blocks() int
	// FreeBlocks is the number of blocks that no sequence references.
	FreeBlocks() int
	// LargestFree is the number of blocks that one sequence can take at once: FreeBlocks, or the largest free range of
	// a contiguous pool, whose cost grows with the number of ranges.
	LargestFree() int
	// BlocksFor is the number of blocks that a sequence of this many tokens takes, with the charge for sliding-window
	// layers.
	BlocksFor(tokens int32) int
	// Slots is the number of tokens for which Admit allocates when a request is given tokens up to this many in all. It
	// is larger where drafts of speculative decoding need slots ahead.
	Slots(tokens int32) int32
}

// Grouping is the space of KV cache groups with block tables of their own ([Limits.Hybrid]).
type Grouping interface {
	// Clip returns how many of n tokens of running sequence s a chunk has that ends where its recurrent state can be
	// kept; without such a state n. most is the cap of tokens that the policy gives a sequence at a time; 0 is none.
	Clip(s Seq, n, most int32) int32
	// ClipWaiting is Clip for the request at place i of the queue.
	ClipWaiting(i int, n, most int32) int32
	// Needs is the number of free blocks that Admit(i, n) takes. If whole is true, it is the number that the sequence
	// takes to hold all Known tokens, as far as it holds them at the same time. Without groups it is 0.
	Needs(i int, n int32, whole bool) int
}

// Reservation keeps KV blocks ahead of need.
type Reservation interface {
	// Reserve allocates blocks for this many tokens of s in all, and reports whether there were enough. Growth within
	// them takes nothing. In a contiguous pool the blocks are one range, the first that is large enough; Reserve must
	// then follow the Admit of s at once, and the blocks that s took return to the pool first. A sequence cannot grow
	// beyond its range.
	Reserve(s Seq, tokens int32) bool
	// Book notes that s may need blocks for this many tokens in all, without allocating them. It replaces an earlier
	// booking of s, and ends when s leaves the running batch. It does not bind the engine and counts only in Booked.
	Book(s Seq, tokens int32)
	// Booked is the number of blocks that running sequences have booked and not taken.
	Booked() int
	// MakeRoom evicts tokens from a radix cache, as many as it is given, if fewer are available without an eviction.
	MakeRoom(tokens int)
}

// NewProgress returns the part of the progress that a request itself determines.
func NewProgress(r *workload.Request) Progress {
	return Progress{
		Request: r.ID, User: r.User, Session: r.Session, Class: r.Class, Priority: r.Priority, Prompt: r.InputTokens,
		Adapter: r.Adapter,
	}
}
