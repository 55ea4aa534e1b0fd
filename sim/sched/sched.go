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
// A composition gives tokens: to all decoding sequences at once ([Decoding.DecodeAll], [Decoding.DecodeFirst]), to
// single sequences (Grow, then Give), to waiting requests (Admit). No sequence is given tokens
// twice, except that what was given to a sequence that is then preempted returns to the budget. A
// running sequence that is given nothing is held: it keeps its seat and its blocks, and its
// client waits. An iteration that gives no tokens is not run: if the composition preempted
// a sequence and nothing is in flight, the policy is asked again at the same instant; otherwise at the
// next boundary. A policy must be able to admit, on an idle replica, any request whose declared length fits
// the pool; otherwise the run fails, because it would never end.
//
// Whatever the order of giving, the batch is in running order: so are its rows, and the order in which its
// results are streamed and its sequences end. KV blocks are taken in the order of giving.
//
// A policy that breaks a rule of this package fails the run with an error.
package sched

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
	// been computed, when blocks go free that were kept for KV on its way, when the pool gets short of the next step,
	// when the queue has a new head and, if the policy asked WaitingLen or looked beyond the head in Schedule or here,
	// when a request joins the queue. A policy that cannot promise more answers 1. A state of the policy that changes
	// with each call of Schedule must be written such that skipped calls make no difference; [Iteration.DecodeSteps]
	// counts for it.
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
