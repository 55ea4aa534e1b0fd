// Package sched holds the batching policies, one file each, and the interface between a policy and
// the replica that it runs on.
//
// A policy composes one iteration at a time. It looks at a [View] and acts through the view's verbs;
// it keeps no state of sequences of its own. The replica calls it only when something may have
// changed: between changes it repeats the last decision, many iterations at once.
package sched

// Seq is a handle to a running sequence. It is valid until the sequence leaves the running batch.
type Seq int32

// None is no sequence.
const None Seq = -1

// Scheduler is a batching policy.
type Scheduler interface {
	// Schedule composes the next iteration.
	Schedule(v View)
	// Repeats says for how many iterations from this one on Schedule would do the same: it is
	// asked after a Schedule that gave one token to every decoding sequence and did nothing else.
	// The replica itself ends the run when a sequence finishes, the pool gets short, or the
	// queue has a new head. A policy that cannot promise more answers 1.
	Repeats(v View) int
	// ByUrgency says that the waiting queue is ordered by [Urgency], and not first come, first served.
	ByUrgency() bool
	// Validate checks the policy's knobs against the engine's token budget and longest sequence.
	Validate(maxNumBatchedTokens int, maxModelLen int32) error
}

// View is what a policy sees of its replica, and the verbs by which it acts. Tokens are counted in
// int32, as lengths of sequences are.
type View interface {
	// Budget is what is left of the iteration's tokens (max_num_batched_tokens at first).
	Budget() int32
	// Seats is how many more sequences may join the running batch (max_num_seqs less its length).
	Seats() int
	// RunningLen is the length of the running batch.
	RunningLen() int
	// Blocks is the size N of the KV pool as the engine logs it, FreeBlocks the blocks that nobody
	// references, and BlocksFor the number that a sequence of the given tokens takes, the charge for
	// windowed layers included.
	Blocks() int
	FreeBlocks() int
	BlocksFor(tokens int32) int

	// First and Next walk the running batch in order of admission; None ends it. The walk survives
	// the preemption of any sequence.
	First() Seq
	Next(s Seq) Seq
	// Last is the most recently admitted sequence.
	Last() Seq
	// Missing is how many known tokens of s are not computed: 1 for a sequence that decodes, the
	// rest of the prompt for one in prefill, 0 for one whose last token is on its way.
	Missing(s Seq) int32
	// Urgency orders sequences and requests under a priority policy: lower goes first.
	Urgency(s Seq) Urgency

	// DecodeAll gives one token to every sequence that decodes, if they all stand before the first
	// one in prefill and the pool and the budget have room for all; otherwise it gives nothing.
	// It returns the first sequence not dealt with: the first in prefill, or None; or, when it gave
	// nothing, First().
	DecodeAll() Seq
	// Grow makes room in the KV pool for n more tokens of s, and reports whether there was any.
	Grow(s Seq, n int32) bool
	// Give schedules n tokens of s in this iteration. It is called after Grow, once for each sequence.
	Give(s Seq, n int32)
	// Preempt takes s out of the running batch, frees its blocks and puts it at the head of the
	// queue (or where its urgency says). Tokens given to it in this iteration return to the budget.
	Preempt(s Seq)

	// Head looks at the head of the waiting queue; ok is false when nobody waits.
	Head() (w Waiting, ok bool)
	// Admit moves the head of the queue to the end of the running batch and gives it n tokens.
	Admit(n int32)
	// Blocked says why the head is not admitted, for the accounting of gap time.
	Blocked(why Cause)
}

// Waiting is the head of the queue.
type Waiting struct {
	// Known is the length of the sequence: the prompt, and the answer so far of one that was preempted.
	Known int32
	// Cached is the number of its leading tokens that the prefix cache holds now, at most Known-1.
	Cached int32
	// Held is the number of its cached blocks that are referenced by running sequences, so that
	// taking them needs no free block.
	Held int
	// Live says that the tokens may still come into the cache from an answer that is being
	// generated, so that Cached can grow while the running batch stays the same.
	Live bool
}

// Urgency is a sort key: Priority first, then Arrival, then Request.
type Urgency struct {
	Priority int32
	Arrival  int64
	Request  int64
}

// Less reports whether u goes before w.
func (u Urgency) Less(w Urgency) bool {
	if u.Priority != w.Priority {
		return u.Priority < w.Priority
	}
	if u.Arrival != w.Arrival {
		return u.Arrival < w.Arrival
	}
	return u.Request < w.Request
}
